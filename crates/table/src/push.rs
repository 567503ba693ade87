//! The push kernel: one gradient to each row, rows asked for ahead.

use crate::bucket::Bucket;
use crate::dimension::{width, with_dimension};
use crate::layout::Layout;
use crate::optimizer::Rule;
use crate::prefetch;
use crate::pull::Handle;

const AHEAD: usize = 32;

/// Gradients of some rows, and what was seen of them; `shows` and `clicks` are empty where not kept.
#[derive(Clone, Copy)]
pub(crate) struct Push<'a> {
    pub handles: &'a [Handle],
    pub gradients: &'a [f32],
    pub shows: &'a [f32],
    pub clicks: &'a [f32],
}

/// Applies the rule to every row that exists and gives the number of gradients dropped.
pub(crate) fn push<R: Rule>(
    buckets: &mut [Bucket],
    layout: Layout,
    rule: &R,
    push: Push<'_>,
    step: u32,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "the function is compiled for the instructions just detected"
        )]
        // SAFETY: AVX2 has just been detected.
        return unsafe { push_avx2(buckets, layout, rule, push, step) };
    }
    push_any(buckets, layout, rule, push, step)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn push_avx2<R: Rule>(buckets: &mut [Bucket], layout: Layout, rule: &R, push: Push<'_>, step: u32) -> usize {
    push_any(buckets, layout, rule, push, step)
}

#[inline(always)]
fn push_any<R: Rule>(buckets: &mut [Bucket], layout: Layout, rule: &R, push: Push<'_>, step: u32) -> usize {
    with_dimension!(layout.dim, D => push_width::<D, R>(buckets, layout, rule, push, step))
}

#[inline(always)]
fn push_width<const D: usize, R: Rule>(
    buckets: &mut [Bucket],
    layout: Layout,
    rule: &R,
    push: Push<'_>,
    step: u32,
) -> usize {
    let dim = width::<D>(layout.dim);
    assert!(push.gradients.len() == push.handles.len() * dim);
    let (statistics_len, state_len) = (layout.statistics_len, layout.state_len);
    let mut dropped = 0;
    for at in 0..push.handles.len() {
        if let Some(&ahead) = push.handles.get(at + AHEAD)
            && !ahead.is_none()
        {
            prefetch::range(buckets[ahead.bucket()].address(ahead.row()), layout.stride);
        }
        let handle = push.handles[at];
        if handle.is_none() {
            dropped += 1;
            continue;
        }
        let gradient = &push.gradients[at * dim..][..dim];
        let (row_step, floats) = buckets[handle.bucket()].row_mut(handle.row());
        let (statistics, floats) = floats.split_at_mut(statistics_len);
        let (state, weights) = floats.split_at_mut(state_len);
        rule.update(state, &mut weights[..dim], gradient, *row_step);
        *row_step = step;
        if let [show, click] = statistics {
            *show += push.shows.get(at).copied().unwrap_or(0.0);
            *click += push.clicks.get(at).copied().unwrap_or(0.0);
        }
    }
    dropped
}
