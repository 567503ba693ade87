//! One step of a trainer: gradients of a batch, and the keys of the next.
//!
//! ```text
//! step    = origin | flags u8 | pushes u16 | push* | keys u16 | keys*
//! origin  = epoch u64 | incarnation u64 | sequence u64
//! push    = lane u32 | flags u8 | precision u8 | samples u32 | dense | parts u16 | part* | ledger u32, JSON | scores
//! dense   = rate f32 | scale f32 | count u32 | numbers
//! part    = ticket u64 | feed u16 | table u16 | rate f32 | scale f32 | rows u32 | width u32 | signs u8
//!           | signs u64[rows]? | numbers [rows, width] | counts u8 | shows f32[rows]? | clicks f32[rows]?
//! scores  = count u32 | has u8 | scores f32[count] | labels f32[count] | weights f32[count]? | groups u64[count]?
//! keys    = ticket u64 | flags u8 | feeds u16 | feed*
//! feed    = table u16 | count u32 | signs u64[count]
//! commit  = origin
//! ```
//!
//! A frame has one push for each lane that its trainer works for, nearly always one.
//! A part without signs speaks of the rows that the server gave for `ticket`: keys travel once.

use crate::{Error, Precision, Reader, Writer};

/// Most lanes, tables or feeds that a frame may name.
const MAX_PARTS: u16 = 4096;
/// Of each where it is empty.
const MIN_PUSH_BYTES: usize = 33;
const MIN_PART_BYTES: usize = 30;
const MIN_KEYS_BYTES: usize = 11;
const MIN_FEED_BYTES: usize = 6;

const IS_COMMITTED: u8 = 1;

const IS_LAST: u8 = 1;
const IS_DIFFERENCE: u8 = 2;

const WANTS_DENSE: u8 = 1;
const IS_TRAINING: u8 = 2;
const WANTS_FULL_ROWS: u8 = 4;
const WANTS_BF16: u8 = 8;
const IS_LATER: u8 = 16;
const IS_FOUND: u8 = 32;

/// Who speaks, and which of its steps it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub epoch: u64,
    pub incarnation: u64,
    /// Steps with a push are counted from 1; others have the number of the step before.
    pub sequence: u64,
}

impl Origin {
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.epoch);
        out.u64(self.incarnation);
        out.u64(self.sequence);
    }

    pub fn decode(bytes: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            epoch: bytes.u64("the epoch")?,
            incarnation: bytes.u64("the incarnation")?,
            sequence: bytes.u64("the sequence number")?,
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step<'a> {
    pub origin: Origin,
    /// There is no other server: held and committed are the same.
    pub is_committed: bool,
    pub pushes: Vec<Push<'a>>,
    pub keys: Vec<Keys<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Push<'a> {
    pub lane: u32,
    /// The lane has no batch after this one in the pass.
    pub is_last: bool,
    /// It holds what to add to parameters and rows, not gradients.
    pub is_difference: bool,
    pub precision: Precision,
    /// Of the batch that the gradients are the mean of.
    pub samples: u32,
    pub dense: Dense<'a>,
    pub parts: Vec<Part<'a>>,
    /// Entry for the ledger, for the server that keeps it.
    pub ledger: &'a [u8],
    pub scores: Scores<'a>,
}

/// Gradients of the dense part; or what to add to it, and behind that the state of the trainer's optimizer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dense<'a> {
    /// Learning rate; with differences, the trainer's share of the state.
    pub rate: f32,
    /// Of the gradients; with differences, the batches that they come from.
    pub scale: f32,
    pub numbers: &'a [u8],
}

/// Gradients, or differences, of the rows of one feed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part<'a> {
    pub ticket: u64,
    pub feed: u16,
    pub table: u16,
    pub rate: f32,
    pub scale: f32,
    pub rows: u32,
    pub width: u32,
    /// Empty: the rows that were given for `ticket`.
    pub signs: &'a [u8],
    pub numbers: &'a [u8],
    /// Empty where the table keeps no counts.
    pub shows: &'a [u8],
    pub clicks: &'a [u8],
}

/// What the metrics count; empty for servers that keep none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores<'a> {
    pub scores: &'a [u8],
    pub labels: &'a [u8],
    pub weights: &'a [u8],
    pub groups: &'a [u8],
}

