//! GAUC: the mean of the AUC inside each group, a user or a request.
//!
//! A model that ranks users well and the ads of each user badly has a good AUC and earns nothing; GAUC sees it.

use crate::arguments::{Batch, check_length};
use crate::kept::Kept;
use crate::record::{Ranking, Record};
use crate::state::{Reader, Writer};
use crate::{Accumulator, Error};

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
    kept: Kept<(u64, Record)>,
}

impl GroupAuc {
    pub fn new(weight: GroupWeight, limit: usize) -> Self {
        Self {
            weight,
            kept: Kept::new(NAME, limit),
        }
    }

    pub fn update(
        &mut self,
        groups: &[u64],
        scores: &[f32],
        labels: &[f32],
        weights: Option<&[f32]>,
    ) -> Result<(), Error> {
        let batch = Batch::new(scores, labels, weights)?;
        batch.check_ranking()?;
        check_length("groups", scores.len(), groups.len())?;
        self.kept
            .extend((0..batch.len()).map(|row| (groups[row], Record::of(&batch, row))))
    }

    pub fn report(&mut self) -> GroupReport {
        let (mut sum, mut weight_sum) = (0.0, 0.0);
        let (mut num_groups, mut num_skipped) = (0, 0);
        for group in self.kept.sorted().chunk_by(|left, right| left.0 == right.0) {
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
}

impl Accumulator for GroupAuc {
    fn count(&self) -> u64 {
        self.kept.len() as u64
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.weight != other.weight {
            return Err(Error::Mismatch {
                metric: NAME,
                left: format!("groups weighted by {:?}", self.weight),
                right: format!("by {:?}", other.weight),
            });
        }
        self.kept.merge(&other.kept)
    }

    fn reset(&mut self) {
        self.kept.clear();
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(TAG);
        out.u32(self.weight as u32);
        self.kept.write(&mut out);
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader::new(NAME, TAG, bytes)?;
        let weight = match input.u32()? {
            0 => GroupWeight::Impressions,
            1 => GroupWeight::Clicks,
            2 => GroupWeight::Uniform,
            _ => return Err(input.error("unknown weighting of groups")),
        };
        let kept = Kept::read(NAME, &mut input)?;
        input.finish()?;
        Ok(Self { weight, kept })
    }
}
