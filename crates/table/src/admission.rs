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

    /// Takes over what a sketch of the same size has counted of other signs; false where the size is another.
    ///
    /// No sign was seen by both, so its count is in the counters of one of them, and the larger counter of
    /// each place is still no less than it: signs are admitted early at worst, as in one sketch, and a sum would
    /// only admit more of them early. Sightings add up, so that the next one ages a sketch that has seen enough.
    pub(crate) fn absorb(&mut self, other: &Self) -> bool {
        if other.counters.len() != self.counters.len() {
            return false;
        }
        for (own, &counter) in self.counters.iter_mut().zip(&other.counters) {
            *own = counter.max(*own);
        }
        self.sightings = (self.sightings + other.sightings).min(self.lifetime() - 1);
        true
    }

    /// Sightings after which counters are halved.
    fn lifetime(&self) -> u64 {
        4 * (self.counters.len() / DEPTH) as u64
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
        if self.sightings >= self.lifetime() {
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
    fn merged_sketches_never_count_too_few_and_age_together() {
        let mut parts = [Sketch::new(12), Sketch::new(12), Sketch::new(12)];
        for sign in 0..300_u64 {
            for _ in 0..3 {
                parts[sign as usize % 3].add(mix(sign));
            }
        }
        let [mut merged, second, third] = parts;
        assert!(merged.absorb(&second) && merged.absorb(&third));
        assert_eq!(merged.sightings(), 900);
        let exact = (0..300_u64)
            .filter(|&sign| merged.clone().add(mix(sign)) == 4)
            .count();
        assert!(exact > 200, "{exact} counts are exact");
        for sign in 0..100_u64 {
            assert!(merged.add(mix(sign)) >= 4);
        }
        for _ in 0..5 {
            let copy = merged.clone();
            merged.absorb(&copy);
        }
        merged.add(1);
        assert_eq!(merged.sightings(), 0, "it has aged");
        assert!(!merged.absorb(&Sketch::new(13)));
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
