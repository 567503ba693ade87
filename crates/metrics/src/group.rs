//! GAUC: the mean of the AUC inside each group, a user or a request.
//!
//! A model that ranks users well and the ads of each user badly has a good AUC and earns nothing; GAUC sees it.

use crate::Error;
use crate::arguments::{Batch, check_length};
use crate::record::{Ranking, Record};
use crate::state::{Reader, Writer};

const NAME: &str = "GAUC";
const TAG: [u8; 4] = *b"CMG1";

/// What a group counts for in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupWeight {
    /// Its samples, or their weight where there are weights.
    #[default]
    Impressions,
    /// Its positives.
    Clicks,
    /// One.
    Uniform,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupReport {
    /// 0.5 while no group has both classes.
    pub gauc: f64,
    /// Groups that have both classes.
    pub num_groups: u64,
    /// Groups of one class: no order to judge, left out of the mean.
    pub num_skipped: u64,
}

/// Keeps 16 bytes per sample and refuses to grow past `limit` samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAuc {
    weight: GroupWeight,
    limit: usize,
    records: Vec<(u64, Record)>,
}

impl GroupAuc {
    pub fn new(weight: GroupWeight, limit: usize) -> Self {
        Self {
            weight,
            limit,
            records: Vec::new(),
        }
    }

    pub fn update(
        &mut self,
        groups: &[u64],
        scores: &[f32],
        labels: &[f32],
        weights: Option<&[f32]>,
    ) -> Result<(), Error> {
        let batch = Batch::ranking(scores, labels, weights)?;
        check_length("groups", scores.len(), groups.len())?;
        self.check_room(batch.len())?;
        self.records
            .extend(groups.iter().enumerate().map(|(row, &group)| {
                let record = Record::new(batch.scores[row], batch.labels[row] != 0.0, batch.weight(row));
                (group, record)
            }));
        Ok(())
    }

    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.weight != other.weight {
            return Err(Error::Mismatch {
                metric: NAME,
                left: format!("groups weighted by {:?}", self.weight),
                right: format!("by {:?}", other.weight),
            });
        }
        self.check_room(other.records.len())?;
        self.records.extend_from_slice(&other.records);
        Ok(())
    }

    fn check_room(&self, num_new: usize) -> Result<(), Error> {
        let needed = self.records.len() + num_new;
        if needed > self.limit {
            return Err(Error::Limit {
                metric: NAME,
                needed,
                limit: self.limit,
            });
        }
        Ok(())
    }

    pub fn reset(&mut self) {
        self.records.clear();
    }

    pub fn count(&self) -> usize {
        self.records.len()
    }

    pub fn report(&mut self) -> GroupReport {
        self.records.sort_unstable();
        let (mut sum, mut weight_sum) = (0.0, 0.0);
        let (mut num_groups, mut num_skipped) = (0, 0);
        for group in self.records.chunk_by(|left, right| left.0 == right.0) {
            let ranking = Ranking::of_sorted(group.iter().map(|(_, record)| *record));
            let Some(auc) = ranking.auc() else {
                num_skipped += 1;
                continue;
            };
            let weight = match self.weight {
                GroupWeight::Impressions => ranking.negatives + ranking.positives,
                GroupWeight::Clicks => ranking.positives,
                GroupWeight::Uniform => 1.0,
            };
            num_groups += 1;
            sum += weight * auc;
            weight_sum += weight;
        }
        GroupReport {
            gauc: if num_groups > 0 { sum / weight_sum } else { 0.5 },
            num_groups,
            num_skipped,
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(TAG);
        out.u32(self.weight as u32);
        out.u64(self.limit as u64);
        out.u64(self.records.len() as u64);
        for (group, record) in &self.records {
            out.u64(*group);
            out.u64(record.to_bits());
        }
        out.finish()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader::new(NAME, TAG, bytes)?;
        let weight = match input.u32()? {
            0 => GroupWeight::Impressions,
            1 => GroupWeight::Clicks,
            2 => GroupWeight::Uniform,
            _ => return Err(input.error("unknown weighting of groups")),
        };
        let mut metric = Self::new(weight, input.u64()? as usize);
        for _ in 0..input.count(16)? {
            metric
                .records
                .push((input.u64()?, Record::from_bits(input.u64()?)));
        }
        input.finish()?;
        Ok(metric)
    }
}
