//! Steps of every shape.

use clickmill_wire::step::{
    self, Keys, KeysHead, Origin, Part, PartHead, Push, PushHead, Scores, Step, When,
};
use clickmill_wire::{Error, Frame, Precision, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{f32_bytes, precisions, u64_bytes};

#[derive(Clone, Debug)]
pub(crate) struct MadeStep {
    origin: Origin,
    is_committed: bool,
    pushes: Vec<MadePush>,
    keys: Vec<MadeKeys>,
}

#[derive(Clone, Debug)]
struct MadePush {
    head: PushHead,
    dense: MadeDense,
    parts: Vec<MadePart>,
    ledger: Vec<u8>,
    scores: MadeScores,
}

#[derive(Clone, Debug)]
struct MadeDense {
    rate: f32,
    scale: f32,
    numbers: Vec<u8>,
}

#[derive(Clone, Debug)]
struct MadePart {
    head: PartHead,
    signs: Option<Vec<u64>>,
    numbers: Vec<u8>,
    counts: Vec<(f32, f32)>,
}

#[derive(Clone, Debug)]
struct MadeScores {
    scores: Vec<f32>,
    labels: Vec<f32>,
    weights: Option<Vec<f32>>,
    groups: Option<Vec<u64>>,
}

#[derive(Clone, Debug)]
struct MadeKeys {
    ticket: u64,
    when: When,
    flags: [bool; 3],
    precision: Precision,
    feeds: Vec<(u16, Vec<u64>)>,
}

impl MadeStep {
    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut frame = Frame::default();
        let mut out = frame.begin();
        step::encode_head(&mut out, &self.origin, self.is_committed);
        step::encode_count(&mut out, self.pushes.len());
        for push in &self.pushes {
            push.write(&mut out);
        }
        step::encode_count(&mut out, self.keys.len());
        for keys in &self.keys {
            keys.write(&mut out);
        }
        frame.payload().to_vec()
    }

    fn check(&self, read: &Step<'_>) {
        assert_eq!((read.origin, read.is_committed), (self.origin, self.is_committed));
        assert_eq!(read.pushes.len(), self.pushes.len());
        for (read, made) in read.pushes.iter().zip(&self.pushes) {
            made.check(read);
        }
        assert_eq!(read.keys.len(), self.keys.len());
        for (read, made) in read.keys.iter().zip(&self.keys) {
            made.check(read);
        }
    }
}

impl MadeKeys {
    fn write(&self, out: &mut Writer<'_>) {
        let [wants_dense, is_training, wants_full_rows] = self.flags;
        let head = KeysHead {
            ticket: self.ticket,
            when: self.when,
            wants_dense,
            is_training,
            wants_full_rows,
            precision: self.precision,
            num_feeds: self.feeds.len(),
        };
        step::encode_keys(out, &head);
        for (table, signs) in &self.feeds {
            step::encode_feed(out, *table, signs.iter().copied());
        }
    }

    fn check(&self, read: &Keys<'_>) {
        let flags = [read.wants_dense, read.is_training, read.wants_full_rows];
        let found = (read.ticket, read.when, flags, read.precision);
        assert_eq!(found, (self.ticket, self.when, self.flags, self.precision));
        let feeds = self.feeds.iter().map(|(table, signs)| (*table, u64_bytes(signs)));
        let found = read.feeds.iter().map(|feed| (feed.table, feed.signs.to_vec()));
        assert!(found.eq(feeds));
    }
}

impl MadePush {
    fn write(&self, out: &mut Writer<'_>) {
        let precision = self.head.precision;
        step::encode_push(out, &self.head);
        let MadeDense { rate, scale, numbers } = &self.dense;
        step::encode_dense(out, precision, *rate, *scale, numbers.len() / precision.bytes())
            .copy_from_slice(numbers);
        step::encode_count(out, self.parts.len());
        for part in &self.parts {
            step::encode_part(out, precision, &part.head, part.signs.as_deref())
                .copy_from_slice(&part.numbers);
            step::encode_counts(out, &part.counts);
        }
        step::encode_ledger(out, &self.ledger);
        let MadeScores {
            scores,
            labels,
            weights,
            groups,
        } = &self.scores;
        step::encode_scores(out, scores, labels, weights.as_deref(), groups.as_deref());
    }

