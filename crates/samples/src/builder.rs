//! Rows to one batch: copies the numbers, deduplicates the signs.

use std::ops::Range;

use clickmill_types::Schema;

use crate::batch::{Batch, SignGroup};
use crate::dedup::Dedup;
use crate::plan::shape_of;
use crate::position::Position;
use crate::rows::{Rows, Shape};

pub(crate) struct BatchBuilder {
    shape: Shape,
    batch: Batch,
    dedups: Vec<Dedup>,
    /// Signs of gathered rows on their way to deduplication.
    gathered: Vec<u64>,
}

impl BatchBuilder {
    pub(crate) fn new(shape: Shape) -> Self {
        let dedups = shape.slots.iter().map(|_| Dedup::new()).collect();
        let batch = empty(&shape, None);
        Self {
            shape,
            batch,
            dedups,
            gathered: Vec::new(),
        }
    }

    pub(crate) fn num_rows(&self) -> usize {
        self.batch.num_rows
    }

    pub(crate) fn append(&mut self, rows: &Rows, range: Range<usize>) {
        let (shape, batch) = (&self.shape, &mut self.batch);
        batch.num_rows += range.len();
        batch
            .dense
            .extend_from_slice(&rows.dense[range.start * shape.num_dense..range.end * shape.num_dense]);
        batch
            .labels
            .extend_from_slice(&rows.labels[range.start * shape.num_labels..range.end * shape.num_labels]);
        if shape.has_weight {
            batch.weights.extend_from_slice(&rows.weights[range.clone()]);
        }
        if shape.has_group_key {
            batch
                .group_keys
                .extend_from_slice(&rows.group_keys[range.clone()]);
        }
        for ((group, from), dedup) in batch.groups.iter_mut().zip(&rows.groups).zip(&mut self.dedups) {
            let cells = range.start * group.num_slots..range.end * group.num_slots;
            let (first, last) = (from.offsets[cells.start], from.offsets[cells.end]);
            let base = group.inverse.len() as u32;
            group.offsets.extend(
                from.offsets[cells.start + 1..=cells.end]
                    .iter()
                    .map(|&offset| offset - first + base),
            );
            dedup.push(
                &from.signs[first as usize..last as usize],
                &mut group.unique,
                &mut group.inverse,
            );
        }
    }

    /// Appends single rows in the order given; their signs are gathered first and deduplicated at once.
    pub(crate) fn gather(&mut self, rows: &Rows, order: &[u32]) {
        let (shape, batch) = (&self.shape, &mut self.batch);
        let order = || order.iter().map(|&row| row as usize);
        batch.num_rows += order().len();
        for row in order() {
            let dense = row * shape.num_dense..(row + 1) * shape.num_dense;
            batch.dense.extend_from_slice(&rows.dense[dense]);
            let labels = row * shape.num_labels..(row + 1) * shape.num_labels;
            batch.labels.extend_from_slice(&rows.labels[labels]);
        }
        if shape.has_weight {
            batch.weights.extend(order().map(|row| rows.weights[row]));
        }
        if shape.has_group_key {
            batch.group_keys.extend(order().map(|row| rows.group_keys[row]));
        }
        for ((group, from), dedup) in batch.groups.iter_mut().zip(&rows.groups).zip(&mut self.dedups) {
            self.gathered.clear();
            let base = group.inverse.len();
            for row in order() {
                let cells = row * group.num_slots..(row + 1) * group.num_slots;
                let (first, last) = (from.offsets[cells.start], from.offsets[cells.end]);
                let start = (base + self.gathered.len()) as u32;
                group.offsets.extend(
                    from.offsets[cells.start + 1..=cells.end]
                        .iter()
                        .map(|&offset| offset - first + start),
                );
                self.gathered
                    .extend_from_slice(&from.signs[first as usize..last as usize]);
            }
            dedup.push(&self.gathered, &mut group.unique, &mut group.inverse);
        }
    }

    /// The batch so far; the next one gets buffers of its size.
    pub(crate) fn finish(&mut self, position: Position) -> Batch {
        let next = empty(&self.shape, Some(&self.batch));
        let mut batch = std::mem::replace(&mut self.batch, next);
        batch.position = position;
        for dedup in &mut self.dedups {
            dedup.start();
        }
        batch
    }
}

impl Batch {
    /// A batch without samples, whose position means nothing.
    pub fn empty(schema: &Schema) -> Self {
        empty(&shape_of(schema), None)
    }
}

fn empty(shape: &Shape, like: Option<&Batch>) -> Batch {
    let room = |pick: fn(&Batch) -> usize| like.map_or(0, pick);
    let groups = shape
        .slots
        .iter()
        .enumerate()
        .map(|(index, &num_slots)| {
            let last = like.map(|batch| &batch.groups[index]);
            let mut offsets = Vec::with_capacity(last.map_or(1, |group| group.offsets.len()));
            offsets.push(0);
            SignGroup {
                num_slots,
                offsets,
                inverse: Vec::with_capacity(last.map_or(0, |group| group.inverse.len())),
                unique: Vec::with_capacity(last.map_or(0, |group| group.unique.len())),
            }
        })
        .collect();
    Batch {
        num_rows: 0,
        num_dense: shape.num_dense,
        num_labels: shape.num_labels,
        dense: Vec::with_capacity(room(|batch| batch.dense.len())),
        labels: Vec::with_capacity(room(|batch| batch.labels.len())),
        weights: Vec::with_capacity(room(|batch| batch.weights.len())),
        group_keys: Vec::with_capacity(room(|batch| batch.group_keys.len())),
        groups,
        position: Position::default(),
    }
}
