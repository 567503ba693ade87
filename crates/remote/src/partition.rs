//! Which signs of a batch are on which server.

use clickmill_types::sign::bucket;

use crate::BUCKET_BITS;

/// The places of a list of signs, by server; nothing is copied where there is one server only.
#[derive(Clone, Debug)]
pub struct Partition {
    /// All places in the order of the servers; empty for one server, which has them all in their order.
    places: Vec<u32>,
    /// Where the places of each server begin, and the end.
    begins: Vec<usize>,
    len: usize,
}

impl Partition {
    /// `route` gives the server of each bucket.
    pub fn new(signs: &[u64], route: &[u16], num_servers: usize) -> Self {
        let len = signs.len();
        if num_servers == 1 {
            return Self {
                places: Vec::new(),
                begins: vec![0, len],
                len,
            };
        }
        let servers: Vec<u16> = signs
            .iter()
            .map(|&sign| route[bucket(sign, BUCKET_BITS)])
            .collect();
        let mut begins = vec![0; num_servers + 1];
        for &server in &servers {
            begins[usize::from(server) + 1] += 1;
        }
        for server in 0..num_servers {
            begins[server + 1] += begins[server];
        }
        let mut next = begins.clone();
        let mut places = vec![0; len];
        for (place, &server) in (0..).zip(&servers) {
            let at = &mut next[usize::from(server)];
            places[*at] = place;
            *at += 1;
        }
        Self { places, begins, len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many signs a server has.
    pub fn count(&self, server: usize) -> usize {
        self.begins[server + 1] - self.begins[server]
    }

    /// Places of a server's signs in the list; None: all, in their order.
    pub fn places(&self, server: usize) -> Option<&[u32]> {
        (!self.is_whole()).then(|| &self.places[self.begins[server]..self.begins[server + 1]])
    }

    fn is_whole(&self) -> bool {
        self.begins.len() == 2
    }

    /// A server's share of `elements`, in the order in which it knows them.
    pub fn share<'a, T: Copy>(
        &'a self,
        server: usize,
        elements: &'a [T],
    ) -> impl ExactSizeIterator<Item = T> + 'a {
        let places = self.places(server);
        (0..self.count(server)).map(move |at| match places {
            None => elements[at],
            Some(places) => elements[places[at] as usize],
        })
    }

    /// A server's share of rows of `width` numbers, one behind the other.
    pub fn gather(&self, server: usize, rows: &[f32], width: usize, out: &mut Vec<f32>) {
        out.clear();
        match self.places(server) {
            None => out.extend_from_slice(rows),
            Some(places) => {
                out.reserve(places.len() * width);
                for &place in places {
                    out.extend_from_slice(&rows[place as usize * width..][..width]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_goes_to_the_server_of_its_bucket_in_order() {
        let route: Vec<u16> = (0..1 << BUCKET_BITS).map(|bucket| bucket % 3).collect();
        let signs: Vec<u64> = (0..1000).map(|number| number * 7919).collect();
        let partition = Partition::new(&signs, &route, 3);
        let mut seen = vec![0; signs.len()];
        for server in 0..3 {
            let places = partition.places(server).expect("three servers");
            assert!(places.is_sorted());
            assert_eq!(places.len(), partition.count(server));
            for &place in places {
                let sign = signs[place as usize];
                assert_eq!(usize::from(route[bucket(sign, BUCKET_BITS)]), server);
                seen[place as usize] += 1;
            }
            let shared: Vec<u64> = partition.share(server, &signs).collect();
            assert!(
                shared
                    .iter()
                    .zip(places)
                    .all(|(sign, &place)| *sign == signs[place as usize])
            );
        }
        assert!(seen.iter().all(|&count| count == 1));
    }

    #[test]
    fn one_server_has_all_in_their_order() {
        let partition = Partition::new(&[5, 3, 9], &[0; 1 << BUCKET_BITS], 1);
        assert_eq!(partition.share(0, &[5, 3, 9]).collect::<Vec<_>>(), [5, 3, 9]);
        let mut out = Vec::new();
        partition.gather(0, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, &mut out);
        assert_eq!(out, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
}
