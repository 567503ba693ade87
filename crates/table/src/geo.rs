//! Training on copies: what a copy and the original tell each other.
//!
//! `local` is the copy that is trained, `old` is the original as this side last knew it. Now and then
//!
//! ```text
//! delta  = (local - old) · share        share is 1 / number of copies; delta is sent, the original adds it
//! old   += delta                        what was really sent, after rounding
//! local += original - old               when the answer is there
//! old    = original
//! ```
//!
//! With one copy, copy and original agree after every exchange. With several, each hears of the others, and
//! what its share has held back stays in `local - old`, for the exchanges to come.

/// What is to be sent to `out`; rounding is the caller's, before [`sent`].
pub fn difference(local: &[f32], old: &[f32], share: f32, out: &mut [f32]) {
    for ((out, local), old) in out.iter_mut().zip(local).zip(old) {
        *out = (local - old) * share;
    }
}

/// `delta` is on its way.
pub fn sent(old: &mut [f32], delta: &[f32]) {
    old.iter_mut().zip(delta).for_each(|(old, delta)| *old += delta);
}

/// The original has come: `original` becomes what `local` is to be moved by.
pub fn received(original: &mut [f32], old: &mut [f32]) {
    for (original, old) in original.iter_mut().zip(old) {
        let value = *original;
        *original = value - *old;
        *old = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal to the last bit, where every number is one that a float holds exactly.
    fn bits<const N: usize>(numbers: [f32; N]) -> [u32; N] {
        numbers.map(f32::to_bits)
    }

    /// One number: a copy with what it knows of the original.
    struct Copy {
        local: f32,
        old: f32,
    }

    impl Copy {
        fn exchange(&mut self, original: &mut f32, share: f32, round: impl Fn(f32) -> f32) -> f32 {
            let mut delta = [0.0];
            difference(&[self.local], &[self.old], share, &mut delta);
            delta[0] = round(delta[0]);
            sent(std::slice::from_mut(&mut self.old), &delta);
            *original += delta[0];
            let mut move_by = [*original];
            received(&mut move_by, std::slice::from_mut(&mut self.old));
            self.local += move_by[0];
            delta[0]
        }
    }

    #[test]
    fn one_copy_and_its_original_agree_after_an_exchange() {
        let mut original = 0.5;
        let mut copy = Copy {
            local: 0.75,
            old: 0.5,
        };
        assert_eq!(
            copy.exchange(&mut original, 1.0, |delta| delta).to_bits(),
            0.25_f32.to_bits()
        );
        assert_eq!(bits([original, copy.local, copy.old]), bits([0.75; 3]));
    }

    #[test]
    fn two_copies_follow_the_formula_exchange_by_exchange() {
        let mut original = 1.0;
        let [mut first, mut second] = [(); 2].map(|()| Copy { local: 1.0, old: 1.0 });
        first.local += 0.5;
        second.local -= 0.25;
        first.exchange(&mut original, 0.5, |delta| delta);
        // Half of what the first has learnt; it keeps all of it.
        assert_eq!(bits([original, first.local, first.old]), bits([1.25, 1.5, 1.25]));
        second.exchange(&mut original, 0.5, |delta| delta);
        // 1.25 - 0.125; the second hears of what the first has sent.
        assert_eq!(
            bits([original, second.local, second.old]),
            bits([1.125, 1.0, 1.125])
        );
        first.exchange(&mut original, 0.5, |delta| delta);
        // What it had held back goes out by half again, and it hears of the second.
        assert_eq!(
            bits([original, first.local, first.old]),
            bits([1.25, 1.375, 1.25])
        );
    }

    #[test]
    fn what_copies_hold_back_arrives_in_the_end() {
        let mut original = 0.0;
        let mut copies = [1.0, 2.0, 4.0].map(|local| Copy { local, old: 0.0 });
        for _ in 0..200 {
            for copy in &mut copies {
                copy.exchange(&mut original, 1.0 / 3.0, |delta| delta);
            }
        }
        assert!((original - 7.0).abs() < 1e-4, "{original} is not the sum of all");
        assert!(copies.iter().all(|copy| (copy.local - original).abs() < 1e-4));
    }

    #[test]
    fn what_rounding_takes_off_is_sent_later() {
        let coarse = |delta: f32| (delta * 4.0).trunc() / 4.0;
        let mut original = 0.0;
        let mut copy = Copy { local: 0.7, old: 0.0 };
        assert_eq!(
            copy.exchange(&mut original, 1.0, coarse).to_bits(),
            0.5_f32.to_bits()
        );
        assert_eq!(
            bits([original, copy.old]),
            bits([0.5; 2]),
            "both know what was sent"
        );
        copy.local += 0.1;
        copy.exchange(&mut original, 1.0, coarse);
        assert_eq!(bits([original]), bits([0.75]));
    }
}
