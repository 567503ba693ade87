//! A parameter server: listens, answers trainers, obeys the coordinator, which may be beside it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use clickmill_coordinator::{
    CallId, Command, Happening, Reply, Request, Settings, full_in_s, memory_happening,
};
use clickmill_monitor::Monitor;
use clickmill_net::{Acceptance, Connection, Deadline, Listener, Security, Traffic};
use clickmill_wire::{Frame, Kind};

use crate::Error;
use crate::driver::{Driver, Envelope, Obeyed, Outcome, Tell, spawn};
use crate::engine::{Answer, Received};
use crate::health::{CoordinatorHealth, Health};
use crate::host::Host;
use crate::link::{ANSWER, Link, own_hello};
use crate::memory::Guard;
use crate::pages;
use crate::piece::read_piece;

/// Exit code of a process that was given the wrong token or the wrong encryption, as the command line has it.
const WRONG_SETTINGS: i32 = 2;
/// A trainer that computes says nothing for a while; one that is gone is found by its heartbeats.
const IDLE: Duration = Duration::from_secs(7 * 24 * 3600);

pub struct ServerSettings {
    /// Where to listen; port 0 takes a free one.
    pub address: String,
    /// What others are told, where that differs from where it listens.
    pub announced: Option<String>,
    pub is_insecure: bool,
    /// Which of the servers this is; none: whichever is missing.
    pub index: Option<u32>,
    /// Where the coordinator is; none: in this process.
    pub coordinator: Option<String>,
    pub coordinator_settings: Settings,
    pub snapshots: PathBuf,
    /// Bytes of rows; none: as many as there are.
    pub memory_budget: Option<u64>,
    pub security: Security,
}

pub struct Server {
    address: String,
    host: Arc<Host>,
    driver: Option<Arc<Driver>>,
    ending: Arc<Ending>,
    settings: Arc<ServerSettings>,
    traffic: Arc<Traffic>,
    incarnation: Arc<AtomicU64>,
    tell: Tell,
}

/// When and how this process ends.
#[derive(Default)]
struct Ending {
    stop: Arc<AtomicBool>,
    outcome: Mutex<Option<Outcome>>,
    /// The next heartbeat is due at once.
    is_urgent: AtomicBool,
    changed: Condvar,
}

impl Ending {
    fn end(&self, outcome: Outcome) {
        lock(&self.outcome).get_or_insert(outcome);
        self.changed.notify_all();
    }
}

