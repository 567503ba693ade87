//! Steps to all servers of one epoch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clickmill_net::{Deadline, Hello, Security, Traffic};
use clickmill_wire::rows::Rows;
use clickmill_wire::step::{Origin, When};
use clickmill_wire::{Frame, Kind, Precision, Timing};

use crate::Error;
use crate::link::Link;
use crate::pool::Pool;
use crate::spent::{Exchange, Spent};
use crate::step::{Answer, FeedRows, KeysRequest, PushRequest, Shape, encode, scatter};
use clickmill_wire::numbers::{unpack, unpack_to};

/// What does not change while a trainer lives.
#[derive(Clone, Debug)]
pub struct Settings {
    pub hello: Hello,
    pub security: Security,
    pub precision: Precision,
    /// How long to wait for an answer.
    pub deadline: Duration,
    pub retries: u32,
    /// Threads that talk to servers at the same time.
    pub num_threads: usize,
    /// Long frames to and from servers on this host go through memory.
    pub shares_memory: bool,
}

/// Where everything is in one epoch.
#[derive(Clone, Debug)]
pub struct Place {
    pub epoch: u64,
    pub incarnation: u64,
    /// Address by server index.
    pub servers: Vec<String>,
    /// Server index by bucket.
    pub route: Vec<u16>,
    /// Numbers of the dense part in all.
    pub num_dense: usize,
}

pub struct Session {
    settings: Settings,
    place: Place,
    /// Where each server's slice of the dense part begins, and the end.
    bounds: Vec<usize>,
    links: Vec<Arc<Mutex<Channel>>>,
    pool: Pool,
    next_sequence: AtomicU64,
    next_ticket: AtomicU64,
    /// Nobody wants the answers any more.
    stop: Arc<AtomicBool>,
    spent: Mutex<Spent>,
}

/// Set when something has failed with one of the servers.
type Failed = Arc<AtomicBool>;

struct Channel {
    link: Link,
    frame: Frame,
    answer: Frame,
}

impl Session {
    pub fn new(settings: Settings, place: Place, traffic: &Arc<Traffic>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let links: Vec<_> = place
            .servers
            .iter()
            .enumerate()
            .map(|(index, address)| {
                let mut link = Link::new(
                    format!("pserver {index}"),
                    address.clone(),
                    settings.hello.clone(),
                    settings.security.clone(),
                    Arc::clone(traffic),
                    settings.retries,
                );
                link.stop = Arc::clone(&stop);
                link.shares_memory = settings.shares_memory;
                Arc::new(Mutex::new(Channel {
                    link,
                    frame: Frame::default(),
                    answer: Frame::default(),
                }))
            })
            .collect();
        // The caller's thread is one of them.
        let pool = Pool::new(settings.num_threads.min(links.len()).saturating_sub(1));
        Self {
            bounds: clickmill_wire::dense_bounds(place.num_dense, place.servers.len()),
            settings,
            place,
            links,
            pool,
            next_sequence: AtomicU64::new(1),
            next_ticket: AtomicU64::new(1),
            stop,
            spent: Mutex::default(),
        }
    }