    fn check(&self, read: &Push<'_>) {
        let head = &self.head;
        assert_eq!((read.lane, read.samples), (head.lane, head.samples));
        assert_eq!(
            (read.is_last, read.is_difference),
            (head.is_last, head.is_difference)
        );
        assert_eq!(read.precision, head.precision);
        let dense = (read.dense.rate, read.dense.scale, read.dense.numbers);
        assert_eq!(
            dense,
            (self.dense.rate, self.dense.scale, &self.dense.numbers[..])
        );
        assert_eq!(read.parts.len(), self.parts.len());
        for (read, made) in read.parts.iter().zip(&self.parts) {
            made.check(read);
        }
        assert_eq!(read.ledger, self.ledger);
        let MadeScores {
            scores,
            labels,
            weights,
            groups,
        } = &self.scores;
        let expected = Scores {
            scores: &f32_bytes(scores),
            labels: &f32_bytes(labels),
            weights: &f32_bytes(weights.as_deref().unwrap_or_default()),
            groups: &u64_bytes(groups.as_deref().unwrap_or_default()),
        };
        assert_eq!(read.scores, expected);
    }
}

impl MadePart {
    fn check(&self, read: &Part<'_>) {
        let (shows, clicks): (Vec<_>, Vec<_>) = self.counts.iter().copied().unzip();
        let expected = Part {
            ticket: self.head.ticket,
            feed: self.head.feed,
            table: self.head.table,
            rate: self.head.rate,
            scale: self.head.scale,
            rows: self.head.rows as u32,
            width: self.head.width as u32,
            signs: &u64_bytes(self.signs.as_deref().unwrap_or_default()),
            numbers: &self.numbers,
            shows: &f32_bytes(&shows),
            clicks: &f32_bytes(&clicks),
        };
        assert_eq!(*read, expected);
    }
}

fn numbers() -> impl Strategy<Value = f32> {
    -1e30_f32..1e30
}

fn packed(count: usize, precision: Precision) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), count * precision.bytes())
}

fn parts(precision: Precision) -> impl Strategy<Value = MadePart> {
    let shape = (0..6_usize, 1..5_usize, any::<(bool, bool)>());
    shape.prop_flat_map(move |(rows, width, (has_signs, has_counts))| {
        let some = |is_there: bool| if is_there { rows } else { 0 };
        (
            (any::<u64>(), any::<u16>(), any::<u16>(), numbers(), numbers()),
            vec(any::<u64>(), some(has_signs)),
            packed(rows * width, precision),
            vec((numbers(), numbers()), some(has_counts)),
        )
            .prop_map(
                move |((ticket, feed, table, rate, scale), signs, numbers, counts)| {
                    let head = PartHead {
                        ticket,
                        feed,
                        table,
                        rate,
                        scale,
                        rows,
                        width,
                    };
                    MadePart {
                        head,
                        signs: has_signs.then_some(signs),
                        numbers,
                        counts,
                    }
                },
            )
    })
}

fn scores() -> impl Strategy<Value = MadeScores> {
    let shape = (0..6_usize, any::<(bool, bool)>());
    shape.prop_flat_map(|(count, (has_weights, has_groups))| {
        (
            vec(numbers(), count),
            vec(numbers(), count),
            vec(numbers(), count),
            vec(any::<u64>(), count),
        )
            .prop_map(move |(scores, labels, weights, groups)| MadeScores {
                scores,
                labels,
                weights: has_weights.then_some(weights),
                groups: has_groups.then_some(groups),
            })
    })
}

fn pushes() -> impl Strategy<Value = MadePush> {
    (precisions(), 0..9_usize).prop_flat_map(|(precision, count)| {
        (
            any::<(u32, bool, bool, u32)>(),
            (numbers(), numbers(), packed(count, precision)),
            vec(parts(precision), 0..4),
            vec(any::<u8>(), 0..20),
            scores(),
        )
            .prop_map(
                move |(
                    (lane, is_last, is_difference, samples),
                    (rate, scale, numbers),
                    parts,
                    ledger,
                    scores,
                )| MadePush {
                    head: PushHead {
                        lane,
                        is_last,
                        is_difference,
                        precision,
                        samples,
                    },
                    dense: MadeDense { rate, scale, numbers },
                    parts,
                    ledger,
                    scores,
                },
            )
    })
}

