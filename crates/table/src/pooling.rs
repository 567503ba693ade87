//! From unique rows to what a model sees, and its gradients back.
//!
//! Pure functions over slices: U unique rows of width D, B samples, S slots of the group, P pooled slots,
//! L longest sequence. Gradients are added in the order of samples, slots and occurrences, so that a sum
//! is the same in every run.

use clickmill_types::schema::Pooling;

use crate::Error;
use crate::dimension::{width, with_dimension};

/// Which rows each sample has in each slot of a group: sample b, slot s has the unique rows
/// `inverse[offsets[b * S + s]..offsets[b * S + s + 1]]`.
#[derive(Clone, Copy)]
pub struct Occurrences<'a> {
    offsets: &'a [u32],
    inverse: &'a [u32],
    num_slots: usize,
    has_one_each: bool,
}

/// One slot to be pooled: its position in the group and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PooledSlot {
    pub position: usize,
    pub pooling: Pooling,
}

impl<'a> Occurrences<'a> {
    /// Checks what the kernels rely on: offsets ascend within `inverse`, which stays below `num_unique`.
    pub fn new(
        offsets: &'a [u32],
        inverse: &'a [u32],
        num_slots: usize,
        num_unique: usize,
    ) -> Result<Self, Error> {
        let [first, .., last] = offsets else {
            return match offsets {
                [only] if *only == 0 && inverse.is_empty() => Ok(Self {
                    offsets,
                    inverse,
                    num_slots,
                    has_one_each: true,
                }),
                _ => Err(Error::argument(
                    "offsets need one number more than samples times slots",
                )),
            };
        };
        if num_slots == 0 || !(offsets.len() - 1).is_multiple_of(num_slots) {
            return Err(Error::argument(format!(
                "{} offsets do not fit samples of {num_slots} slots",
                offsets.len()
            )));
        }
        let ascends = offsets
            .windows(2)
            .map(|pair| u32::from(pair[0] > pair[1]))
            .sum::<u32>()
            == 0;
        if *first != 0 || *last as usize != inverse.len() || !ascends {
            return Err(Error::argument(format!(
                "offsets must ascend from 0 to the {} occurrences",
                inverse.len()
            )));
        }
        let largest = inverse
            .iter()
            .copied()
            .max()
            .map_or(0, |largest| largest as usize + 1);
        if largest > num_unique {
            return Err(Error::argument(format!(
                "an occurrence names row {}, but there are {num_unique}",
                largest - 1
            )));
        }
        let has_one_each = inverse.len() == offsets.len() - 1
            && offsets
                .iter()
                .enumerate()
                .map(|(at, &offset)| u32::from(offset as usize != at))
                .sum::<u32>()
                == 0;
        Ok(Self {
            offsets,
            inverse,
            num_slots,
            has_one_each,
        })
    }

    pub fn num_samples(&self) -> usize {
        (self.offsets.len() - 1).checked_div(self.num_slots).unwrap_or(0)
    }

