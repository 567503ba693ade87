//! Who gets a row: decided before anything is allocated.
//!
//! Counting goes through a count-min sketch of bytes with conservative updates, so that its memory is
//! bounded and its error is to one side: a sign may be admitted early, never late. The sketch ages: after
//! a number of sightings proportional to its size all counters are halved.

use clickmill_types::sign::mix;

use crate::config;

/// Independent counters of a sign; the smallest counts.
const DEPTH: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sketch {
    counters: Vec<u8>,
    sightings: u64,
}

impl Sketch {
    pub(crate) fn new(bits: u32) -> Self {
        Self {
            counters: vec![0; 1 << bits],
            sightings: 0,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.counters
    }

    pub(crate) fn sightings(&self) -> u64 {
        self.sightings
    }

    /// Takes over counters of a sketch of the same size; false where the size is another.
    pub(crate) fn restore(&mut self, counters: &[u8], sightings: u64) -> bool {
        if counters.len() != self.counters.len() {
            return false;
        }
        self.counters.copy_from_slice(counters);
        self.sightings = sightings;
        true
    }

    /// Counts one more sighting and gives the count so far.
    pub(crate) fn add(&mut self, hash: u64) -> u8 {
        let width = self.counters.len() / DEPTH;
        // The bits of the hash already chose bucket and position; these must be independent of them.
        let (low, high) = (
            mix(hash ^ 0x510e_527f_ade6_82d1),
            mix(hash ^ 0x9b05_688c_2b3e_6c1f),
        );
        let places: [usize; DEPTH] = std::array::from_fn(|row| {
            row * width + (low.wrapping_add(high.wrapping_mul(row as u64)) as usize & (width - 1))
        });
        let count = places
            .iter()
            .map(|&place| self.counters[place])
            .min()
            .unwrap_or(0)
            .saturating_add(1);
        for place in places {
            self.counters[place] = self.counters[place].max(count);
        }
        self.sightings += 1;
        if self.sightings >= 4 * width as u64 {
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
            self.sightings = 0;
        }
        count
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Admission {
    Always,
    Count { at: u8, sketch: Sketch },
    Probability { below: u64, seed: u64 },
}

impl Admission {
    pub(crate) fn new(config: config::Admission, seed: u64) -> Self {
        match config {
            config::Admission::Always => Self::Always,
            config::Admission::Count { at, sketch_bits } => Self::Count {
                at: u8::try_from(at).unwrap_or(u8::MAX),
                sketch: Sketch::new(sketch_bits),
            },
            config::Admission::Probability { p } => Self::Probability {
                below: (p * 18_446_744_073_709_551_616.0) as u64,
                seed: mix(seed ^ 0x3c6e_f372_fe94_f82b),
            },
        }
    }

    /// Whether a sign without a row gets one at this sighting; `hash` is `mix(sign)`.
    pub(crate) fn admits(&mut self, hash: u64, step: u32) -> bool {
        match self {
            // A saturated bound means that p is 1: no draw may miss.
            Self::Always | Self::Probability { below: u64::MAX, .. } => true,
            Self::Count { at, sketch } => sketch.add(hash) >= *at,
            Self::Probability { below, seed } => mix(hash ^ mix(*seed ^ u64::from(step))) < *below,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sketch().map_or(0, |sketch| sketch.bytes().len())
    }

    pub(crate) fn sketch(&self) -> Option<&Sketch> {
        match self {
            Self::Count { sketch, .. } => Some(sketch),
            Self::Always | Self::Probability { .. } => None,
        }
    }

    pub(crate) fn sketch_mut(&mut self) -> Option<&mut Sketch> {
        match self {
            Self::Count { sketch, .. } => Some(sketch),
            Self::Always | Self::Probability { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_never_counts_too_few_before_it_ages() {
        let mut sketch = Sketch::new(12);
        for round in 1..=3 {
            for sign in 0..300_u64 {
                assert!(sketch.add(mix(sign)) >= round);
            }
        }
    }

    #[test]
    fn a_sketch_ages() {
        let mut sketch = Sketch::new(8);
        assert_eq!(sketch.add(1), 1);
        for sign in 0..255 {
            sketch.add(mix(sign) | 1 << 63);
        }
        assert_eq!(sketch.sightings(), 0);
        assert!(sketch.bytes().iter().all(|&counter| counter < 8));
    }

    #[test]
    fn a_probability_admits_its_share_and_the_same_signs_each_time() {
        let draw = || {
            let mut admission = Admission::new(config::Admission::Probability { p: 0.25 }, 9);
            (0..40_000)
                .filter(|&sign| admission.admits(mix(sign), 3))
                .collect::<Vec<u64>>()
        };
        let admitted = draw();
        assert!(
            (admitted.len() as f64 / 40_000.0 - 0.25).abs() < 0.02,
            "{}",
            admitted.len()
        );
        assert_eq!(admitted, draw());
    }
}
