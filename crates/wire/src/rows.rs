//! The answer to a step: rows of the keys that were asked for, and the server's slice of the dense part.
//!
//! ```text
//! rows    = step u64 | fence u64 | precision u8 | has_dense u8 | count u32, numbers? | feeds u16 | feed*
//! feed    = rows u32 | width u32 | numbers [rows, width]
//! ```

use crate::step::limited;
use crate::{Error, Precision, Reader, Writer};

/// Of a feed without rows.
const MIN_FEED_BYTES: usize = 8;

/// What every answer begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsHead {
    /// Updates that the server has applied.
    pub step: u64,
    /// The fence that the coordinator asks for; trainers park at their next batch boundary if it is new.
    pub fence: u64,
    pub precision: Precision,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rows<'a> {
    pub head: RowsHead,
    /// Absent where nobody asked.
    pub dense: Option<&'a [u8]>,
    pub feeds: Vec<FeedRows<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedRows<'a> {
    pub rows: u32,
    pub width: u32,
    pub numbers: &'a [u8],
}

pub fn encode_head(out: &mut Writer<'_>, head: &RowsHead) {
    out.u64(head.step);
    out.u64(head.fence);
    out.u8(head.precision.byte());
}

/// Room for the dense numbers, or the word that there are none.
pub fn encode_dense<'w>(out: &'w mut Writer<'_>, precision: Precision, count: Option<usize>) -> &'w mut [u8] {
    out.u8(u8::from(count.is_some()));
    if let Some(count) = count {
        out.length(count);
    }
    out.room(count.unwrap_or(0) * precision.bytes())
}

/// Feeds of all batches that were asked for, in their order.
pub fn encode_num_feeds(out: &mut Writer<'_>, count: usize) {
    crate::step::encode_count(out, count);
}

/// Room for the numbers of the rows of one feed.
pub fn encode_feed<'w>(
    out: &'w mut Writer<'_>,
    precision: Precision,
    rows: usize,
    width: usize,
) -> &'w mut [u8] {
    out.length(rows);
    out.length(width);
    out.room(rows * width * precision.bytes())
}

impl<'a> Rows<'a> {
    pub fn decode(payload: &'a [u8]) -> Result<Self, Error> {
        let mut bytes = Reader::new(payload);
        let step = bytes.u64("the step")?;
        let fence = bytes.u64("the fence")?;
        let precision = Precision::from_byte(bytes.u8("the precision")?)?;
        let dense = if bytes.flag("whether dense numbers follow")? {
            let count = bytes.u32("the number of dense numbers")? as usize;
            Some(bytes.elements(count, precision.bytes(), "dense numbers")?)
        } else {
            None
        };
        let num_feeds = limited(bytes.u16("the number of feeds")?)?;
        let mut feeds = Vec::with_capacity(bytes.at_most(num_feeds, MIN_FEED_BYTES));
        for _ in 0..num_feeds {
            let (rows, width) = (bytes.u32("the number of rows")?, bytes.u32("the width of rows")?);
            let numbers = bytes.matrix(rows, width, precision, "rows")?;
            feeds.push(FeedRows { rows, width, numbers });
        }
        bytes.end()?;
        Ok(Self {
            head: RowsHead {
                step,
                fence,
                precision,
            },
            dense,
            feeds,
        })
    }
}