/// When rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// With the answer.
    Now,
    /// With the answer to a later step: they are found while that is not there.
    Later,
    /// With the answer, by keys that came with an earlier step.
    Found,
}

impl When {
    fn flag(self) -> u8 {
        match self {
            Self::Now => 0,
            Self::Later => IS_LATER,
            Self::Found => IS_FOUND,
        }
    }

    fn from_flags(flags: u8) -> Result<Self, Error> {
        match flags & (IS_LATER | IS_FOUND) {
            0 => Ok(Self::Now),
            IS_LATER => Ok(Self::Later),
            IS_FOUND => Ok(Self::Found),
            _ => Err(Error::value("the flags of keys", u64::from(flags))),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Keys<'a> {
    /// Name of these rows in the push to come.
    pub ticket: u64,
    pub when: When,
    pub wants_dense: bool,
    /// Rows are made for signs that are admitted.
    pub is_training: bool,
    /// With state and statistics, as `geo` trains them; the dense part with its optimizer's state behind it.
    pub wants_full_rows: bool,
    /// Of the answer.
    pub precision: Precision,
    pub feeds: Vec<FeedKeys<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedKeys<'a> {
    pub table: u16,
    pub signs: &'a [u8],
}

impl<'a> Step<'a> {
    /// It brings nothing, and nothing of what it asks for will be pushed to.
    pub fn is_reading_only(&self) -> bool {
        self.pushes.is_empty() && !self.keys.iter().any(|keys| keys.is_training)
    }

    pub fn decode(payload: &'a [u8]) -> Result<Self, Error> {
        let mut bytes = Reader::new(payload);
        let origin = Origin::decode(&mut bytes)?;
        let flags = bytes.u8("the flags of a step")?;
        if flags & !IS_COMMITTED != 0 {
            return Err(Error::value("the flags of a step", u64::from(flags)));
        }
        let num_pushes = limited(bytes.u16("the number of pushes")?)?;
        let mut pushes = Vec::with_capacity(bytes.at_most(num_pushes, MIN_PUSH_BYTES));
        for _ in 0..num_pushes {
            pushes.push(Push::decode(&mut bytes)?);
        }
        let num_keys = limited(bytes.u16("the number of batches")?)?;
        let mut keys = Vec::with_capacity(bytes.at_most(num_keys, MIN_KEYS_BYTES));
        for _ in 0..num_keys {
            keys.push(Keys::decode(&mut bytes)?);
        }
        bytes.end()?;
        Ok(Self {
            origin,
            is_committed: flags & IS_COMMITTED != 0,
            pushes,
            keys,
        })
    }
}

/// Begins a step; then comes `encode_count` of pushes, each push, `encode_count` of keys, and those.
pub fn encode_head(out: &mut Writer<'_>, origin: &Origin, is_committed: bool) {
    origin.encode(out);
    out.u8(if is_committed { IS_COMMITTED } else { 0 });
}

/// How many pushes, parts, keys or feeds follow.
pub fn encode_count(out: &mut Writer<'_>, count: usize) {
    assert!(
        count <= usize::from(MAX_PARTS),
        "a schema has far fewer feeds, a trainer far fewer lanes"
    );
    out.u16(count as u16);
}

/// What a push begins with.
#[derive(Clone, Copy, Debug)]
pub struct PushHead {
    pub lane: u32,
    pub is_last: bool,
    pub is_difference: bool,
    pub precision: Precision,
    pub samples: u32,
}

/// Begins a push; then come `encode_dense`, `encode_count` of parts, each part, `encode_ledger` and
/// `encode_scores`.
pub fn encode_push(out: &mut Writer<'_>, head: &PushHead) {
    out.u32(head.lane);
    let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    out.u8(flag(head.is_last, IS_LAST) | flag(head.is_difference, IS_DIFFERENCE));
    out.u8(head.precision.byte());
    out.u32(head.samples);
}

/// Writes the dense part of a push up to its numbers, and gives room for them.
pub fn encode_dense<'w>(
    out: &'w mut Writer<'_>,
    precision: Precision,
    rate: f32,
    scale: f32,
    count: usize,
) -> &'w mut [u8] {
    out.f32(rate);
    out.f32(scale);
    out.length(count);
    out.room(count * precision.bytes())
}

