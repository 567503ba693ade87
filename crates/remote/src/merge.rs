//! Several pushes that wait to be sent become one.

use std::sync::Arc;

use crate::{PushRequest, Scored};

impl PushRequest {
    /// One push with the gradients of all, added up or averaged: one update, with one entry for the ledger.
    ///
    /// Rows that several of them touch are updated once. None where there is nothing to merge.
    pub fn merge(pushes: Vec<Self>, ledger: Vec<u8>, is_average: bool) -> Option<Self> {
        let share = if is_average {
            1.0 / pushes.len() as f32
        } else {
            1.0
        };
        let mut pushes = pushes.into_iter();
        let mut merged = pushes.next()?;
        let mut dense = Arc::unwrap_or_clone(std::mem::take(&mut merged.dense));
        weigh(&mut dense, merged.dense_scale * share);
        weigh_feeds(&mut merged, share);
        for mut push in pushes {
            add(&mut dense, &push.dense, push.dense_scale * share);
            weigh_feeds(&mut push, share);
            merged.feeds.append(&mut push.feeds);
            merged.samples += push.samples;
            merged.is_last = push.is_last;
            merged.scored.append(push.scored);
        }
        merged.dense = Arc::new(dense);
        merged.dense_scale = 1.0;
        merged.ledger = ledger;
        Some(merged)
    }
}

impl Scored {
    fn append(&mut self, mut other: Self) {
        self.scores.append(&mut other.scores);
        self.labels.append(&mut other.labels);
        if let (Some(own), Some(mut more)) = (&mut self.weights, other.weights) {
            own.append(&mut more);
        }
        if let (Some(own), Some(mut more)) = (&mut self.groups, other.groups) {
            own.append(&mut more);
        }
    }
}

fn weigh_feeds(push: &mut PushRequest, share: f32) {
    for feed in &mut push.feeds {
        feed.head.scale *= share;
    }
}

fn weigh(values: &mut [f32], factor: f32) {
    for value in values {
        *value *= factor;
    }
}

fn add(sum: &mut [f32], values: &[f32], factor: f32) {
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += value * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FeedHead, FeedPush, Partition};

    fn push(ticket: u64, gradient: f32, scale: f32) -> PushRequest {
        let head = FeedHead {
            ticket,
            feed: 0,
            table: 0,
            rate: 0.1,
            scale,
        };
        let feed = FeedPush {
            head,
            width: 1,
            partition: Arc::new(Partition::new(&[ticket], &[], 1)),
            numbers: vec![gradient],
            signs: None,
            counts: Vec::new(),
        };
        PushRequest {
            lane: 0,
            is_last: ticket == 2,
            is_difference: false,
            samples: 10,
            dense_rate: 0.1,
            dense_scale: scale,
            dense: Arc::new(vec![gradient, 2.0 * gradient]),
            states: Vec::new(),
            feeds: vec![feed],
            ledger: vec![ticket as u8],
            scored: Scored {
                scores: vec![gradient; 10],
                labels: vec![0.0; 10],
                ..Scored::default()
            },
        }
    }

    fn merged(is_average: bool) -> PushRequest {
        let pushes = vec![push(1, 1.0, 1.0), push(2, 4.0, 0.5)];
        PushRequest::merge(pushes, vec![9], is_average).expect("two pushes")
    }

    #[test]
    fn gradients_add_up_each_with_its_own_scale() {
        let merged = merged(false);
        assert_eq!(*merged.dense, [3.0, 6.0]);
        let scales: Vec<(u64, f32)> = merged
            .feeds
            .iter()
            .map(|feed| (feed.head.ticket, feed.head.scale))
            .collect();
        assert_eq!(scales, [(1, 1.0), (2, 0.5)]);
    }

    #[test]
    fn an_average_weighs_dense_part_and_rows_alike() {
        let merged = merged(true);
        assert_eq!(*merged.dense, [1.5, 3.0]);
        let scales: Vec<f32> = merged.feeds.iter().map(|feed| feed.head.scale).collect();
        assert_eq!(scales, [0.5, 0.25]);
    }

    #[test]
    fn what_is_counted_is_all_of_it_once() {
        let merged = merged(true);
        assert_eq!((merged.samples, merged.scored.scores.len()), (20, 20));
        assert!(merged.is_last);
        assert_eq!(merged.ledger, [9]);
        assert!(PushRequest::merge(Vec::new(), Vec::new(), false).is_none());
    }
}