    /// Ends every step under way and to come with an error: its epoch is over.
    pub fn abandon(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn precision(&self) -> Precision {
        self.settings.precision
    }

    /// Where each server's slice of the dense part begins, and the end.
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    pub fn next_ticket(&self) -> u64 {
        self.next_ticket.fetch_add(1, Ordering::Relaxed)
    }

    /// What the steps since the last call have waited for.
    pub fn take_spent(&self) -> Spent {
        std::mem::take(&mut *lock(&self.spent))
    }

    /// Sends pushes and keys to all servers and waits for their answers; keys for later steps come last.
    pub fn step(&self, pushes: Vec<PushRequest>, keys: Vec<KeysRequest>) -> Result<Answer, Error> {
        let mut dense = Vec::new();
        let mut answer = self.step_with(pushes, keys, |_, numbers, precision| {
            dense.push(unpack(numbers, precision));
        })?;
        answer.dense = dense;
        Ok(answer)
    }

    /// As `step`, with the dense part written to `parameters`, which are as long as that.
    pub fn step_into(
        &self,
        pushes: Vec<PushRequest>,
        keys: Vec<KeysRequest>,
        parameters: &mut [&mut [f32]],
    ) -> Result<Answer, Error> {
        self.step_with(pushes, keys, |first, numbers, precision| {
            unpack_from(first, numbers, precision, parameters);
        })
    }

    /// `take_dense` gets each server's slice, packed, and its first place.
    fn step_with(
        &self,
        pushes: Vec<PushRequest>,
        keys: Vec<KeysRequest>,
        take_dense: impl FnMut(usize, &[u8], Precision),
    ) -> Result<Answer, Error> {
        let has_push = !pushes.is_empty();
        let is_alone = self.links.len() == 1;
        let origin = Origin {
            epoch: self.place.epoch,
            incarnation: self.place.incarnation,
            sequence: if has_push {
                self.next_sequence.fetch_add(1, Ordering::Relaxed)
            } else {
                0
            },
        };
        let limit = self.settings.deadline;
        let work = Arc::new((pushes, keys));
        let (precision, bounds) = (self.settings.precision, self.bounds.clone());
        let (own, is_held_first) = (Arc::clone(&work), has_push && !is_alone);
        let mut spent = self.on_all(
            Kind::Step,
            move |server, frame| {
                let shape = Shape {
                    server,
                    is_alone,
                    precision,
                    bounds: &bounds,
                };
                encode(frame, &shape, &origin, &own.0, &own.1);
            },
            move |channel, kind, exchange, failed| {
                if is_held_first {
                    check(kind, Kind::Held, &channel.link.name)?;
                    return Ok(exchange.end(timing(&channel.answer, &channel.link.name)?));
                }
                applied(channel, kind, exchange, &origin, failed, limit)
            },
        )?;
        if is_held_first {
            spent += self.on_all(
                Kind::Commit,
                move |_, frame| origin.encode(&mut frame.begin()),
                move |channel, kind, exchange, failed| {
                    applied(channel, kind, exchange, &origin, failed, limit)
                },
            )?;
        }
        let began = Instant::now();
        // Rows for later steps are not in the answer.
        let asked = work.1.partition_point(|keys| keys.when != When::Later);
        let answer = self.read(&work.1[..asked], take_dense);
        spent.pull += began.elapsed();
        *lock(&self.spent) += if has_push { spent } else { spent.of_reading() };
        answer
    }

    /// Asks all servers: `write` makes the frame of each, `end` looks at its answer.
    ///
    /// A thread sends to all of its servers before it waits for the first answer. When something fails with one, the
    /// others are not waited for any longer. Gives what was spent on the server that took longest: the others had
    /// answered by then.
    fn on_all<W, E>(&self, kind: Kind, write: W, end: E) -> Result<Spent, Error>
    where
        W: Fn(usize, &mut Frame) + Send + Sync + 'static,
        E: Fn(&mut Channel, Kind, &Exchange, &Failed) -> Result<Spent, Error> + Send + Sync + 'static,
    {
        let failed = Failed::default();
        let deadline = Deadline::after(self.settings.deadline);
        let talk = Arc::new((write, end));
        let num_threads = self.pool.num_threads();
        let works = (0..num_threads).map(|thread| {
            let links = self.links.iter().enumerate().skip(thread).step_by(num_threads);
            let links: Vec<_> = links.map(|(server, link)| (server, Arc::clone(link))).collect();
            let (talk, failed, stop) = (Arc::clone(&talk), Arc::clone(&failed), Arc::clone(&self.stop));
            move || {
                let (write, end) = &*talk;
                let mut under_way = Vec::with_capacity(links.len());
                for (server, channel) in &links {
                    let exchange = Exchange::begin();
                    let mut channel = lock(channel);
                    let Channel { link, frame, answer } = &mut *channel;
                    // What comes next may lie where the last answer did.
                    answer.clear();
                    link.lend(frame);
                    write(*server, frame);
                    let sent = link.send(frame, kind, deadline);
                    under_way.push((channel, exchange, sent));
                }
                let outcomes = under_way.into_iter().map(|(mut channel, exchange, sent)| {
                    let Channel { link, frame, answer } = &mut *channel;
                    let answered = link.receive(sent, frame, kind, answer, deadline);
                    let outcome =
                        answered.and_then(|header| end(&mut channel, header.kind, &exchange, &failed));
                    failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    // A wait of this thread was ended; nobody wants those of the others either.
                    let is_ended = matches!(outcome, Err(Error::Net(clickmill_net::Error::Stopped)));
                    stop.fetch_or(is_ended, Ordering::Relaxed);
                    outcome
                });
                outcomes.collect::<Vec<_>>()
            }
        });
        let mut outcomes: Vec<_> = self.pool.run(works.collect()).into_iter().flatten().collect();
        // Who was not waited for any longer is not why it failed.
        outcomes.sort_by_key(|outcome| matches!(outcome, Err(Error::Waiting { .. })));
        let spent: Vec<Spent> = outcomes.into_iter().collect::<Result<_, _>>()?;
        Ok(spent.into_iter().max_by_key(Spent::total).unwrap_or_default())
    }

    fn read(
        &self,
        keys: &[KeysRequest],
        mut take_dense: impl FnMut(usize, &[u8], Precision),
    ) -> Result<Answer, Error> {
        let num_feeds = keys.iter().map(|keys| keys.feeds.len()).sum();
        let mut rows: Vec<FeedRows> = std::iter::repeat_with(FeedRows::default)
            .take(num_feeds)
            .collect();
        let (mut step, mut fence) = (0, 0);
        for (server, channel) in self.links.iter().enumerate() {
            let mut channel = lock(channel);
            let Channel {
                link, answer: frame, ..
            } = &mut *channel;
            let name = &link.name;
            let wrong = |source| Error::Wire {
                server: name.clone(),
                source,
            };
            let (_, payload) = Timing::decode(frame.payload()).map_err(wrong)?;
            let answer = Rows::decode(payload).map_err(wrong)?;
            if server == 0 {
                (step, fence) = (answer.head.step, answer.head.fence);
            }
            scatter(&answer, server, name, keys, &mut rows)?;
            if let Some(numbers) = answer.dense {
                let expected = self.bounds[server + 1] - self.bounds[server];
                let precision = answer.head.precision;
                let found = numbers.len() / precision.bytes();
                let has_state = keys.iter().any(|keys| keys.wants_full_rows && keys.wants_dense);
                if found != expected && !(has_state && found.is_multiple_of(expected.max(1))) {
                    return Err(Error::Answer {
                        server: name.clone(),
                        reason: format!("{found} dense numbers, not {expected}"),
                    });
                }
                take_dense(self.bounds[server], numbers, precision);
            }
            // The next answer may lie where this one did.
            frame.clear();
        }
        Ok(Answer {
            step,
            fence,
            rows,
            dense: Vec::new(),
        })
    }
}

/// What was spent on a push that a server has applied, or waits to apply.
fn applied(
    channel: &mut Channel,
    kind: Kind,
    exchange: &Exchange,
    origin: &Origin,
    failed: &Failed,
    limit: Duration,
) -> Result<Spent, Error> {
    if kind == Kind::Waiting {
        return Ok(exchange.waited() + commit(channel, origin, failed, limit)?);
    }
    check(kind, Kind::Rows, &channel.link.name)?;
    Ok(exchange.end(timing(&channel.answer, &channel.link.name)?))
}

/// Says that all servers hold the push, and waits until it is applied.
///
/// A server that says whom it waits for is alive; how long that may last is the coordinator's to say.
fn commit(channel: &mut Channel, origin: &Origin, failed: &Failed, limit: Duration) -> Result<Spent, Error> {
    let Channel { link, frame, answer } = channel;
    let began = Instant::now();
    let mut spent = Spent::default();
    loop {
        let exchange = Exchange::begin();
        answer.clear();
        origin.encode(&mut frame.begin());
        match link
            .ask(frame, Kind::Commit, answer, Deadline::after(limit))?
            .kind
        {
            Kind::Waiting if !failed.load(Ordering::Relaxed) => spent += exchange.waited(),
            Kind::Waiting => {
                return Err(Error::Waiting {
                    server: link.name.clone(),
                    seconds: began.elapsed().as_secs_f64(),
                    waiting: String::from_utf8_lossy(answer.payload()).into_owned(),
                });
            }
            Kind::Rows => return Ok(spent + exchange.end(timing(answer, &link.name)?)),
            kind @ (Kind::Hello
            | Kind::Control
            | Kind::Step
            | Kind::Commit
            | Kind::Held
            | Kind::Refused
            | Kind::Memory) => {
                check(kind, Kind::Rows, &link.name)?;
            }
        }
    }
}

/// Writes numbers to where they belong in `parameters`, which lie one behind the other; `first` is the place of the
/// first.
fn unpack_from(first: usize, mut numbers: &[u8], precision: Precision, parameters: &mut [&mut [f32]]) {
    let mut skipped = first;
    for parameter in parameters {
        let begin = skipped.min(parameter.len());
        skipped -= begin;
        let own = &mut parameter[begin..];
        let count = own.len().min(numbers.len() / precision.bytes());
        let (these, rest) = numbers.split_at(count * precision.bytes());
        unpack_to(these, precision, &mut own[..count]);
        numbers = rest;
    }
}

fn timing(answer: &Frame, server: &str) -> Result<Timing, Error> {
    let decoded = Timing::decode(answer.payload()).map_err(|source| Error::Wire {
        server: server.to_owned(),
        source,
    })?;
    Ok(decoded.0)
}

fn check(found: Kind, expected: Kind, server: &str) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Answer {
        server: server.to_owned(),
        reason: format!("{found:?} is no answer where {expected:?} is due"),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_go_where_they_belong_whatever_the_bounds() {
        let numbers: Vec<f32> = (0..9_u8).map(f32::from).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        for first in 0..=9 {
            for second in first..=9 {
                let (mut one, mut two, mut three) = ([-1.0; 4], [-1.0; 0], [-1.0; 5]);
                let mut parameters = [one.as_mut_slice(), &mut two, &mut three];
                for bounds in [(0, first), (first, second), (second, 9)] {
                    let slice = &bytes[4 * bounds.0..4 * bounds.1];
                    unpack_from(bounds.0, slice, Precision::Fp32, &mut parameters);
                }
                assert_eq!([one.as_slice(), &two, &three].concat(), numbers);
            }
        }
    }
}