/// Head of a part; its numbers and counts follow through `encode_part`.
#[derive(Clone, Copy, Debug)]
pub struct PartHead {
    pub ticket: u64,
    pub feed: u16,
    pub table: u16,
    pub rate: f32,
    pub scale: f32,
    pub rows: usize,
    pub width: usize,
}

/// Writes a part up to its numbers, and gives room for them; `encode_counts` must follow.
pub fn encode_part<'w>(
    out: &'w mut Writer<'_>,
    precision: Precision,
    head: &PartHead,
    signs: Option<&[u64]>,
) -> &'w mut [u8] {
    out.u64(head.ticket);
    out.u16(head.feed);
    out.u16(head.table);
    out.f32(head.rate);
    out.f32(head.scale);
    out.length(head.rows);
    out.length(head.width);
    out.u8(u8::from(signs.is_some()));
    if let Some(signs) = signs {
        assert_eq!(signs.len(), head.rows, "each row of a part has its sign");
        out.u64s(signs.iter().copied());
    }
    out.room(head.rows * head.width * precision.bytes())
}

/// Shows and clicks of the rows of a part, in its order; both empty where none are kept.
pub fn encode_counts(out: &mut Writer<'_>, counts: &[(f32, f32)]) {
    out.u8(u8::from(!counts.is_empty()));
    out.f32s(counts.iter().map(|(show, _)| *show));
    out.f32s(counts.iter().map(|(_, click)| *click));
}

pub fn encode_ledger(out: &mut Writer<'_>, entry: &[u8]) {
    out.length(entry.len());
    out.bytes(entry);
}

pub fn encode_scores(
    out: &mut Writer<'_>,
    scores: &[f32],
    labels: &[f32],
    weights: Option<&[f32]>,
    groups: Option<&[u64]>,
) {
    out.length(scores.len());
    out.u8(u8::from(weights.is_some()) | u8::from(groups.is_some()) << 1);
    for values in [Some(scores), Some(labels), weights].into_iter().flatten() {
        assert_eq!(
            values.len(),
            scores.len(),
            "each score has its label and its weight"
        );
        out.f32s(values.iter().copied());
    }
    if let Some(groups) = groups {
        assert_eq!(groups.len(), scores.len(), "each score has its group");
        out.u64s(groups.iter().copied());
    }
}

/// Head of the keys of a batch; `num_feeds` times `encode_feed` follows.
#[derive(Clone, Copy, Debug)]
pub struct KeysHead {
    pub ticket: u64,
    pub when: When,
    pub wants_dense: bool,
    pub is_training: bool,
    pub wants_full_rows: bool,
    pub precision: Precision,
    pub num_feeds: usize,
}

pub fn encode_keys(out: &mut Writer<'_>, head: &KeysHead) {
    let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    out.u64(head.ticket);
    out.u8(flag(head.wants_dense, WANTS_DENSE)
        | flag(head.is_training, IS_TRAINING)
        | flag(head.wants_full_rows, WANTS_FULL_ROWS)
        | flag(head.precision == Precision::Bf16, WANTS_BF16)
        | head.when.flag());
    encode_count(out, head.num_feeds);
}

pub fn encode_feed(out: &mut Writer<'_>, table: u16, signs: impl ExactSizeIterator<Item = u64>) {
    out.u16(table);
    out.length(signs.len());
    out.u64s(signs);
}

impl<'a> Push<'a> {
    fn decode(bytes: &mut Reader<'a>) -> Result<Self, Error> {
        let lane = bytes.u32("the lane")?;
        let flags = bytes.u8("the flags of a push")?;
        if flags & !(IS_LAST | IS_DIFFERENCE) != 0 {
            return Err(Error::value("the flags of a push", u64::from(flags)));
        }
        let precision = Precision::from_byte(bytes.u8("the precision")?)?;
        let samples = bytes.u32("the number of samples")?;
        let (rate, scale) = (bytes.f32("a rate")?, bytes.f32("a scale")?);
        let count = bytes.u32("the number of dense numbers")? as usize;
        let numbers = bytes.elements(count, precision.bytes(), "dense numbers")?;
        let num_parts = limited(bytes.u16("the number of parts")?)?;
        let mut parts = Vec::with_capacity(bytes.at_most(num_parts, MIN_PART_BYTES));
        for _ in 0..num_parts {
            parts.push(Part::decode(bytes, precision)?);
        }
        let length = bytes.u32("the length of the ledger entry")? as usize;
        let ledger = bytes.bytes(length, "the ledger entry")?;
        Ok(Self {
            lane,
            is_last: flags & IS_LAST != 0,
            is_difference: flags & IS_DIFFERENCE != 0,
            precision,
            samples,
            dense: Dense { rate, scale, numbers },
            parts,
            ledger,
            scores: Scores::decode(bytes)?,
        })
    }
}

