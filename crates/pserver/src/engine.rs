//! Steps of trainers: held, committed, applied, answered.
//!
//! Any number of connections call in at once. A trainer's session is locked by its own connection; the
//! parameters are one lock, taken for short; a round is waited for with that lock let go.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use clickmill_wire::step::{Origin, Step, When, decode_commit};
use clickmill_wire::{Frame, Precision, Timing, Writer, rows};

use crate::Error;
use crate::counters::Counters;
use crate::life::{Life, Together};
use crate::memory::Guard;
use crate::push::Held;
use crate::session::{AnswerRows, Arrival, HeldStep, Session};
use clickmill_wire::numbers::pack_to;

/// A round that takes longer is answered by whom it waits for; the trainer asks again.
const ROUND_WAIT: Duration = Duration::from_secs(2);

/// Who keeps account of every batch.
pub(crate) trait Ledger: Send + Sync {
    /// Enters a batch that is about to be applied; an error means that it must not be. `entry` is what the
    /// trainer sent for the ledger. Gives the fence that is wanted.
    fn advance(&self, incarnation: u64, epoch: u64, entry: &[u8]) -> Result<u64, Error>;
}

/// When a request was here, to its last byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    at: Instant,
    clock_us: u64,
}

impl Received {
    pub(crate) fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            at: Instant::now(),
            clock_us: since.map_or(0, |since| since.as_micros() as u64),
        }
    }

    /// All time until now, but for `waited`, went into what the request brought.
    fn timing(self, waited: Duration) -> Timing {
        let micros = |duration: Duration| u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
        Timing {
            received_us: self.clock_us,
            pushing_us: micros(self.at.elapsed().saturating_sub(waited)),
            waiting_us: micros(waited),
        }
    }
}

/// How a step is answered; the payload is in the reply frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Held,
    /// To the step of this origin.
    Rows(Origin),
    Waiting,
}

#[derive(Default)]
pub(crate) struct Engine {
    state: Mutex<Option<Life>>,
    changed: Condvar,
    sessions: Mutex<HashMap<u64, Arc<Mutex<Session>>>>,
    /// The fence that the coordinator asks for.
    pub wanted_fence: AtomicU64,
    /// A server is lost, or the run is over: no round will end any more.
    is_interrupted: AtomicBool,
    pub counters: Counters,
    /// It has the engine's host, which must not keep it alive.
    ledger: std::sync::OnceLock<Weak<dyn Ledger>>,
    /// Watches how much memory rows take, where there is a budget.
    pub guard: std::sync::OnceLock<Guard>,
}

impl Engine {
    pub(crate) fn keep_ledger(&self, ledger: Weak<dyn Ledger>) {
        assert!(self.ledger.set(ledger).is_ok(), "a server has one ledger");
    }

