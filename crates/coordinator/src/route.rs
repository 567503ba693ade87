//! The route: which server holds which bucket.
//!
//! 1024 buckets, as even as can be over N servers. When N changes, only as many buckets move as must: those of
//! servers that go, or the share of those that come.

use serde::{Deserialize, Serialize};

/// Buckets of every table of a cluster.
pub const NUM_BUCKETS: usize = 1024;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub servers: u32,
    /// Server index by bucket.
    pub buckets: Vec<u16>,
}

impl Route {
    /// Runs of neighbouring buckets, one a server.
    pub fn new(servers: u32) -> Self {
        let servers = servers.clamp(1, NUM_BUCKETS as u32);
        let server_of = |bucket: usize| (bucket * servers as usize / NUM_BUCKETS) as u16;
        Self {
            servers,
            buckets: (0..NUM_BUCKETS).map(server_of).collect(),
        }
    }

    /// The same for another number of servers, with the fewest buckets moved.
    #[must_use]
    pub fn resized(&self, servers: u32) -> Self {
        let servers = servers.clamp(1, NUM_BUCKETS as u32);
        let (share, larger) = (NUM_BUCKETS / servers as usize, NUM_BUCKETS % servers as usize);
        let mut counts = vec![0; servers as usize];
        for server in self.buckets.iter().filter(|server| u32::from(**server) < servers) {
            counts[usize::from(*server)] += 1;
        }
        // The servers that hold most keep the odd buckets, so that these do not move either.
        let mut by_count: Vec<usize> = (0..counts.len()).collect();
        by_count.sort_by_key(|server| std::cmp::Reverse(counts[*server]));
        let mut targets = vec![share; servers as usize];
        by_count
            .iter()
            .take(larger)
            .for_each(|server| targets[*server] += 1);

        let mut buckets = self.buckets.clone();
        let mut short: Vec<u16> = Vec::new();
        for (server, target) in targets.iter().enumerate() {
            let missing = target.saturating_sub(counts[server]);
            short.extend(std::iter::repeat_n(server as u16, missing));
        }
        let mut receivers = short.into_iter();
        for server in &mut buckets {
            let own = usize::from(*server);
            let stays = own < targets.len() && counts[own] <= targets[own];
            if stays {
                continue;
            }
            if own < targets.len() {
                counts[own] -= 1;
            }
            *server = receivers
                .next()
                .expect("as many buckets are missing as are too many");
        }
        Self { servers, buckets }
    }

    /// Servers that get buckets which they do not have under `self`.
    pub fn receivers(&self, next: &Self) -> Vec<u32> {
        let pairs = self.buckets.iter().zip(&next.buckets);
        let mut found: Vec<u32> = pairs
            .filter(|(now, then)| now != then)
            .map(|(_, then)| u32::from(*then))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    pub fn count(&self, server: u32) -> usize {
        self.buckets
            .iter()
            .filter(|own| u32::from(**own) == server)
            .count()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;

    fn moved(a: &Route, b: &Route) -> usize {
        a.buckets.iter().zip(&b.buckets).filter(|(a, b)| a != b).count()
    }

    #[test]
    fn buckets_are_spread_evenly_for_every_number_of_servers() {
        for servers in [1, 2, 3, 5, 7, 64, 1000, 1024] {
            let route = Route::new(servers);
            for server in 0..servers {
                let even = NUM_BUCKETS / servers as usize;
                assert!(
                    [even, even + 1].contains(&route.count(server)),
                    "{servers} servers"
                );
            }
        }
    }

    #[test]
    fn a_server_that_comes_gets_its_share_and_nothing_else_moves() {
        let before = Route::new(3);
        let after = before.resized(4);
        assert_eq!(moved(&before, &after), 256);
        assert_eq!(before.receivers(&after), [3]);
        assert_eq!(
            (0..4).map(|server| after.count(server)).collect::<Vec<_>>(),
            [256; 4]
        );
    }

    #[test]
    fn a_server_that_goes_gives_its_buckets_away_and_nothing_else_moves() {
        let before = Route::new(4);
        let after = before.resized(3);
        assert_eq!(moved(&before, &after), before.count(3));
        assert_eq!(after.count(3), 0);
    }

    #[test]
    fn many_changes_keep_it_even_and_minimal() {
        let mut route = Route::new(1);
        for servers in [5, 2, 9, 9, 1, 4, 3, 64, 7] {
            let next = route.resized(servers);
            let counts: Vec<usize> = (0..servers).map(|server| next.count(server)).collect();
            assert!(
                counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1,
                "{counts:?}"
            );
            let fewest: usize = (0..servers)
                .map(|server| next.count(server).saturating_sub(route.count(server)))
                .sum();
            assert_eq!(moved(&route, &next), fewest);
            route = next;
        }
    }
}