impl<'a> Part<'a> {
    fn decode(bytes: &mut Reader<'a>, precision: Precision) -> Result<Self, Error> {
        let ticket = bytes.u64("a ticket")?;
        let (feed, table) = (bytes.u16("a feed")?, bytes.u16("a table")?);
        let (rate, scale) = (bytes.f32("a rate")?, bytes.f32("a scale")?);
        let (rows, width) = (bytes.u32("the number of rows")?, bytes.u32("the width of rows")?);
        let count = rows as usize;
        let has_signs = bytes.flag("whether signs follow")?;
        let signs = bytes.elements(if has_signs { count } else { 0 }, 8, "signs")?;
        let numbers = bytes.matrix(rows, width, precision, "gradients")?;
        let has_counts = bytes.flag("whether counts follow")?;
        let counted = if has_counts { count } else { 0 };
        Ok(Self {
            ticket,
            feed,
            table,
            rate,
            scale,
            rows,
            width,
            signs,
            numbers,
            shows: bytes.elements(counted, 4, "shows")?,
            clicks: bytes.elements(counted, 4, "clicks")?,
        })
    }
}

impl<'a> Scores<'a> {
    fn decode(bytes: &mut Reader<'a>) -> Result<Self, Error> {
        let count = bytes.u32("the number of scores")? as usize;
        let has = bytes.u8("what comes with scores")?;
        if has > 3 {
            return Err(Error::value("what comes with scores", u64::from(has)));
        }
        let present = |bit: u8| if has & bit == 0 { 0 } else { count };
        Ok(Self {
            scores: bytes.elements(count, 4, "scores")?,
            labels: bytes.elements(count, 4, "labels")?,
            weights: bytes.elements(present(1), 4, "weights")?,
            groups: bytes.elements(present(2), 8, "groups")?,
        })
    }
}

impl<'a> Keys<'a> {
    fn decode(bytes: &mut Reader<'a>) -> Result<Self, Error> {
        let ticket = bytes.u64("a ticket")?;
        let flags = bytes.u8("the flags of keys")?;
        let known = WANTS_DENSE | IS_TRAINING | WANTS_FULL_ROWS | WANTS_BF16 | IS_LATER | IS_FOUND;
        let when = When::from_flags(flags)?;
        // Only rows that are trained on are found ahead.
        if flags & !known != 0 || when != When::Now && flags & IS_TRAINING == 0 {
            return Err(Error::value("the flags of keys", u64::from(flags)));
        }
        let num_feeds = limited(bytes.u16("the number of feeds")?)?;
        let mut feeds = Vec::with_capacity(bytes.at_most(num_feeds, MIN_FEED_BYTES));
        for _ in 0..num_feeds {
            let table = bytes.u16("a table")?;
            let count = bytes.u32("the number of signs")? as usize;
            let signs = bytes.elements(count, 8, "signs")?;
            feeds.push(FeedKeys { table, signs });
        }
        if when == When::Found && !feeds.is_empty() {
            return Err(Error::value("the number of feeds", feeds.len() as u64));
        }
        Ok(Self {
            ticket,
            when,
            wants_dense: flags & WANTS_DENSE != 0,
            is_training: flags & IS_TRAINING != 0,
            wants_full_rows: flags & WANTS_FULL_ROWS != 0,
            precision: if flags & WANTS_BF16 == 0 {
                Precision::Fp32
            } else {
                Precision::Bf16
            },
            feeds,
        })
    }
}

/// A commit is an origin and nothing else.
pub fn decode_commit(payload: &[u8]) -> Result<Origin, Error> {
    let mut bytes = Reader::new(payload);
    let origin = Origin::decode(&mut bytes)?;
    bytes.end()?;
    Ok(origin)
}

pub(crate) fn limited(count: u16) -> Result<u16, Error> {
    if count <= MAX_PARTS {
        return Ok(count);
    }
    Err(Error::Length {
        found: u64::from(count),
        allowed: u64::from(MAX_PARTS),
    })
}
