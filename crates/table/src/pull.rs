//! The pull kernel: from signs to rows, several memory accesses in flight.
//!
//! Three stages run along the signs in small blocks, each some blocks behind the one before: hash and ask for
//! the index line; probe it and ask for the row's lines; compare the sign and copy. Whatever does not go
//! smoothly (a tag that lied, a full group, an absent row) takes the plain path.

use clickmill_types::sign::mix;

use crate::Error;
use crate::bucket::Bucket;
use crate::dimension::{width, with_dimension};
use crate::layout::Layout;
use crate::prefetch;
use crate::table::bucket_of;

/// Signs that go through a stage together; larger blocks would ask for more lines at once than fit under way.
const BLOCK: usize = 16;
/// Blocks between asking for rows and reading them, and between asking for index lines and reading rows.
const ROW_BLOCKS: usize = 2;
const INDEX_BLOCKS: usize = 4;
/// Blocks under way, rounded up to a power of two.
const RING: usize = 8;

/// A row of the table by place: bucket above, row number below. Valid within one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    /// A hash of it.
    #[inline(always)]
    pub(crate) fn spread(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
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
    with_dimension!(source.layout().dim, D => pull_width::<D, true>(source, signs, values, handles))
}

/// Writes the places of `signs` to `handles` [U]; values [U,D] only of those that have none.
pub(crate) fn locate(
    source: &mut impl Source,
    signs: &[u64],
    values: &mut [f32],
    handles: &mut [Handle],
) -> Result<(), Error> {
    with_dimension!(source.layout().dim, D => pull_width::<D, false>(source, signs, values, handles))
}

/// Writes the weights of the rows at `handles` to `values` [U,D], and leaves those of signs without a row.
pub(crate) fn fill(source: &impl Source, handles: &[Handle], values: &mut [f32]) {
    with_dimension!(source.layout().dim, D => fill_width::<D>(source, handles, values));
}

fn fill_width<const D: usize>(source: &impl Source, handles: &[Handle], values: &mut [f32]) {
    let dim = width::<D>(source.layout().dim);
    assert!(values.len() == handles.len() * dim);
    let row_lines = RowLines::new(source.layout());
    let buckets = source.buckets();
    for (at, weights) in values.chunks_exact_mut(dim).enumerate() {
        if let Some(&ahead) = handles.get(at + ROW_BLOCKS * BLOCK)
            && !ahead.is_none()
        {
            row_lines.prefetch(buckets[ahead.bucket()].address(ahead.row()));
        }
        let handle = handles[at];
        if !handle.is_none() {
            read::<D>(source, &buckets[handle.bucket()], handle.row(), weights);
        }
    }
}

fn pull_width<const D: usize, const VALUES: bool>(
    source: &mut impl Source,
    signs: &[u64],
    values: &mut [f32],
    handles: &mut [Handle],
) -> Result<(), Error> {
    let layout = source.layout();
    let dim = width::<D>(layout.dim);
    assert!(values.len() == signs.len() * dim && handles.len() == signs.len());
    let bits = source.bucket_bits();
    let row_lines = RowLines::new(layout);
    let mut ring = [[Place::EMPTY; BLOCK]; RING];
    let num_blocks = signs.len().div_ceil(BLOCK);
    for ahead in 0..num_blocks + INDEX_BLOCKS {
        if ahead < num_blocks {
            let places = &mut ring[ahead % RING];
            for (place, &sign) in places.iter_mut().zip(&signs[ahead * BLOCK..]) {
                let hash = mix(sign);
                let bucket = &source.buckets()[bucket_of(hash, bits)];
                prefetch::read(bucket.index().first(bucket.key(hash)));
                place.hash = hash;
            }
        }
        if let Some(block) = ahead.checked_sub(INDEX_BLOCKS - ROW_BLOCKS) {
            for place in &mut ring[block % RING] {
                let bucket = &source.buckets()[bucket_of(place.hash, bits)];
                place.row = bucket.index().candidate(bucket.key(place.hash)).unwrap_or(NO_ROW);
                row_lines.prefetch(bucket.address(place.row));
            }
        }
        let Some(block) = ahead.checked_sub(INDEX_BLOCKS) else {
            continue;
        };
        let first = block * BLOCK;
        for (at, place) in (first..signs.len()).zip(ring[block % RING]) {
            let sign = signs[at];
            let weights = &mut values[at * dim..][..dim];
            let number = bucket_of(place.hash, bits);
            let bucket = &source.buckets()[number];
            let row = if place.row < bucket.len() && bucket.sign(place.row) == sign {
                Some(place.row)
            } else {
                bucket.find(sign, place.hash)
            };
            handles[at] = match row {
                Some(row) => {
                    if VALUES {
                        read::<D>(source, bucket, row, weights);
                    }
                    Handle::new(number, row)
                }
                None => source.absent(sign, place.hash, weights)?,
            };
        }
    }
    Ok(())
}

#[inline(always)]
fn read<const D: usize>(source: &impl Source, bucket: &Bucket, row: u32, weights: &mut [f32]) {
    let layout = source.layout();
    if source.is_current(bucket, row) {
        let from = layout.statistics_len + layout.state_len;
        weights.copy_from_slice(&bucket.floats(row)[from..][..width::<D>(layout.dim)]);
    } else {
        source.read_stale(bucket, row, weights);
    }
}

/// What is known of a sign on its way through the stages.
#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    row: u32,
}

const NO_ROW: u32 = u32::MAX;

impl Place {
    const EMPTY: Self = Self { hash: 0, row: NO_ROW };
}

/// Which lines of a row a pull will read: its sign at the start and its weights at the end.
struct RowLines {
    /// Offset of the last byte of a row that never touches more than two lines; 0 for a longer one.
    last: usize,
    weights_offset: usize,
    weights_bytes: usize,
}

impl RowLines {
    fn new(layout: Layout) -> Self {
        Self {
            last: if layout.stride <= 80 { layout.stride - 1 } else { 0 },
            weights_offset: layout.weights_offset(),
            weights_bytes: 4 * layout.dim,
        }
    }

    #[inline(always)]
    fn prefetch(&self, start: *const u8) {
        prefetch::read(start);
        if self.last > 0 {
            prefetch::read(start.wrapping_add(self.last));
        } else {
            prefetch::range(start.wrapping_add(self.weights_offset), self.weights_bytes);
        }
    }
}