    /// Kernels check their arguments before they write: a panic elsewhere leaves the parameters whole.
    fn lock(&self) -> MutexGuard<'_, Option<Life>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the parameters while nobody else does.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Life) -> Result<T, Error>) -> Result<T, Error> {
        work(living(&mut self.lock())?)
    }

    /// Whoever waits for a round is sent away, or may wait again.
    pub(crate) fn interrupt(&self, is_interrupted: bool) {
        if self.is_interrupted.swap(is_interrupted, Ordering::AcqRel) != is_interrupted {
            self.changed.notify_all();
        }
    }

    /// Replaces everything: a new life begins, sessions of the old one are gone.
    pub(crate) fn begin_life(&self, life: Life) {
        let mut sessions = lock(&self.sessions);
        *self.lock() = Some(life);
        sessions.clear();
        self.changed.notify_all();
    }

    /// Drops what sessions hold and have given out: leases are void, or rows are about to change places.
    pub(crate) fn forget_sessions(&self) {
        lock(&self.sessions).clear();
        self.changed.notify_all();
    }

    fn session(&self, incarnation: u64) -> Arc<Mutex<Session>> {
        Arc::clone(lock(&self.sessions).entry(incarnation).or_default())
    }

    /// Whether there are parameters here.
    pub(crate) fn is_living(&self) -> bool {
        self.lock().is_some()
    }

    /// Drops everything: this server belongs to no epoch any more.
    pub(crate) fn end_life(&self) {
        let mut sessions = lock(&self.sessions);
        *self.lock() = None;
        sessions.clear();
        self.changed.notify_all();
    }

    /// Takes a step.
    pub(crate) fn step(
        &self,
        payload: &[u8],
        received: Received,
        reply: &mut Frame,
    ) -> Result<Answer, Error> {
        let step = Step::decode(payload)?;
        let origin = step.origin;
        self.with(|life| life.check(origin.epoch, origin.incarnation))?;
        let session = if step.is_reading_only() {
            // Nothing of it is remembered: it neither waits for a push that is under way nor takes its answer.
            Arc::default()
        } else {
            self.session(origin.incarnation)
        };
        let mut session = lock(&session);
        if !step.pushes.is_empty()
            && let Arrival::New = session.arrive(origin.sequence)?
        {
            self.counters.count_pushed(&step);
            let pushes = step
                .pushes
                .iter()
                .map(|push| Held::decode(push, |ticket, feed| session.take(ticket, feed)))
                .collect::<Result<_, Error>>()?;
            session.held = Some(HeldStep {
                sequence: origin.sequence,
                pushes,
            });
        }
        if !step.keys.is_empty() {
            self.with(|life| {
                life.check(origin.epoch, origin.incarnation)?;
                step.keys
                    .iter()
                    .try_for_each(|keys| session.read(keys, &mut life.model))?;
                // Rows are made here, and ahead of a later step.
                self.look(life);
                Ok(())
            })?;
        }
        if !step.pushes.is_empty() && !step.is_committed {
            received.timing(Duration::ZERO).encode(&mut reply.begin());
            return Ok(Answer::Held);
        }
        self.finish(origin, &mut session, &step.keys, received, reply)
    }

    /// Finds rows that a later step will ask for: nobody waits for it.
    pub(crate) fn find_later(&self, origin: Origin) {
        let Origin {
            epoch, incarnation, ..
        } = origin;
        let session = lock(&self.sessions).get(&incarnation).cloned();
        let Some(session) = session else { return };
        let mut session = lock(&session);
        if !session.has_later() {
            return;
        }
        // What fails here fails again for the step that asks, which hears of it.
        let _ = self.with(|life| {
            life.check(epoch, incarnation)?;
            session.find_later(&mut life.model)?;
            self.look(life);
            Ok(())
        });
    }

    fn look(&self, life: &mut Life) {
        if let Some(guard) = self.guard.get() {
            guard.look(life);
        }
    }

    /// Applies what is held, and answers.
    pub(crate) fn commit(
        &self,
        payload: &[u8],
        received: Received,
        reply: &mut Frame,
    ) -> Result<Answer, Error> {
        let origin = decode_commit(payload)?;
        let session = self.session(origin.incarnation);
        let mut session = lock(&session);
        self.finish(origin, &mut session, &[], received, reply)
    }

    fn finish(
        &self,
        origin: Origin,
        session: &mut Session,
        keys: &[clickmill_wire::step::Keys<'_>],
        received: Received,
        reply: &mut Frame,
    ) -> Result<Answer, Error> {
        let mut state = self.lock();
        let life = living(&mut state)?;
        life.check(origin.epoch, origin.incarnation)?;
        if let Some(held) = session.held.take_if(|held| held.sequence == origin.sequence) {
            self.apply(life, origin.incarnation, held, session)?;
        }
        if origin.sequence > 0 && session.applied != origin.sequence {
            return Err(Error::protocol(format!(
                "push {} is not held here; the last one was push {}",
                origin.sequence, session.applied
            )));
        }
        let mut waited = Duration::ZERO;
        while let Some(round) = session.round {
            let life = living(&mut state)?;
            life.check(origin.epoch, origin.incarnation)?;
            if life.rounds.number > round {
                session.round = None;
                break;
            }
            if self.is_interrupted.load(Ordering::Acquire) {
                return Err(Error::NotReady {
                    reason: format!("{}, and the cluster has stopped", life.rounds.missing()),
                });
            }
            let began = Instant::now();
            let woken = self.changed.wait_timeout(state, ROUND_WAIT);
            let (again, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            state = again;
            waited += began.elapsed();
            if timeout.timed_out() {
                let words = living(&mut state)?.rounds.missing();
                reply.begin().bytes(words.as_bytes());
                return Ok(Answer::Waiting);
            }
        }
        let timing = received.timing(waited);
        let life = living(&mut state)?;
        let mut answer = Vec::new();
        let readings = session.take_readings(origin.sequence);
        let wants_dense =
            readings.iter().any(|reading| reading.wants_dense) || keys.iter().any(|keys| keys.wants_dense);
        let wants_state = readings
            .iter()
            .any(|reading| reading.wants_dense && reading.wants_full_rows);
        let precision = readings
            .first()
            .map(|reading| reading.precision)
            .or(keys.first().map(|keys| keys.precision))
            .unwrap_or(Precision::Fp32);
        let is_read = !readings.is_empty();
        for reading in readings {
            answer.extend(session.answer(reading, &life.model)?);
        }
        if !is_read {
            for keys in keys.iter().filter(|keys| keys.when != When::Later) {
                let again = session.answer_again(keys.ticket);
                answer.extend(again.ok_or_else(|| {
                    Error::protocol(format!("the rows of ticket {} are gone", keys.ticket))
                })?);
            }
        }
        let mut out = reply.begin();
        timing.encode(&mut out);
        let head = rows::RowsHead {
            step: life.model.step,
            fence: match life.together {
                Together::Never | Together::Rounds | Together::DenseRounds if life.is_validation => {
                    self.wanted_fence.load(Ordering::Acquire)
                }
                Together::Never => self.wanted_fence.load(Ordering::Acquire),
                Together::Rounds | Together::DenseRounds => life.rounds.fence,
            },
            precision,
        };
        rows::encode_head(&mut out, &head);
        let with_state = wants_state.then(|| life.model.dense.with_state());
        let dense = with_state.as_ref().unwrap_or(&life.model.dense.values);
        let room = rows::encode_dense(&mut out, precision, wants_dense.then_some(dense.len()));
        if wants_dense {
            pack_to(dense, precision, room);
        }
        drop(state);
        self.write_rows(&mut out, &answer, session, precision)?;
        Ok(Answer::Rows(origin))
    }

    fn apply(
        &self,
        life: &mut Life,
        incarnation: u64,
        held: HeldStep,
        session: &mut Session,
    ) -> Result<(), Error> {
        let round = life.rounds.number;
        let mut fence = self.wanted_fence.load(Ordering::Acquire);
        let mut has_ended = false;
        for push in held.pushes {
            if let Some(ledger) = self.ledger.get()
                && !push.ledger.is_empty()
            {
                let ledger = ledger.upgrade().ok_or_else(|| Error::NotReady {
                    reason: "the coordinator has ended".to_owned(),
                })?;
                fence = ledger.advance(incarnation, life.epoch, &push.ledger)?;
            }
            self.counters.count_staleness(&push, life.model.step);
            has_ended |= life.commit(push, fence)?;
        }
        session.applied = held.sequence;
        self.counters.pushes.fetch_add(1, Ordering::Relaxed);
        if life.together != Together::Never && !life.is_validation {
            session.round = Some(round);
        }
        if has_ended {
            self.changed.notify_all();
        }
        Ok(())
    }

    fn write_rows(
        &self,
        out: &mut Writer<'_>,
        answer: &[AnswerRows],
        session: &Session,
        precision: Precision,
    ) -> Result<(), Error> {
        let mut pulled = 0;
        rows::encode_num_feeds(out, answer.len());
        for each in answer {
            let (rows, width, values) = match each {
                AnswerRows::Full { rows, width, floats } => (*rows, *width, floats.as_slice()),
                AnswerRows::Lookup(lookup) => (lookup.num_rows(), lookup.dim(), lookup.values()),
                AnswerRows::Kept { ticket, feed } => {
                    let lookup = session.kept(*ticket, *feed).ok_or_else(|| {
                        Error::protocol(format!("the rows of ticket {ticket} were pushed to before"))
                    })?;
                    (lookup.num_rows(), lookup.dim(), lookup.values())
                }
            };
            pulled += rows as u64;
            pack_to(values, precision, rows::encode_feed(out, precision, rows, width));
        }
        self.counters.count_pulled(answer.len(), pulled);
        Ok(())
    }

    /// What is held and applied of an incarnation; its frames are refused from now on.
    pub(crate) fn settle_query(&self, incarnation: u64) -> Result<(Option<u64>, u64), Error> {
        self.with(|life| {
            life.dead.insert(incarnation);
            Ok(())
        })?;
        // Whoever waits for a round on its behalf holds the session.
        self.changed.notify_all();
        let session = self.session(incarnation);
        let session = lock(&session);
        Ok((session.held.as_ref().map(|held| held.sequence), session.applied))
    }

    /// Applies what a dead trainer has left up to `sequence`, and drops the rest.
    pub(crate) fn settle(&self, incarnation: u64, sequence: u64) -> Result<(), Error> {
        let session = self.session(incarnation);
        let mut session = lock(&session);
        if let Some(held) = session.held.take()
            && held.sequence <= sequence
        {
            self.with(|life| self.apply(life, incarnation, held, &mut session))?;
        }
        lock(&self.sessions).remove(&incarnation);
        Ok(())
    }
}

fn living(state: &mut Option<Life>) -> Result<&mut Life, Error> {
    state.as_mut().ok_or_else(|| Error::NotReady {
        reason: "this server has not been told what to hold yet".to_owned(),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
