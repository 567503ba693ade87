//! Which of several owners holds the row of a sign.
//!
//! Buckets are dealt out, not signs: whoever moves rows between owners moves whole buckets.

use clickmill_types::sign::bucket;

use crate::Error;

/// Bits of the buckets that are dealt out, whatever the buckets of a table are.
const BITS: u32 = 10;

/// The rows of owner `index` among `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    index: usize,
    count: usize,
}

impl Share {
    pub fn new(index: usize, count: usize) -> Result<Self, Error> {
        if index < count && count <= 1 << BITS {
            return Ok(Self { index, count });
        }
        Err(Error::argument(format!(
            "share {index} of {count}; allowed: up to {} shares, counted from 0",
            1 << BITS
        )))
    }

    #[inline]
    pub fn holds(self, sign: u64) -> bool {
        owner(sign, self.count) == self.index
    }
}

#[inline]
fn owner(sign: u64, count: usize) -> usize {
    bucket(sign, BITS) % count
}

/// Positions of `signs`, those of the first owner first and each in the order that they had, and how many
/// each owner has.
pub fn split(signs: &[u64], count: usize) -> Result<(Vec<u32>, Vec<u32>), Error> {
    Share::new(0, count)?;
    let owners: Vec<u16> = signs.iter().map(|&sign| owner(sign, count) as u16).collect();
    let mut counts = vec![0_u32; count];
    for &owner in &owners {
        counts[usize::from(owner)] += 1;
    }
    let mut next = vec![0_usize; count];
    for owner in 1..count {
        next[owner] = next[owner - 1] + counts[owner - 1] as usize;
    }
    let mut order = vec![0_u32; signs.len()];
    for (position, &owner) in owners.iter().enumerate() {
        let place = &mut next[usize::from(owner)];
        order[*place] = position as u32;
        *place += 1;
    }
    Ok((order, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_has_one_owner_and_keeps_its_order_there() {
        let signs: Vec<u64> = (0..5000).collect();
        for count in [1, 2, 3, 7] {
            let (order, counts) = split(&signs, count).expect("a share");
            let mut first = 0;
            let mut seen = vec![false; signs.len()];
            for (index, &number) in counts.iter().enumerate() {
                let share = Share::new(index, count).expect("a share");
                let own = &order[first..first + number as usize];
                assert!(own.windows(2).all(|pair| pair[0] < pair[1]));
                for &position in own {
                    assert!(share.holds(signs[position as usize]));
                    seen[position as usize] = true;
                }
                first += number as usize;
            }
            assert!(seen.into_iter().all(|is_seen| is_seen));
            assert!(
                counts
                    .iter()
                    .all(|&number| number as usize > signs.len() / count / 2)
            );
        }
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        assert!(Share::new(2, 2).is_err());
        assert!(Share::new(0, 0).is_err());
        assert!(split(&[1], 1025).is_err());
    }
}
