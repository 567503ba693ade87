//! Answers of every shape.

use clickmill_wire::rows::{self, Rows, RowsHead};
use clickmill_wire::{Error, Frame, Precision};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::precisions;

#[derive(Clone, Debug)]
pub(crate) struct MadeRows {
    head: RowsHead,
    dense: Option<Vec<u8>>,
    /// Rows, width, numbers.
    feeds: Vec<(usize, usize, Vec<u8>)>,
}

impl MadeRows {
    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut frame = Frame::default();
        let mut out = frame.begin();
        let precision = self.head.precision;
        rows::encode_head(&mut out, &self.head);
        let count = self
            .dense
            .as_ref()
            .map(|numbers| numbers.len() / precision.bytes());
        rows::encode_dense(&mut out, precision, count)
            .copy_from_slice(self.dense.as_deref().unwrap_or_default());
        rows::encode_num_feeds(&mut out, self.feeds.len());
        for (count, width, numbers) in &self.feeds {
            rows::encode_feed(&mut out, precision, *count, *width).copy_from_slice(numbers);
        }
        frame.payload().to_vec()
    }
}

pub(crate) fn answers() -> impl Strategy<Value = MadeRows> {
    (any::<(u64, u64)>(), precisions()).prop_flat_map(|((step, fence), precision)| {
        let size = precision.bytes();
        let dense = (0..9_usize).prop_flat_map(move |count| vec(any::<u8>(), count * size));
        let feed = (0..6_usize, 1..5_usize).prop_flat_map(move |(count, width)| {
            (Just(count), Just(width), vec(any::<u8>(), count * width * size))
        });
        (option::of(dense), vec(feed, 0..5)).prop_map(move |(dense, feeds)| MadeRows {
            head: RowsHead {
                step,
                fence,
                precision,
            },
            dense,
            feeds,
        })
    })
}

#[test]
fn rows_that_no_byte_stands_behind_are_refused() {
    let mut frame = Frame::default();
    let mut out = frame.begin();
    let head = RowsHead {
        step: 1,
        fence: 0,
        precision: Precision::Fp32,
    };
    rows::encode_head(&mut out, &head);
    rows::encode_dense(&mut out, Precision::Fp32, None);
    rows::encode_num_feeds(&mut out, 1);
    out.u32(u32::MAX);
    out.u32(0);
    assert!(matches!(Rows::decode(frame.payload()), Err(Error::Value { .. })));
}

proptest! {
    #[test]
    fn rows_are_read_as_they_were_written(made in answers()) {
        let payload = made.payload();
        let read = Rows::decode(&payload).unwrap();
        prop_assert_eq!(read.head, made.head);
        prop_assert_eq!(read.dense, made.dense.as_deref());
        let found = read.feeds.iter().map(|feed| (feed.rows as usize, feed.width as usize, feed.numbers.to_vec()));
        prop_assert!(found.eq(made.feeds.iter().cloned()));
    }
}
