//! What happens to a table at a fence: rows go, statistics decay, full buckets split.

use std::sync::Arc;

use serde::Serialize;

use crate::bucket::Bucket;
use crate::config::{MAX_BUCKET_BITS, ShowClick};
use crate::index::MAX_ROWS;
use crate::table::{bucket_of, empty_buckets};
use crate::{Error, Table};
use clickmill_types::sign::mix;

/// Share of a row in its bucket's index: four bytes a slot at the usual load.
const INDEX_BYTES_PER_ROW: u64 = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EvictionReport {
    pub rows_before: u64,
    pub evicted_by_ttl: u64,
    pub evicted_by_score: u64,
    pub evicted_by_budget: u64,
    pub rows: u64,
    pub bytes: u64,
    pub bucket_bits: u32,
}

impl Table {
    /// Applies the eviction rules; lookups made before can no longer be applied if any row went.
    ///
    /// Splits the buckets in two when one of them is half as full as it can be. Refused while a save has rows
    /// to copy.
    pub fn evict(&mut self) -> Result<EvictionReport, Error> {
        self.check_thawed()?;
        let rows_before = self.len();
        self.decay();
        let (evicted_by_ttl, evicted_by_score) = self.evict_by_rule()?;
        let evicted_by_budget = self.evict_by_budget()?;
        let evicted = evicted_by_ttl + evicted_by_score + evicted_by_budget;
        if evicted > 0 {
            self.generation += 1;
            self.counters.rows_evicted += evicted;
        }
        let is_crowded = self.buckets.iter().any(|bucket| bucket.len() > MAX_ROWS / 2);
        if is_crowded && self.bucket_bits < MAX_BUCKET_BITS {
            self.rebucket(self.bucket_bits + 1)?;
        }
        Ok(EvictionReport {
            rows_before,
            evicted_by_ttl,
            evicted_by_score,
            evicted_by_budget,
            rows: self.len(),
            bytes: self.bytes(),
            bucket_bits: self.bucket_bits,
        })
    }

    /// Share of a memory budget that the table takes: from the number of its rows, without looking at them,
    /// so that it can be asked for in every step. Close to `bytes` once buckets have some hundred rows.
    pub fn budget_share(&self, budget_bytes: u64) -> f64 {
        let copies = self.frozen.as_ref().map_or(0, |frozen| frozen.bytes());
        (self.forecast_bytes(self.len()) + copies as u64) as f64 / budget_bytes.max(1) as f64
    }

    /// Bytes that a table like this one needs for `rows` rows, all told.
    pub fn forecast_bytes(&self, rows: u64) -> u64 {
        rows * (self.layout.stride as u64 + INDEX_BYTES_PER_ROW) + self.admission.bytes() as u64
    }

    /// Evicts rows by the rules, then the least worthy ones, until `max_rows` are left: there is no more
    /// room. Gives how many went by the rules, and how many for their worth.
    ///
    /// Worth is what the rules count shows and clicks for; without such a rule, how lately a row was updated.
    /// Statistics do not decay. Lookups made before can no longer be applied if any row went.
    pub fn evict_to(&mut self, max_rows: u64) -> Result<(u64, u64), Error> {
        self.check_thawed()?;
        let (by_ttl, by_score) = self.evict_by_rule()?;
        let (by_rule, by_worth) = (by_ttl + by_score, self.evict_surplus(max_rows)?);
        if by_rule + by_worth > 0 {
            self.generation += 1;
            self.counters.rows_evicted += by_rule + by_worth;
        }
        Ok((by_rule, by_worth))
    }

    fn decay(&mut self) {
        if let Some(rule) = self.config.eviction.show_click {
            self.decay_once(rule.decay);
            self.ledger.decays += 1;
        }
    }

    pub(crate) fn decay_once(&mut self, factor: f32) {
        for bucket in &mut self.buckets {
            for row in 0..bucket.len() {
                let (_, floats) = bucket.row_mut(row);
                floats[0] *= factor;
                floats[1] *= factor;
            }
        }
    }

