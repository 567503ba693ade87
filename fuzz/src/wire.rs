//! Payloads to start from, and payloads written again from what was read.

use clickmill_wire::hello::{Hello, Opening, Return, Role};
use clickmill_wire::rows::{self, Rows, RowsHead};
use clickmill_wire::step::{self, Keys, KeysHead, Origin, Part, PartHead, Push, PushHead, Step};
use clickmill_wire::{Frame, Kind, Precision, Writer};

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks();
    numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn signs(bytes: &[u8]) -> Vec<u64> {
    let (signs, _) = bytes.as_chunks();
    signs.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// The payload of a step that was read.
pub fn step_payload(step: &Step<'_>) -> Vec<u8> {
    let mut frame = Frame::default();
    let mut out = frame.begin();
    step::encode_head(&mut out, &step.origin, step.is_committed);
    step::encode_count(&mut out, step.pushes.len());
    for push in &step.pushes {
        write_push(&mut out, push);
    }
    step::encode_count(&mut out, step.keys.len());
    for keys in &step.keys {
        write_keys(&mut out, keys);
    }
    frame.payload().to_vec()
}

fn write_push(out: &mut Writer<'_>, push: &Push<'_>) {
    let precision = push.precision;
    let head = PushHead {
        lane: push.lane,
        is_last: push.is_last,
        is_difference: push.is_difference,
        precision,
        samples: push.samples,
    };
    step::encode_push(out, &head);
    let count = push.dense.numbers.len() / precision.bytes();
    step::encode_dense(out, precision, push.dense.rate, push.dense.scale, count)
        .copy_from_slice(push.dense.numbers);
    step::encode_count(out, push.parts.len());
    for part in &push.parts {
        write_part(out, precision, part);
    }
    step::encode_ledger(out, push.ledger);
    let scores = &push.scores;
    let weights = (!scores.weights.is_empty()).then(|| floats(scores.weights));
    let groups = (!scores.groups.is_empty()).then(|| signs(scores.groups));
    step::encode_scores(
        out,
        &floats(scores.scores),
        &floats(scores.labels),
        weights.as_deref(),
        groups.as_deref(),
    );
}

fn write_part(out: &mut Writer<'_>, precision: Precision, part: &Part<'_>) {
    let head = PartHead {
        ticket: part.ticket,
        feed: part.feed,
        table: part.table,
        rate: part.rate,
        scale: part.scale,
        rows: part.rows as usize,
        width: part.width as usize,
    };
    let signs = (!part.signs.is_empty()).then(|| signs(part.signs));
    step::encode_part(out, precision, &head, signs.as_deref()).copy_from_slice(part.numbers);
    let counts = floats(part.shows).into_iter().zip(floats(part.clicks));
    step::encode_counts(out, &counts.collect::<Vec<_>>());
}

fn write_keys(out: &mut Writer<'_>, keys: &Keys<'_>) {
    let head = KeysHead {
        ticket: keys.ticket,
        when: keys.when,
        wants_dense: keys.wants_dense,
        is_training: keys.is_training,
        wants_full_rows: keys.wants_full_rows,
        precision: keys.precision,
        num_feeds: keys.feeds.len(),
    };
    step::encode_keys(out, &head);
    for feed in &keys.feeds {
        step::encode_feed(out, feed.table, signs(feed.signs).into_iter());
    }
}

/// The payload of rows that were read.
pub fn rows_payload(read: &Rows<'_>) -> Vec<u8> {
    let mut frame = Frame::default();
    let mut out = frame.begin();
    let precision = read.head.precision;
    rows::encode_head(&mut out, &read.head);
    let count = read.dense.map(|numbers| numbers.len() / precision.bytes());
    rows::encode_dense(&mut out, precision, count).copy_from_slice(read.dense.unwrap_or_default());
    rows::encode_num_feeds(&mut out, read.feeds.len());
    for feed in &read.feeds {
        rows::encode_feed(&mut out, precision, feed.rows as usize, feed.width as usize)
            .copy_from_slice(feed.numbers);
    }
    frame.payload().to_vec()
}

/// A frame around `payload`.
pub fn framed(kind: Kind, request: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Frame::default();
    frame.begin().bytes(payload);
    frame
        .finish(kind, request)
        .expect("inputs are far below the limit")
        .to_vec()
}

/// Steps with and without signs, counts, weights and groups, in both precisions; one that only asks.
pub fn step_seeds() -> Vec<Vec<u8>> {
    let origin = Origin {
        epoch: 1,
        incarnation: 2,
        sequence: 3,
    };
    let keys = Keys {
        ticket: 6,
        when: step::When::Later,
        wants_dense: true,
        is_training: true,
        wants_full_rows: false,
        precision: Precision::Bf16,
        feeds: vec![step::FeedKeys {
            table: 0,
            signs: &[7; 16],
        }],
    };
    let asks = Step {
        origin,
        is_committed: false,
        pushes: Vec::new(),
        keys: vec![keys.clone()],
    };
    let part = |size: usize, is_whole: bool| Part {
        ticket: 5,
        feed: 0,
        table: 1,
        rate: 0.1,
        scale: 1.0,
        rows: 2,
        width: 2,
        signs: if is_whole { &[9; 16] } else { &[] },
        numbers: &[1; 16][..4 * size],
        shows: if is_whole { &[1; 8] } else { &[] },
        clicks: if is_whole { &[2; 8] } else { &[] },
    };
    let push = |precision: Precision, is_whole: bool| Push {
        lane: 3,
        is_last: false,
        is_difference: is_whole,
        precision,
        samples: 2,
        dense: step::Dense {
            rate: 0.1,
            scale: 0.5,
            numbers: &[3; 12][..3 * precision.bytes()],
        },
        parts: vec![part(precision.bytes(), is_whole), part(precision.bytes(), false)],
        ledger: br#"{"unit": 3}"#,
        scores: step::Scores {
            scores: &[4; 8],
            labels: &[5; 8],
            weights: if is_whole { &[6; 8] } else { &[] },
            groups: if is_whole { &[7; 16] } else { &[] },
        },
    };
    let full = |precision, is_whole| Step {
        pushes: vec![push(precision, is_whole)],
        is_committed: !is_whole,
        ..asks.clone()
    };
    let steps = [
        full(Precision::Fp32, true),
        full(Precision::Bf16, false),
        asks.clone(),
    ];
    steps.iter().map(step_payload).collect()
}

pub fn rows_seeds() -> Vec<Vec<u8>> {
    let rows = |precision: Precision, dense| {
        let feed = rows::FeedRows {
            rows: 2,
            width: 2,
            numbers: &[1; 16][..4 * precision.bytes()],
        };
        rows_payload(&Rows {
            head: RowsHead {
                step: 1,
                fence: 2,
                precision,
            },
            dense,
            feeds: vec![feed, feed],
        })
    };
    vec![rows(Precision::Fp32, None), rows(Precision::Bf16, Some(&[1; 8]))]
}

pub fn hello_seeds() -> Vec<Vec<u8>> {
    let hello = Hello {
        role: Role::Trainer,
        name: "host-7".to_owned(),
        features: ["bf16".to_owned()].into(),
    };
    let nonce = "0123456789abcdef0123456789abcdef".to_owned();
    let opening = Opening {
        protocol: 1,
        nonce: nonce.clone(),
        hello: hello.clone(),
    };
    let returned = Return {
        protocol: 1,
        nonce: nonce.clone(),
        hello,
        proof: nonce.repeat(2),
    };
    let texts = [serde_json::to_vec(&opening), serde_json::to_vec(&returned)];
    texts.map(|text| text.expect("plain data")).to_vec()
}

pub fn frame_seeds() -> Vec<Vec<u8>> {
    let step = &step_seeds()[0];
    vec![
        framed(Kind::Hello, 0, &hello_seeds()[0]),
        framed(Kind::Step, 7, step),
        framed(Kind::Held, u64::MAX, b""),
    ]
}