impl Server {
    /// Listens, and serves on threads of its own until it is told to stop.
    pub fn start(settings: ServerSettings, tell: Tell) -> Result<Self, Error> {
        let listener = Listener::bind(&settings.address, &settings.security, settings.is_insecure)?;
        let bound = listener.address().to_string();
        let address = settings.announced.clone().unwrap_or(bound);
        let host = Arc::new(Host::new(settings.snapshots.clone(), settings.memory_budget));
        let driver = if settings.coordinator.is_some() {
            None
        } else {
            let driver = Driver::new(
                settings.coordinator_settings.clone(),
                settings.snapshots.clone(),
                settings.security.clone(),
                Arc::clone(&tell),
            )?;
            driver.serve_with(Arc::clone(&host), address.clone());
            host.engine.keep_ledger(Arc::downgrade(&driver) as Weak<_>);
            Some(driver)
        };
        let server = Self {
            address,
            host,
            driver,
            ending: Arc::default(),
            settings: Arc::new(settings),
            traffic: Arc::default(),
            incarnation: Arc::new(AtomicU64::new(fresh_incarnation())),
            tell,
        };
        server.guard();
        server.listen(listener);
        server.belong();
        Ok(server)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until the run is over, or for so long; none: it is not.
    pub fn wait(&self, limit: Duration) -> Option<Outcome> {
        if let Some(driver) = &self.driver
            && let Some(outcome) = driver.outcome()
        {
            self.ending.end(outcome);
        }
        let outcome = lock(&self.ending.outcome);
        if outcome.is_some() {
            return outcome.clone();
        }
        let waited = self.ending.changed.wait_timeout(outcome, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// How it is, for those who watch it.
    pub fn health(&self) -> Health {
        let coordinator = self.driver.as_ref().map(|driver| {
            // First: what the status knows of is counted by then.
            let status = driver.status();
            CoordinatorHealth {
                snapshots_committed: driver.snapshots_committed.load(Ordering::Relaxed),
                snapshots_failed: driver.snapshots_failed.load(Ordering::Relaxed),
                status,
            }
        });
        let statistics = self.host.statistics(&self.traffic);
        Health {
            holds_buckets: self.host.engine.is_living(),
            fence: self.host.told_fence.load(Ordering::Relaxed),
            buckets: self.host.num_buckets.load(Ordering::Relaxed),
            full_in_s: full_in_s(&statistics),
            statistics,
            coordinator,
        }
    }

    /// Lets `monitor` answer for the coordinator, where that is in this process.
    pub fn answer_on(&self, monitor: &Monitor) {
        if let Some(driver) = &self.driver {
            pages::open(monitor, driver);
        }
    }

    /// Ends all connections.
    pub fn stop(&self) {
        self.ending.stop.store(true, Ordering::Relaxed);
        // Wakes the listener, which then sees that it is over.
        let _ = std::net::TcpStream::connect(&self.address);
    }

    fn connections(&self) -> Connections {
        Connections {
            host: Arc::clone(&self.host),
            driver: self.driver.clone(),
            ending: Arc::clone(&self.ending),
            settings: Arc::clone(&self.settings),
            traffic: Arc::clone(&self.traffic),
            incarnation: Arc::clone(&self.incarnation),
            tell: Arc::clone(&self.tell),
        }
    }

    fn listen(&self, listener: Listener) {
        let connections = self.connections();
        spawn("listen", move || {
            loop {
                let accepted = listener.accept();
                if connections.ending.stop.load(Ordering::Relaxed) {
                    return;
                }
                match accepted {
                    Ok(acceptance) => {
                        let connections = connections.clone();
                        spawn("connection", move || connections.serve(acceptance));
                    }
                    // Out of file descriptors, for one: others may close theirs.
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            }
        });
    }

    /// A heartbeat at once when memory gets short.
    fn guard(&self) {
        let Some(budget) = self.settings.memory_budget else {
            return;
        };
        let ending = Arc::clone(&self.ending);
        let alarm = move || {
            ending.is_urgent.store(true, Ordering::Relaxed);
            ending.changed.notify_all();
        };
        let guard = Guard::new(budget, Box::new(alarm));
        assert!(
            self.host.engine.guard.set(guard).is_ok(),
            "a server has one budget"
        );
    }

    /// Registers with the coordinator, and is heard of from then on.
    fn belong(&self) {
        let connections = self.connections();
        let address = self.address.clone();
        spawn("heartbeat", move || connections.belong(&address));
    }
}

#[derive(Clone)]
struct Connections {
    host: Arc<Host>,
    driver: Option<Arc<Driver>>,
    ending: Arc<Ending>,
    settings: Arc<ServerSettings>,
    traffic: Arc<Traffic>,
    /// Of this process, as the coordinator knows it.
    incarnation: Arc<AtomicU64>,
    tell: Tell,
}

impl Connections {
    fn serve(&self, acceptance: Acceptance) {
        let stop = Arc::clone(&self.ending.stop);
        let traffic = Arc::clone(&self.traffic);
        // Whoever cannot say hello has been told, and is not one of ours.
        let Ok(mut connection) = acceptance.welcome(&own_hello(), &self.settings.security, traffic, stop)
        else {
            return;
        };
        let number = self.driver.as_ref().map(|driver| driver.connect());
        let (mut frame, mut reply) = (Frame::default(), Frame::default());
        while self
            .answer(&mut connection, &mut frame, &mut reply, number)
            .is_ok()
        {}
        if let (Some(driver), Some(number)) = (&self.driver, number) {
            driver.close(number);
        }
    }

    fn answer(
        &self,
        connection: &mut Connection,
        frame: &mut Frame,
        reply: &mut Frame,
        number: Option<u64>,
    ) -> Result<(), Error> {
        let header = connection.receive(frame, Deadline::after(IDLE))?;
        let (received, within) = (Received::now(), Deadline::after(ANSWER));
        let engine = &self.host.engine;
        let (mut end, mut answered) = (None, None);
        let mut kind_of = |answer| {
            answered = Some(answer);
            kind_of(answer)
        };
        connection.lend(reply);
        let outcome = match header.kind {
            Kind::Step => engine.step(frame.payload(), received, reply).map(&mut kind_of),
            Kind::Commit => engine.commit(frame.payload(), received, reply).map(&mut kind_of),
            Kind::Control => self.control(connection, frame.payload(), reply, number, &mut end),
            kind @ (Kind::Hello | Kind::Held | Kind::Rows | Kind::Waiting | Kind::Refused | Kind::Memory) => {
                Err(Error::protocol(format!("{kind:?} is not for a server")))
            }
        };
        // The trainer's next frame may lie where this one did, and comes as soon as it has the answer.
        frame.clear();
        match outcome {
            Ok(kind) => connection.send(reply, kind, header.request, within)?,
            Err(error) => connection.refuse(error.code(), &error.to_string(), header.request, within)?,
        }
        // The trainer computes now.
        if let Some(Answer::Rows(origin)) = answered {
            engine.find_later(origin);
        }
        // Only now: the coordinator waits for the answer, not for a connection to break.
        if let Some(outcome) = end {
            self.ending.end(outcome);
        }
        Ok(())
    }

    fn control(
        &self,
        connection: &Connection,
        payload: &[u8],
        reply: &mut Frame,
        number: Option<u64>,
        end: &mut Option<Outcome>,
    ) -> Result<Kind, Error> {
        let bytes = match connection.json(payload)? {
            Envelope::Request(request) => {
                let (Some(driver), Some(number)) = (&self.driver, number) else {
                    return Err(Error::NotReady {
                        reason: "the coordinator is not here: it is in the first pserver".to_owned(),
                    });
                };
                let answer = driver.ask(number, request).ok_or_else(|| Error::NotReady {
                    reason: "the coordinator does not answer".to_owned(),
                })?;
                serde_json::to_vec(&answer)
            }
            Envelope::Command {
                incarnation,
                call,
                command,
            } => {
                if incarnation != self.incarnation.load(Ordering::Acquire) {
                    return Err(Error::NotReady {
                        reason: format!("the server of incarnation {incarnation:x} is gone"),
                    });
                }
                serde_json::to_vec(&self.obey(call, command, end))
            }
            Envelope::Metrics => serde_json::to_vec(&self.host.metrics()?),
            Envelope::File { name, offset } => {
                serde_json::to_vec(&read_piece(&self.host.folder, &name, offset)?)
            }
        };
        reply.begin().bytes(&bytes.expect("messages are plain data"));
        Ok(Kind::Control)
    }

    fn obey(&self, call: CallId, command: Command, end: &mut Option<Outcome>) -> Obeyed {
        if let Command::Stop { exit_code, words } = &command {
            *end = Some(Outcome {
                exit_code: *exit_code,
                words: words.clone(),
            });
        }
        match self.host.desk.obey(&self.host, call, command) {
            Ok(answer) => Obeyed::Answer(answer),
            Err(words) => Obeyed::Failed(words),
        }
    }

    fn belong(&self, address: &str) {
        let mut index = self.settings.index;
        let mut link = Link::new(self.driver.clone(), Arc::clone(&self.settings), &self.ending.stop);
        let mut is_registered = false;
        let mut heard = Instant::now();
        let mut told = String::new();
        let mut last = self.host.statistics(&self.traffic);
        while !self.ending.stop.load(Ordering::Relaxed) {
            let life = self.incarnation.load(Ordering::Acquire);
            self.host.note();
            let statistics = self.host.statistics(&self.traffic);
            // The coordinator tells it of the server that it is in.
            if self.driver.is_none()
                && let Some(happening) = memory_happening(index.unwrap_or(0), &last, &statistics)
            {
                (self.tell)(&happening);
            }
            last = statistics.clone();
            let request = match index {
                Some(index) if is_registered => Request::ServerHeartbeat {
                    index,
                    incarnation: life,
                    statistics,
                },
                index => Request::Register {
                    index,
                    is_fixed: index.is_some() && index == self.settings.index,
                    address: address.to_owned(),
                    incarnation: life,
                },
            };
            let reply = link.ask(request);
            if reply.is_some() {
                heard = Instant::now();
            } else if let Some(error) = link.misfit() {
                // Waiting makes no other settings of them.
                self.ending.end(Outcome {
                    exit_code: WRONG_SETTINGS,
                    words: error.to_string(),
                });
                return;
            } else if heard.elapsed() >= self.settings.coordinator_settings.wait_deadline {
                return self.give_up(heard.elapsed(), link.failure.as_ref());
            }
            self.tell_failure(link.failure.as_ref(), &mut told);
            match reply {
                // Also in answer to a heartbeat: a spare has taken the place of a lost server.
                Some(Reply::Registered { index: given, .. }) => {
                    if index != Some(given) {
                        (self.tell)(&Happening::Placed { index: given });
                    }
                    index = Some(given);
                    is_registered = true;
                }
                Some(Reply::Refused { reason, may_join }) => {
                    is_registered = false;
                    self.incarnation.store(fresh_incarnation(), Ordering::Release);
                    if !may_join {
                        self.ending.end(Outcome {
                            exit_code: 1,
                            words: format!("the coordinator refuses this server: {reason}"),
                        });
                        return;
                    }
                }
                Some(Reply::Beat { fence, .. }) => {
                    self.host.told_fence.store(fence, Ordering::Relaxed);
                }
                Some(Reply::End { summary }) => {
                    self.ending.end(Outcome {
                        exit_code: summary.exit_code,
                        words: summary.words,
                    });
                    return;
                }
                Some(_) => {}
                None => is_registered = false,
            }
            let outcome = lock(&self.ending.outcome);
            if outcome.is_some() {
                return;
            }
            let interval = self.settings.coordinator_settings.heartbeat_interval();
            let is_calm = |_: &mut Option<Outcome>| !self.ending.is_urgent.swap(false, Ordering::Relaxed);
            let waited = self
                .ending
                .changed
                .wait_timeout_while(outcome, interval, |outcome| outcome.is_none() && is_calm(outcome));
            drop(waited);
        }
    }

    /// The coordinator is gone for good: nobody would ever tell this server to end.
    fn give_up(&self, waited: Duration, failure: Option<&clickmill_net::Error>) {
        let address = self.settings.coordinator.as_deref().unwrap_or_default();
        let why = match failure {
            None => String::new(),
            Some(error @ clickmill_net::Error::Connect { .. }) => {
                format!(": {error}; is it running, and is this its address?")
            }
            Some(error) => format!(": {error}"),
        };
        self.ending.end(Outcome {
            exit_code: 1,
            words: format!(
                "gave up waiting for the coordinator (pserver 0, {address}), which has not answered for {} s{why}",
                waited.as_secs()
            ),
        });
    }

    /// Says once why the coordinator is not reached.
    fn tell_failure(&self, failure: Option<&clickmill_net::Error>, told: &mut String) {
        let failure = failure.filter(|error| !matches!(error, clickmill_net::Error::Stopped));
        let words = failure.map_or_else(String::new, |error| {
            format!("waiting for the coordinator (pserver 0): {error}")
        });
        if words != *told && !words.is_empty() {
            (self.tell)(&Happening::Waiting { words: words.clone() });
        }
        *told = words;
    }
}

fn kind_of(answer: Answer) -> Kind {
    match answer {
        Answer::Held => Kind::Held,
        Answer::Rows(_) => Kind::Rows,
        Answer::Waiting => Kind::Waiting,
    }
}

/// A number that no other life of a server has.
fn fresh_incarnation() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) | 1
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