    fn evict_by_rule(&mut self) -> Result<(u64, u64), Error> {
        let eviction = self.config.eviction;
        // Without a rule there is nothing to scan for.
        if eviction.ttl_steps.is_none() && eviction.show_click.is_none() {
            return Ok((0, 0));
        }
        let step = self.step;
        let (mut by_ttl, mut by_score) = (0, 0);
        self.remove(|bucket, row| {
            let is_old = eviction
                .ttl_steps
                .is_some_and(|ttl| step - bucket.step(row).min(step) > ttl);
            let is_poor = eviction
                .show_click
                .is_some_and(|rule| score(rule, bucket, row) < rule.threshold);
            by_ttl += u64::from(is_old);
            by_score += u64::from(is_poor && !is_old);
            is_old || is_poor
        })?;
        Ok((by_ttl, by_score))
    }

    fn evict_by_budget(&mut self) -> Result<u64, Error> {
        let eviction = self.config.eviction;
        let per_row = self.layout.stride as u64 + INDEX_BYTES_PER_ROW;
        let by_bytes = eviction.max_bytes.map(|bytes| bytes / per_row);
        let Some(allowed) = [eviction.max_rows, by_bytes].into_iter().flatten().min() else {
            return Ok(0);
        };
        self.evict_surplus(allowed)
    }

    fn evict_surplus(&mut self, allowed: u64) -> Result<u64, Error> {
        let eviction = self.config.eviction;
        let Some(surplus) = self.len().checked_sub(allowed).filter(|&surplus| surplus > 0) else {
            return Ok(0);
        };
        // Worth first, then the sign, so that which rows go does not depend on where they lie.
        let worth = |bucket: &Bucket, row| match eviction.show_click {
            // Scores are not negative: their bits have the order of their values.
            Some(rule) => score(rule, bucket, row).to_bits(),
            None => bucket.step(row),
        };
        let mut all: Vec<(u32, u64)> = Vec::with_capacity(self.len() as usize);
        for bucket in &self.buckets {
            all.extend((0..bucket.len()).map(|row| (worth(bucket, row), bucket.sign(row))));
        }
        let (_, &mut last, _) = all.select_nth_unstable(surplus as usize - 1);
        drop(all);
        self.remove(|bucket, row| (worth(bucket, row), bucket.sign(row)) <= last)
    }

    fn remove(&mut self, mut goes: impl FnMut(&Bucket, u32) -> bool) -> Result<u64, Error> {
        // A save that is being written may become the base.
        let has_base = self.has_save_under_way() || self.ledger.saved.is_some();
        let mut tombstones = std::mem::take(&mut self.ledger.tombstones);
        let list = Arc::make_mut(&mut tombstones);
        let outcome = self.remove_rows(|bucket, row| {
            let is_going = goes(bucket, row);
            if is_going && has_base {
                list.push(bucket.sign(row));
            }
            is_going
        });
        self.ledger.tombstones = tombstones;
        outcome
    }

    /// Removes rows without a trace, and counts those that are left even where memory runs out.
    pub(crate) fn remove_rows(&mut self, mut goes: impl FnMut(&Bucket, u32) -> bool) -> Result<u64, Error> {
        let before = self.len();
        let outcome = self
            .buckets
            .iter_mut()
            .try_for_each(|bucket| bucket.remove(&mut goes).map(|_| ()));
        self.count_rows();
        outcome.map(|()| before - self.len())
    }

    /// Moves all rows to 2^`bucket_bits` buckets.
    pub fn rebucket(&mut self, bucket_bits: u32) -> Result<(), Error> {
        if bucket_bits > MAX_BUCKET_BITS {
            return Err(Error::argument(format!(
                "bucket_bits is {bucket_bits}; allowed: 0 to {MAX_BUCKET_BITS}"
            )));
        }
        self.check_thawed()?;
        let mut buckets = empty_buckets(self.layout, bucket_bits)?;
        for old in std::mem::take(&mut self.buckets) {
            for row in 0..old.len() {
                let sign = old.sign(row);
                let hash = mix(sign);
                let bucket = &mut buckets[bucket_of(hash, bucket_bits)];
                let new = bucket.insert(sign, hash, old.step(row))?;
                bucket.row_mut(new).1.copy_from_slice(old.floats(row));
            }
        }
        self.buckets = buckets;
        self.bucket_bits = bucket_bits;
        self.config.bucket_bits = bucket_bits;
        self.generation += 1;
        Ok(())
    }
}

fn score(rule: ShowClick, bucket: &Bucket, row: u32) -> f32 {
    let floats = bucket.floats(row);
    let (show, click) = (floats[0], floats[1]);
    rule.show_coefficient * (show - click).max(0.0) + rule.click_coefficient * click.max(0.0)
}
