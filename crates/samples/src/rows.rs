//! Parsed rows before they are batched: one block of lines, or one window of a shuffle.

use std::ops::Range;

/// How many numbers and slots a row has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub num_dense: usize,
    pub num_labels: usize,
    pub has_weight: bool,
    pub has_group_key: bool,
    /// Slots per group.
    pub slots: Vec<usize>,
}

/// Rows in their order, columnar; row `r` is good only after `commit`.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    count: usize,
    pub(crate) dense: Vec<f32>,
    pub(crate) labels: Vec<f32>,
    pub(crate) weights: Vec<f32>,
    pub(crate) group_keys: Vec<u64>,
    pub(crate) groups: Vec<RowSigns>,
    /// Byte after the row's line, counted from the start of the block.
    pub(crate) ends: Vec<u32>,
    /// Lines of the block up to the row's own, bad ones included.
    pub(crate) lines: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowSigns {
    /// One more than cells: cell `c` has signs `offsets[c]..offsets[c + 1]`.
    pub(crate) offsets: Vec<u32>,
    pub(crate) signs: Vec<u64>,
}

impl Rows {
    pub fn new(shape: &Shape) -> Self {
        let group = RowSigns {
            offsets: vec![0],
            signs: Vec::new(),
        };
        Self {
            groups: vec![group; shape.slots.len()],
            ..Self::default()
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether both hold the same samples, bit for bit, wherever in the text they stood: two ways of parsing
    /// agree.
    pub fn has_same_samples(&self, other: &Self) -> bool {
        let bits = |floats: &[f32]| floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
        self.count == other.count
            && bits(&self.dense) == bits(&other.dense)
            && bits(&self.labels) == bits(&other.labels)
            && bits(&self.weights) == bits(&other.weights)
            && self.group_keys == other.group_keys
            && self.groups == other.groups
    }

    /// Whether no dense value, label or weight is NaN or infinite; no parser may let one through.
    pub fn is_finite(&self) -> bool {
        [&self.dense, &self.labels, &self.weights]
            .into_iter()
            .flatten()
            .all(|float| float.is_finite())
    }

    pub fn clear(&mut self) {
        self.count = 0;
        self.dense.clear();
        self.labels.clear();
        self.weights.clear();
        self.group_keys.clear();
        self.ends.clear();
        self.lines.clear();
        for group in &mut self.groups {
            group.offsets.truncate(1);
            group.signs.clear();
        }
    }

    pub(crate) fn commit(&mut self, end: u32, line: u32) {
        self.count += 1;
        self.ends.push(end);
        self.lines.push(line);
    }

    /// Takes back what a bad row had written before its fault was found.
    pub(crate) fn roll_back(&mut self, shape: &Shape) {
        let rows = self.count;
        self.dense.truncate(rows * shape.num_dense);
        self.labels.truncate(rows * shape.num_labels);
        self.weights.truncate(if shape.has_weight { rows } else { 0 });
        self.group_keys
            .truncate(if shape.has_group_key { rows } else { 0 });
        for (group, &slots) in self.groups.iter_mut().zip(&shape.slots) {
            group.offsets.truncate(rows * slots + 1);
            let kept = group.offsets.last().map_or(0, |&last| last as usize);
            group.signs.truncate(kept);
        }
    }

    /// Appends rows of `other`, which has the same shape; their places in the text are not kept.
    pub(crate) fn append(&mut self, other: &Self, range: Range<usize>, shape: &Shape) {
        self.count += range.len();
        self.dense
            .extend_from_slice(&other.dense[range.start * shape.num_dense..range.end * shape.num_dense]);
        self.labels
            .extend_from_slice(&other.labels[range.start * shape.num_labels..range.end * shape.num_labels]);
        if shape.has_weight {
            self.weights.extend_from_slice(&other.weights[range.clone()]);
        }
        if shape.has_group_key {
            self.group_keys
                .extend_from_slice(&other.group_keys[range.clone()]);
        }
        for ((to, from), &slots) in self.groups.iter_mut().zip(&other.groups).zip(&shape.slots) {
            let cells = range.start * slots..range.end * slots;
            let first = from.offsets[cells.start];
            let last = from.offsets[cells.end];
            let base = to.signs.len() as u32;
            to.signs
                .extend_from_slice(&from.signs[first as usize..last as usize]);
            to.offsets.extend(
                from.offsets[cells.start + 1..=cells.end]
                    .iter()
                    .map(|&offset| offset - first + base),
            );
        }
    }
}