fn keys() -> impl Strategy<Value = MadeKeys> {
    let feed = (any::<u16>(), vec(any::<u64>(), 0..6));
    let when = prop_oneof![Just(When::Now), Just(When::Later), Just(When::Found)];
    let head = (any::<u64>(), when, any::<[bool; 3]>(), precisions());
    (head, vec(feed, 0..5)).prop_map(|((ticket, when, mut flags, precision), mut feeds)| {
        // What is found ahead is trained on, and what was found needs no keys.
        flags[1] |= when != When::Now;
        if when == When::Found {
            feeds.clear();
        }
        MadeKeys {
            ticket,
            when,
            flags,
            precision,
            feeds,
        }
    })
}

fn origins() -> impl Strategy<Value = Origin> {
    any::<(u64, u64, u64)>().prop_map(|(epoch, incarnation, sequence)| Origin {
        epoch,
        incarnation,
        sequence,
    })
}

pub(crate) fn steps() -> impl Strategy<Value = MadeStep> {
    (origins(), any::<bool>(), vec(pushes(), 0..3), vec(keys(), 0..3)).prop_map(
        |(origin, is_committed, pushes, keys)| MadeStep {
            origin,
            is_committed,
            pushes,
            keys,
        },
    )
}

const ORIGIN: Origin = Origin {
    epoch: 1,
    incarnation: 2,
    sequence: 3,
};

/// What stands before the number of pushes.
const HEAD_BYTES: usize = 24 + 1;

/// A push of one part whose head is `head`, and nothing behind it.
fn step_of(head: &PartHead) -> Vec<u8> {
    let mut frame = Frame::default();
    let mut out = frame.begin();
    step::encode_head(&mut out, &ORIGIN, false);
    step::encode_count(&mut out, 1);
    let push = PushHead {
        lane: 0,
        is_last: false,
        is_difference: false,
        precision: Precision::Bf16,
        samples: 1,
    };
    step::encode_push(&mut out, &push);
    step::encode_dense(&mut out, Precision::Bf16, 0.1, 1.0, 0);
    step::encode_count(&mut out, 1);
    out.u64(head.ticket);
    out.u16(head.feed);
    out.u16(head.table);
    out.f32(head.rate);
    out.f32(head.scale);
    out.length(head.rows);
    out.length(head.width);
    out.u8(0);
    out.u8(0);
    step::encode_ledger(&mut out, b"");
    step::encode_scores(&mut out, &[], &[], None, None);
    step::encode_count(&mut out, 0);
    frame.payload().to_vec()
}

#[test]
fn rows_that_no_byte_stands_behind_are_refused() {
    let head = |rows: usize, width: usize| PartHead {
        ticket: 1,
        feed: 0,
        table: 0,
        rate: 0.1,
        scale: 1.0,
        rows,
        width,
    };
    let decoded = |rows, width| Step::decode(&step_of(&head(rows, width))).map(|_| ());
    assert_eq!(decoded(0, 0), Ok(()));
    assert!(matches!(decoded(u32::MAX as usize, 0), Err(Error::Value { .. })));
    assert!(matches!(
        decoded(u32::MAX as usize, u32::MAX as usize),
        Err(Error::Short { .. })
    ));
}

#[test]
fn more_pushes_than_a_trainer_can_have_lanes_are_refused() {
    let mut payload = empty().payload();
    payload[HEAD_BYTES..HEAD_BYTES + 2].copy_from_slice(&4097_u16.to_le_bytes());
    assert!(matches!(Step::decode(&payload), Err(Error::Length { .. })));
}

fn empty() -> MadeStep {
    MadeStep {
        origin: ORIGIN,
        is_committed: false,
        pushes: Vec::new(),
        keys: Vec::new(),
    }
}

#[test]
fn a_flag_that_means_nothing_is_refused() {
    let payload = empty().payload();
    let mut unknown = payload.clone();
    unknown[HEAD_BYTES - 1] |= 1 << 7;
    assert!(Step::decode(&payload).is_ok());
    assert!(matches!(Step::decode(&unknown), Err(Error::Value { .. })));
}

proptest! {
    #[test]
    fn a_step_is_read_as_it_was_written(made in steps()) {
        let payload = made.payload();
        made.check(&Step::decode(&payload).unwrap());
    }

    #[test]
    fn a_commit_is_read_as_it_was_written(origin in origins()) {
        let mut frame = Frame::default();
        origin.encode(&mut frame.begin());
        prop_assert_eq!(step::decode_commit(frame.payload()).unwrap(), origin);
    }
}
