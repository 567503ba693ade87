//! The pull kernel: from signs to rows, several memory accesses in flight.
//!
//! Three stages run along the signs, each some places behind the one before: hash and ask for the index
//! line; probe it and ask for the row's lines; compare the sign and copy. Whatever does not go smoothly (a
//! tag that lied, a full group, an absent row) takes the plain path.

use clickmill_types::sign::mix;

use crate::Error;
use crate::bucket::Bucket;
use crate::dimension::{width, with_dimension};
use crate::layout::Layout;
use crate::prefetch;

/// Places between the stages, and a ring that holds them all.
const ROW_AHEAD: usize = 14;
const INDEX_AHEAD: usize = 32;
const RING: usize = 64;

/// A row of the table by place: bucket above, row number below. Valid within one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u64);

impl Handle {
    /// A sign without a row.
    pub(crate) const NONE: Self = Self(u64::MAX);

    #[inline(always)]
    pub(crate) fn new(bucket: usize, row: u32) -> Self {
        Self((bucket as u64) << 32 | u64::from(row))
    }

    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    #[inline(always)]
    pub(crate) fn bucket(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    pub(crate) fn row(self) -> u32 {
        self.0 as u32
    }
}

/// Where the kernel gets its rows from; training and reading differ in what an absent sign means.
pub(crate) trait Source {
    fn buckets(&self) -> &[Bucket];
    fn bucket_bits(&self) -> u32;
    fn layout(&self) -> Layout;
    /// Whether weights as stored are weights as read.
    fn is_current(&self, bucket: &Bucket, row: u32) -> bool;
    /// Weights of a row that is not current.
    fn read_stale(&self, bucket: &Bucket, row: u32, weights: &mut [f32]);
    /// Weights, and a place if there is one now, of a sign without a row.
    fn absent(&mut self, sign: u64, hash: u64, weights: &mut [f32]) -> Result<Handle, Error>;
}

/// Writes the weights of `signs` to `values` [U,D] and their places to `handles` [U].
pub(crate) fn pull(
    source: &mut impl Source,
    signs: &[u64],
    values: &mut [f32],
    handles: &mut [Handle],
) -> Result<(), Error> {
    with_dimension!(source.layout().dim, D => pull_width::<D>(source, signs, values, handles))
}

fn pull_width<const D: usize>(
    source: &mut impl Source,
    signs: &[u64],
    values: &mut [f32],
    handles: &mut [Handle],
) -> Result<(), Error> {
    let layout = source.layout();
    let dim = width::<D>(layout.dim);
    assert!(values.len() == signs.len() * dim && handles.len() == signs.len());
    let bits = source.bucket_bits();
    let bucket_of = |hash: u64| (hash >> 1 >> (63 - bits)) as usize;
    let weights_offset = layout.weights_offset();
    let is_row_small = layout.stride <= 128;
    let mut hashes = [0_u64; RING];
    let mut candidates = [Handle::NONE; RING];
    for ahead in 0..signs.len() + INDEX_AHEAD {
        if let Some(&sign) = signs.get(ahead) {
            let hash = mix(sign);
            hashes[ahead % RING] = hash;
            let bucket = &source.buckets()[bucket_of(hash)];
            prefetch::read(bucket.index().line(bucket.key(hash)));
        }
        if ahead + ROW_AHEAD >= INDEX_AHEAD {
            let at = ahead + ROW_AHEAD - INDEX_AHEAD;
            let hash = hashes[at % RING];
            let number = bucket_of(hash);
            let bucket = &source.buckets()[number];
            candidates[at % RING] = match bucket.index().candidate(bucket.key(hash)) {
                Some(row) if at < signs.len() => {
                    let start = bucket.address(row);
                    if is_row_small {
                        prefetch::range(start, layout.stride);
                    } else {
                        prefetch::read(start);
                        prefetch::range(start.wrapping_add(weights_offset), 4 * dim);
                    }
                    Handle::new(number, row)
                }
                Some(_) | None => Handle::NONE,
            };
        }
        if ahead >= INDEX_AHEAD {
            let at = ahead - INDEX_AHEAD;
            let (sign, hash) = (signs[at], hashes[at % RING]);
            let weights = &mut values[at * dim..][..dim];
            let candidate = candidates[at % RING];
            handles[at] = if !candidate.is_none()
                && source.buckets()[candidate.bucket()].sign(candidate.row()) == sign
            {
                read::<D>(source, candidate, weights);
                candidate
            } else {
                let number = bucket_of(hash);
                match source.buckets()[number].find(sign, hash) {
                    Some(row) => {
                        let handle = Handle::new(number, row);
                        read::<D>(source, handle, weights);
                        handle
                    }
                    None => source.absent(sign, hash, weights)?,
                }
            };
        }
    }
    Ok(())
}

#[inline(always)]
fn read<const D: usize>(source: &impl Source, handle: Handle, weights: &mut [f32]) {
    let layout = source.layout();
    let bucket = &source.buckets()[handle.bucket()];
    if source.is_current(bucket, handle.row()) {
        let floats = bucket.floats(handle.row());
        let from = layout.statistics_len + layout.state_len;
        weights.copy_from_slice(&floats[from..from + width::<D>(layout.dim)]);
    } else {
        source.read_stale(bucket, handle.row(), weights);
    }
}
