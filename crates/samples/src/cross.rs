//! Crosses: a sign for each combination of the signs of several slots.

use clickmill_types::schema::{Keep, Missing, SparseSlot};
use clickmill_types::sign::{Sign, cross, sign};

#[derive(Clone, Debug)]
pub(crate) struct Cross {
    /// Positions of the parts among those of the plan, in the order of the cross.
    parts: Vec<usize>,
    seed: u64,
    hash_size: Option<u64>,
    max_length: u128,
    keep: Keep,
    missing: Option<Sign>,
}

impl Cross {
    pub(crate) fn new(slot: &SparseSlot, parts: Vec<usize>) -> Self {
        let seed = slot.seed();
        let reduce = |sign: Sign| slot.hash_size.map_or(sign, |size| sign % size);
        Self {
            parts,
            seed,
            hash_size: slot.hash_size,
            max_length: u128::from(slot.max_length),
            keep: slot.keep,
            missing: match slot.missing {
                Missing::Sign => Some(reduce(sign(b"", seed))),
                Missing::Skip => None,
            },
        }
    }

    /// Appends the signs of the product, the last part running fastest, `max_length` at most.
    pub(crate) fn signs(&self, part_signs: &[Vec<Sign>], out: &mut Vec<Sign>) {
        // Combinations are numbered, so that the kept ones can be made without walking the others. Lengths
        // are at most 2^16: eight parts fit in 128 bits, more saturate and lose only what is cut anyway.
        let total = self.parts.iter().fold(1u128, |product, &part| {
            product.saturating_mul(part_signs[part].len() as u128)
        });
        if total == 0 {
            out.extend(self.missing);
            return;
        }
        let kept = total.min(self.max_length);
        let first = match self.keep {
            Keep::First => 0,
            Keep::Last => total - kept,
        };
        for combination in first..first + kept {
            let made = self.combine(part_signs, combination, total);
            out.push(self.hash_size.map_or(made, |size| made % size));
        }
    }

    fn combine(&self, part_signs: &[Vec<Sign>], combination: u128, total: u128) -> Sign {
        let mut rest = combination;
        let mut stride = total;
        let mut made = None;
        for &part in &self.parts {
            let signs = &part_signs[part];
            stride = (stride / signs.len() as u128).max(1);
            let next = signs[((rest / stride) as usize).min(signs.len() - 1)];
            rest %= stride;
            made = Some(made.map_or(next, |left| cross(left, next, self.seed)));
        }
        made.unwrap_or_default()
    }
}
