//! Seeded permutations: a pure function of seed, pass and number, so that they need not be stored.

use clickmill_types::sign::mix;

/// Permutation `number` of `0..length` under a seed and a pass.
pub(crate) fn permutation(length: usize, seed: u64, pass: u64, number: u64) -> Vec<u32> {
    let mut random = Random::new(seed, pass, number);
    let mut order: Vec<u32> = (0..length as u32).collect();
    for last in (1..length).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

/// A counter, mixed.
struct Random {
    state: u64,
}

/// Odd, and far from any simple ratio: the golden section of 2^64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    fn new(seed: u64, pass: u64, number: u64) -> Self {
        let state = mix(mix(mix(seed).wrapping_add(pass).wrapping_add(STEP)).wrapping_add(number));
        Self { state }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Uniform in `0..bound`, without the bias of a remainder.
    fn below(&mut self, bound: u64) -> u64 {
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_every_number_once() {
        let mut order = permutation(1000, 1, 2, 3);
        assert_ne!(order, permutation(1000, 1, 2, 4));
        assert_ne!(order, permutation(1000, 1, 3, 3));
        assert_ne!(order, permutation(1000, 2, 2, 3));
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<u32>>());
    }

    #[test]
    fn every_place_is_equally_likely() {
        let mut counts = [0u32; 5];
        for number in 0..10_000 {
            let place = permutation(5, 7, 0, number).iter().position(|&x| x == 0);
            counts[place.expect("0 is in it")] += 1;
        }
        // 2000 expected, standard deviation 40.
        assert!(
            counts.iter().all(|&count| (1800..2200).contains(&count)),
            "{counts:?}"
        );
    }
}