    #[inline(always)]
    fn of(&self, sample: usize, slot: usize) -> &'a [u32] {
        let at = sample * self.num_slots + slot;
        &self.inverse[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    fn check_samples(&self, first_sample: usize, num_samples: usize) -> Result<(), Error> {
        if first_sample
            .checked_add(num_samples)
            .is_some_and(|end| end <= self.num_samples())
        {
            return Ok(());
        }
        Err(Error::argument(format!(
            "samples {first_sample} to {} are asked for, but there are {}",
            first_sample.saturating_add(num_samples),
            self.num_samples()
        )))
    }

    fn check_slots(&self, slots: &[PooledSlot]) -> Result<(), Error> {
        for slot in slots {
            self.check_position(slot.position)?;
            if slot.pooling == Pooling::None {
                return Err(Error::argument(
                    "a slot without pooling is a sequence; use `sequence`",
                ));
            }
        }
        Ok(())
    }

    fn check_position(&self, position: usize) -> Result<(), Error> {
        if position < self.num_slots {
            return Ok(());
        }
        Err(Error::argument(format!(
            "slot position {position} of a group with {} slots",
            self.num_slots
        )))
    }

    /// Whether the pooled slots are simply all occurrences in their order.
    fn is_gather(&self, slots: &[PooledSlot]) -> bool {
        self.has_one_each
            && slots.len() == self.num_slots
            && slots.iter().enumerate().all(|(at, slot)| slot.position == at)
    }
}

fn row<const D: usize>(rows: &[f32], dim: usize, number: u32) -> &[f32] {
    let dim = width::<D>(dim);
    &rows[number as usize * dim..][..dim]
}

fn row_mut<const D: usize>(rows: &mut [f32], dim: usize, number: u32) -> &mut [f32] {
    let dim = width::<D>(dim);
    &mut rows[number as usize * dim..][..dim]
}

fn num_samples(len: usize, per_sample: usize) -> Result<usize, Error> {
    if per_sample == 0 || !len.is_multiple_of(per_sample) {
        return Err(Error::argument(format!(
            "{len} numbers are no whole number of samples of {per_sample}"
        )));
    }
    Ok(len / per_sample)
}

/// Pools the rows `values` [U,D] to `out` [B',P,D], for the samples from `first_sample` on.
pub(crate) fn pool(
    values: &[f32],
    dim: usize,
    occurrences: &Occurrences<'_>,
    first_sample: usize,
    slots: &[PooledSlot],
    out: &mut [f32],
) -> Result<(), Error> {
    if slots.is_empty() && out.is_empty() {
        return Ok(());
    }
    let count = num_samples(out.len(), slots.len() * dim)?;
    occurrences.check_slots(slots)?;
    occurrences.check_samples(first_sample, count)?;
    with_dimension!(dim, D => pool_width::<D>(values, dim, occurrences, first_sample, slots, out));
    Ok(())
}

fn pool_width<const D: usize>(
    values: &[f32],
    dim: usize,
    occurrences: &Occurrences<'_>,
    first_sample: usize,
    slots: &[PooledSlot],
    out: &mut [f32],
) {
    let dim = width::<D>(dim);
    if occurrences.is_gather(slots) {
        let from = first_sample * slots.len();
        for (target, &number) in out.chunks_exact_mut(dim).zip(&occurrences.inverse[from..]) {
            target.copy_from_slice(row::<D>(values, dim, number));
        }
        return;
    }
    for (at, sample_out) in out.chunks_exact_mut(slots.len() * dim).enumerate() {
        for (slot, target) in slots.iter().zip(sample_out.chunks_exact_mut(dim)) {
            let numbers = occurrences.of(first_sample + at, slot.position);
            pool_one::<D>(values, dim, numbers, slot.pooling, target);
        }
    }
}

#[inline(always)]
fn pool_one<const D: usize>(
    values: &[f32],
    dim: usize,
    numbers: &[u32],
    pooling: Pooling,
    target: &mut [f32],
) {
    let [first, rest @ ..] = numbers else {
        target.fill(0.0);
        return;
    };
    target.copy_from_slice(row::<D>(values, dim, *first));
    for &number in rest {
        let source = row::<D>(values, dim, number);
        if pooling == Pooling::Max {
            for (target, &value) in target.iter_mut().zip(source) {
                *target = if value > *target { value } else { *target };
            }
        } else {
            for (target, &value) in target.iter_mut().zip(source) {
                *target += value;
            }
        }
    }
    if pooling == Pooling::Mean && !rest.is_empty() {
        let share = 1.0 / numbers.len() as f32;
        for value in target.iter_mut() {
            *value *= share;
        }
    }
}

/// Adds the gradients `out_gradients` [B',P,D] of a `pool` to `gradients` [U,D].
pub(crate) fn unpool(
    values: &[f32],
    dim: usize,
    occurrences: &Occurrences<'_>,
    first_sample: usize,
    slots: &[PooledSlot],
    out_gradients: &[f32],
    gradients: &mut [f32],
) -> Result<(), Error> {
    if slots.is_empty() && out_gradients.is_empty() {
        return Ok(());
    }
    let count = num_samples(out_gradients.len(), slots.len() * dim)?;
    occurrences.check_slots(slots)?;
    occurrences.check_samples(first_sample, count)?;
    with_dimension!(dim, D => {
        unpool_width::<D>(values, dim, occurrences, first_sample, slots, out_gradients, gradients);
    });
    Ok(())
}

fn unpool_width<const D: usize>(
    values: &[f32],
    dim: usize,
    occurrences: &Occurrences<'_>,
    first_sample: usize,
    slots: &[PooledSlot],
    out_gradients: &[f32],
    gradients: &mut [f32],
) {
    let dim = width::<D>(dim);
    if occurrences.is_gather(slots) {
        let from = first_sample * slots.len();
        for (source, &number) in out_gradients.chunks_exact(dim).zip(&occurrences.inverse[from..]) {
            add(row_mut::<D>(gradients, dim, number), source, 1.0);
        }
        return;
    }
    for (at, sample) in out_gradients.chunks_exact(slots.len() * dim).enumerate() {
        for (slot, source) in slots.iter().zip(sample.chunks_exact(dim)) {
            let numbers = occurrences.of(first_sample + at, slot.position);
            match slot.pooling {
                Pooling::Max if numbers.len() > 1 => {
                    unpool_max::<D>(values, dim, numbers, source, gradients);
                }
                Pooling::Mean => {
                    let share = 1.0 / numbers.len() as f32;
                    for &number in numbers {
                        add(row_mut::<D>(gradients, dim, number), source, share);
                    }
                }
                Pooling::Sum | Pooling::Max | Pooling::None => {
                    for &number in numbers {
                        add(row_mut::<D>(gradients, dim, number), source, 1.0);
                    }
                }
            }
        }
    }
}

/// Each element's gradient goes to the occurrence that was the largest, the first of equals.
fn unpool_max<const D: usize>(
    values: &[f32],
    dim: usize,
    numbers: &[u32],
    source: &[f32],
    gradients: &mut [f32],
) {
    for (element, &gradient) in source.iter().enumerate() {
        let mut best = numbers[0];
        for &number in &numbers[1..] {
            if row::<D>(values, dim, number)[element] > row::<D>(values, dim, best)[element] {
                best = number;
            }
        }
        row_mut::<D>(gradients, dim, best)[element] += gradient;
    }
}

#[inline(always)]
fn add(target: &mut [f32], source: &[f32], share: f32) {
    for (target, &value) in target.iter_mut().zip(source) {
        *target += value * share;
    }
}

/// Writes the rows of a slot one behind the other to `out` [B',L,D], zeros behind the last, and the number
/// of rows of each sample to `lengths` [B'].
pub(crate) fn sequence(
    values: &[f32],
    dim: usize,
    occurrences: &Occurrences<'_>,
    first_sample: usize,
    position: usize,
    out: &mut [f32],
    lengths: &mut [i64],
) -> Result<(), Error> {
    let per_sample = sequence_shape(occurrences, first_sample, position, dim, out.len(), lengths.len())?;
    if per_sample == 0 {
        return Ok(());
    }
    with_dimension!(dim, D => {
        for (at, (sample, length)) in out.chunks_exact_mut(per_sample).zip(lengths).enumerate() {
            let numbers = occurrences.of(first_sample + at, position);
            let kept = numbers.len().min(per_sample / dim);
            *length = i64::try_from(kept).unwrap_or(i64::MAX);
            let (rows, padding) = sample.split_at_mut(kept * dim);
            for (target, &number) in rows.chunks_exact_mut(width::<D>(dim)).zip(numbers) {
                target.copy_from_slice(row::<D>(values, dim, number));
            }
            padding.fill(0.0);
        }
    });
    Ok(())
}

/// Adds the gradients `out_gradients` [B',L,D] of a `sequence` to `gradients` [U,D].
pub(crate) fn unsequence(
    dim: usize,
    occurrences: &Occurrences<'_>,
    first_sample: usize,
    position: usize,
    num_samples: usize,
    out_gradients: &[f32],
    gradients: &mut [f32],
) -> Result<(), Error> {
    let per_sample = sequence_shape(
        occurrences,
        first_sample,
        position,
        dim,
        out_gradients.len(),
        num_samples,
    )?;
    if per_sample == 0 {
        return Ok(());
    }
    with_dimension!(dim, D => {
        for (at, sample) in out_gradients.chunks_exact(per_sample).enumerate() {
            let numbers = occurrences.of(first_sample + at, position);
            for (source, &number) in sample.chunks_exact(width::<D>(dim)).zip(numbers) {
                add(row_mut::<D>(gradients, dim, number), source, 1.0);
            }
        }
    });
    Ok(())
}

fn sequence_shape(
    occurrences: &Occurrences<'_>,
    first_sample: usize,
    position: usize,
    dim: usize,
    len: usize,
    num_samples: usize,
) -> Result<usize, Error> {
    occurrences.check_position(position)?;
    occurrences.check_samples(first_sample, num_samples)?;
    if num_samples == 0 && len == 0 {
        return Ok(0);
    }
    let fits = num_samples > 0 && len.is_multiple_of(num_samples) && (len / num_samples).is_multiple_of(dim);
    if !fits || len == 0 {
        return Err(Error::argument(format!(
            "{len} numbers are no sequences of {num_samples} samples with rows of {dim}"
        )));
    }
    Ok(len / num_samples)
}

/// Adds one show for every occurrence of a row, and its sample's label as clicks.
pub(crate) fn observe(
    occurrences: &Occurrences<'_>,
    labels: &[f32],
    shows: &mut [f32],
    clicks: &mut [f32],
) -> Result<(), Error> {
    if labels.len() != occurrences.num_samples() {
        return Err(Error::argument(format!(
            "{} labels for {} samples",
            labels.len(),
            occurrences.num_samples()
        )));
    }
    let ends = occurrences.offsets.iter().step_by(occurrences.num_slots.max(1));
    for ((&start, &end), &label) in ends.clone().zip(ends.skip(1)).zip(labels) {
        for &number in &occurrences.inverse[start as usize..end as usize] {
            shows[number as usize] += 1.0;
            clicks[number as usize] += label;
        }
    }
    Ok(())
}
