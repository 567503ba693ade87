//! Elementwise loops over a row, eight lanes at a time.
//!
//! A chunk is loaded as a whole before anything of it is stored: the compiler cannot know that weights,
//! state and gradient do not overlap, and would otherwise not use vectors.

const LANES: usize = 8;

/// `weight = f(weight, grad)`.
#[inline(always)]
pub(crate) fn each(weights: &mut [f32], grads: &[f32], f: impl Fn(f32, f32) -> f32) {
    let (weights, weights_rest) = weights.as_chunks_mut::<LANES>();
    let (grads, grads_rest) = grads.as_chunks::<LANES>();
    for (weights, grads) in weights.iter_mut().zip(grads) {
        let (mut weight, grad) = (*weights, *grads);
        for lane in 0..LANES {
            weight[lane] = f(weight[lane], grad[lane]);
        }
        *weights = weight;
    }
    for (weight, &grad) in weights_rest.iter_mut().zip(grads_rest) {
        *weight = f(*weight, grad);
    }
}

/// `(weight, state) = f(weight, state, grad)`.
#[inline(always)]
pub(crate) fn each_with_one(
    weights: &mut [f32],
    states: &mut [f32],
    grads: &[f32],
    f: impl Fn(f32, f32, f32) -> (f32, f32),
) {
    let (weights, weights_rest) = weights.as_chunks_mut::<LANES>();
    let (states, states_rest) = states.as_chunks_mut::<LANES>();
    let (grads, grads_rest) = grads.as_chunks::<LANES>();
    for ((weights, states), grads) in weights.iter_mut().zip(states).zip(grads) {
        let (mut weight, mut state, grad) = (*weights, *states, *grads);
        for lane in 0..LANES {
            (weight[lane], state[lane]) = f(weight[lane], state[lane], grad[lane]);
        }
        (*weights, *states) = (weight, state);
    }
    for ((weight, state), &grad) in weights_rest.iter_mut().zip(states_rest).zip(grads_rest) {
        (*weight, *state) = f(*weight, *state, grad);
    }
}

/// `(weight, first, second) = f(weight, first, second, grad)`.
#[inline(always)]
pub(crate) fn each_with_two(
    weights: &mut [f32],
    firsts: &mut [f32],
    seconds: &mut [f32],
    grads: &[f32],
    f: impl Fn(f32, f32, f32, f32) -> (f32, f32, f32),
) {
    let (weights, weights_rest) = weights.as_chunks_mut::<LANES>();
    let (firsts, firsts_rest) = firsts.as_chunks_mut::<LANES>();
    let (seconds, seconds_rest) = seconds.as_chunks_mut::<LANES>();
    let (grads, grads_rest) = grads.as_chunks::<LANES>();
    for (((weights, firsts), seconds), grads) in weights.iter_mut().zip(firsts).zip(seconds).zip(grads) {
        let (mut weight, mut first, mut second, grad) = (*weights, *firsts, *seconds, *grads);
        for lane in 0..LANES {
            (weight[lane], first[lane], second[lane]) =
                f(weight[lane], first[lane], second[lane], grad[lane]);
        }
        (*weights, *firsts, *seconds) = (weight, first, second);
    }
    let rest = weights_rest
        .iter_mut()
        .zip(firsts_rest)
        .zip(seconds_rest)
        .zip(grads_rest);
    for (((weight, first), second), &grad) in rest {
        (*weight, *first, *second) = f(*weight, *first, *second, grad);
    }
}
