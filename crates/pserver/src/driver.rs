//! The coordinator in its process: events in, actions carried out.
//!
//! The state machine is behind one lock, held for a single event; actions are carried out without it. A
//! command to a server goes out on a connection of its own, so that a long one holds up nobody.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use clickmill_coordinator::{
    Action, Answer, CallId, Command, Committed, Coordinator, Event, Happening, LedgerEntry, Reply, Request,
    RequestId, Settings, Status,
};
use clickmill_net::{Connection, Deadline, Hello, Role, Security};
use clickmill_wire::{Frame, Kind};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::commit_file;
use crate::engine::Ledger;
use crate::host::Host;

/// How often the coordinator looks at its deadlines.
const TICK: Duration = Duration::from_millis(100);
/// A command that takes longer than all of its deadlines together is given up by the coordinator, not here.
const CALL_DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// Before a command whose connection was lost goes out again.
const BETWEEN_CALLS: Duration = Duration::from_secs(1);

/// What a control frame holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Envelope {
    Request(Request),
    Command {
        /// Whom it is for: a process that was started anew at the same address is another.
        incarnation: u64,
        call: CallId,
        command: Command,
    },
    /// The metrics of the stage under way; asked of the server that counts them.
    Metrics,
    /// A piece of a file of the snapshots, for one who does not see their folder.
    File {
        name: String,
        offset: u64,
    },
}

/// A server's word on a command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Obeyed {
    Answer(Answer),
    Failed(String),
}

/// What a push says to the ledger.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    lease: u64,
    entry: LedgerEntry,
}

/// Hears of what happens.
pub type Tell = Arc<dyn Fn(&Happening) + Send + Sync>;

/// How the run has ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub exit_code: i32,
    pub words: String,
}

/// Where a server is, and which of its lives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Registered {
    address: String,
    incarnation: u64,
}

pub(crate) struct Driver {
    own: Weak<Self>,
    began: Instant,
    coordinator: Mutex<Coordinator>,
    replies: Mutex<HashMap<RequestId, Sender<Reply>>>,
    /// Servers whose registration or heartbeat has not been answered.
    registering: Mutex<HashMap<RequestId, Registered>>,
    servers: Mutex<HashMap<u32, Registered>>,
    next_connection: AtomicU64,
    host: OnceLock<Arc<Host>>,
    own_address: OnceLock<String>,
    security: Security,
    folder: PathBuf,
    /// Commit files are written one after the other, in the order in which they were asked for.
    stores: Mutex<Sender<(u64, Box<Committed>)>>,
    tell: Tell,
    pub snapshots_committed: AtomicU64,
    pub snapshots_failed: AtomicU64,
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

impl Driver {
    /// Goes on from the newest commit file in `folder`, if there is one.
    pub(crate) fn new(
        settings: Settings,
        folder: PathBuf,
        security: Security,
        tell: Tell,
    ) -> Result<Arc<Self>, Error> {
        let restored = commit_file::read(&folder)?;
        let (sender, receiver) = channel();
        let driver = Arc::new_cyclic(|own| Self {
            own: own.clone(),
            began: Instant::now(),
            coordinator: Mutex::new(Coordinator::new(settings, restored)),
            replies: Mutex::default(),
            registering: Mutex::default(),
            servers: Mutex::default(),
            next_connection: AtomicU64::new(1),
            host: OnceLock::new(),
            own_address: OnceLock::new(),
            security,
            folder,
            stores: Mutex::new(sender),
            tell,
            snapshots_committed: AtomicU64::new(0),
            snapshots_failed: AtomicU64::new(0),
            outcome: Mutex::default(),
            ended: Condvar::new(),
        });
        spawn("store", {
            let driver = Arc::downgrade(&driver);
            move || store_all(&driver, &receiver)
        });
        spawn("coordinator", {
            let driver = Arc::downgrade(&driver);
            move || tick(&driver)
        });
        Ok(driver)
    }

    /// The server in this process, which is told what to do without a wire.
    pub(crate) fn serve_with(&self, host: Arc<Host>, address: String) {
        assert!(
            self.host.set(host).is_ok(),
            "the coordinator has one server beside it"
        );
        assert!(self.own_address.set(address).is_ok(), "which has one address");
    }

    pub(crate) fn connect(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Hands a request over and waits for its answer; the coordinator never lets one wait for long.
    pub(crate) fn ask(&self, connection: u64, request: Request) -> Option<Reply> {
        let from = RequestId {
            connection,
            number: self.next_connection.fetch_add(1, Ordering::Relaxed),
        };
        let (sender, receiver) = channel();
        lock(&self.replies).insert(from, sender);
        if let Some(server) = self.registrant(&request) {
            lock(&self.registering).insert(from, server);
        }
        self.post(Event::Request { from, request });
        let mut reply = receiver.recv_timeout(Duration::from_secs(60)).ok();
        lock(&self.replies).remove(&from);
        lock(&self.registering).remove(&from);
        if let Some(Reply::Status { status }) = &mut reply {
            // Here, where nobody holds the coordinator: the metrics may be busy for a moment.
            status.metrics = self.host.get().and_then(|host| host.metrics().ok());
        }
        reply
    }

    /// The server that may be given an index in answer to this.
    fn registrant(&self, request: &Request) -> Option<Registered> {
        if let Request::Register {
            address, incarnation, ..
        } = request
        {
            let (address, incarnation) = (address.clone(), *incarnation);
            return Some(Registered { address, incarnation });
        }
        // A spare is given the place of a lost one when it is heard of.
        let Request::ServerHeartbeat {
            index, incarnation, ..
        } = request
        else {
            return None;
        };
        let servers = lock(&self.servers);
        let known = servers.get(index);
        known.filter(|server| server.incarnation == *incarnation).cloned()
    }

    pub(crate) fn close(&self, connection: u64) {
        self.post(Event::Closed { from: connection });
    }

    pub(crate) fn status(&self) -> Status {
        lock(&self.coordinator).status()
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        lock(&self.outcome).clone()
    }

    fn post(&self, event: Event) {
        let now = self.began.elapsed();
        let actions = {
            let mut coordinator = lock(&self.coordinator);
            let actions = coordinator.handle(event, now);
            if let Some(host) = self.host.get() {
                let engine = &host.engine;
                engine
                    .wanted_fence
                    .store(coordinator.wanted_fence(), Ordering::Release);
                engine.interrupt(!coordinator.is_running());
            }
            // While the coordinator is locked: whoever sees a snapshot in its status finds it counted, and the
            // next event, on another thread, may bring a command for a server that has come with this one.
            self.count(&actions);
            self.note_addresses(&actions);
            actions
        };
        for action in actions {
            self.carry_out(action);
        }
    }

    fn note_addresses(&self, actions: &[Action]) {
        for action in actions {
            if let Action::Reply {
                to,
                reply: Reply::Registered { index, .. },
            } = action
                && let Some(server) = lock(&self.registering).remove(to)
            {
                lock(&self.servers).insert(*index, server);
            }
        }
    }

    fn count(&self, actions: &[Action]) {
        for action in actions {
            let Action::Tell { event } = action else { continue };
            if matches!(event, Happening::SnapshotCommitted { .. }) {
                self.snapshots_committed.fetch_add(1, Ordering::Relaxed);
            } else if matches!(event, Happening::SnapshotFailed { .. }) {
                self.snapshots_failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn carry_out(&self, action: Action) {
        match action {
            Action::Reply { to, reply } => {
                if let Some(sender) = lock(&self.replies).remove(&to) {
                    // A connection that has gone has no use for it.
                    let _ = sender.send(reply);
                }
            }
            Action::Call {
                server,
                call,
                command,
            } => self.call(server, call, command),
            Action::Store { number, committed } => {
                let sent = lock(&self.stores).send((number, committed));
                assert!(
                    sent.is_ok(),
                    "commit files are written as long as the driver lives"
                );
            }
            Action::Stop { exit_code, words } => {
                *lock(&self.outcome) = Some(Outcome { exit_code, words });
                self.ended.notify_all();
            }
            Action::Tell { event } => (self.tell)(&event),
        }
    }

    fn call(&self, server: u32, call: CallId, command: Command) {
        let own = self.own.clone();
        // One that heard no answer to its registration in time registers again, and is asked then.
        let Some(registered) = lock(&self.servers).get(&server).cloned() else {
            return;
        };
        spawn("command", move || {
            while let Some(driver) = own.upgrade() {
                if let Some(answer) = driver.command(&registered, call, &command) {
                    return driver.post(Event::ServerAnswer { server, call, answer });
                }
                // A lost connection is no answer: as long as the coordinator waits for one it is asked for again,
                // which does nothing twice.
                if !driver.waits_for(server, call, &registered) {
                    return;
                }
            }
        });
    }

    /// After a while: whether the answer to a call can still come, and is of use.
    fn waits_for(&self, server: u32, call: CallId, registered: &Registered) -> bool {
        let outcome = lock(&self.outcome);
        let waited = self
            .ended
            .wait_timeout_while(outcome, BETWEEN_CALLS, |outcome| outcome.is_none());
        let is_over = waited.unwrap_or_else(PoisonError::into_inner).0.is_some();
        !is_over
            && lock(&self.coordinator).is_open(call)
            && lock(&self.servers).get(&server) == Some(registered)
    }

    fn command(
        &self,
        server: &Registered,
        call: CallId,
        command: &Command,
    ) -> Option<Result<Answer, String>> {
        let Registered { address, incarnation } = server;
        if self.own_address.get().is_some_and(|own| own == address) {
            let host = self.host.get()?;
            return Some(host.desk.obey(host, call, command.clone()));
        }
        let deadline = Deadline::after(CALL_DEADLINE);
        let hello = Hello {
            role: Role::Pserver,
            name: "coordinator".to_owned(),
            features: std::collections::BTreeSet::new(),
        };
        let within = Deadline::after(Duration::from_secs(10));
        let mut connection =
            Connection::open(address, &hello, &self.security, within, Arc::default()).ok()?;
        let envelope = Envelope::Command {
            incarnation: *incarnation,
            call,
            command: command.clone(),
        };
        connection.send_json(&envelope, Kind::Control, 1, deadline).ok()?;
        let mut frame = Frame::default();
        let (_, obeyed) = connection
            .receive_json::<Obeyed>(&mut frame, Kind::Control, deadline)
            .ok()?;
        Some(match obeyed {
            Obeyed::Answer(answer) => Ok(answer),
            Obeyed::Failed(reason) => Err(reason),
        })
    }
}

impl Ledger for Driver {
    fn advance(&self, incarnation: u64, epoch: u64, entry: &[u8]) -> Result<u64, Error> {
        let Entry { lease, entry } = serde_json::from_slice(entry)
            .map_err(|error| Error::protocol(format!("an entry for the ledger: {error}")))?;
        let mut coordinator = lock(&self.coordinator);
        let advanced = coordinator.advance(incarnation, epoch, lease, entry)?;
        // A batch may be the one that a fence is wanted for: the answer to it says so.
        if let Some(host) = self.host.get() {
            host.engine.wanted_fence.store(advanced.fence, Ordering::Release);
        }
        Ok(advanced.fence)
    }
}

fn tick(driver: &Weak<Driver>) {
    while let Some(driver) = driver.upgrade() {
        driver.post(Event::Tick);
        let outcome = lock(&driver.outcome);
        if outcome.is_some() {
            return;
        }
        let waited = driver.ended.wait_timeout(outcome, TICK);
        drop(waited);
    }
}

fn store_all(driver: &Weak<Driver>, queue: &Receiver<(u64, Box<Committed>)>) {
    while let Ok((number, committed)) = queue.recv() {
        let Some(driver) = driver.upgrade() else { return };
        let result = commit_file::write(&driver.folder, &committed).map_err(|error| error.to_string());
        driver.post(Event::Stored { number, result });
    }
}

pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .expect("the system has threads");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use clickmill_net::{Acceptance, Listener};

    use super::*;
    use crate::link::own_hello;

    fn job() -> Box<clickmill_coordinator::Job> {
        let job = serde_json::from_value(serde_json::json!({
            "strategy": "async", "lanes": 1, "trainers": 1, "units": [{"name": "none", "input": {}}],
            "passes": [{"train": [0], "validation": []}], "tables": [],
            "dense": {"rule": {"kind": "sgd"}, "size": 0, "initial": ""},
            "metrics": {"train": {}, "validation": {}}, "evicts": false, "decides": false, "publishes": false,
            "snapshot_interval_ms": 3_600_000, "full_every": 1, "agreement": {}
        }));
        Box::new(job.expect("a job"))
    }

    fn welcome(acceptance: Acceptance) -> Connection {
        let (security, traffic) = (Security::default(), Arc::default());
        let welcomed = acceptance.welcome(&own_hello(), &security, traffic, Arc::default());
        welcomed.expect("the coordinator says hello")
    }

    /// A server that does not hear the first command, because the connection breaks.
    fn serve_the_second(listener: &Listener) -> Vec<CallId> {
        let mut calls = Vec::new();
        for is_second in [false, true] {
            let mut connection = welcome(listener.accept().expect("a command"));
            let (mut frame, within) = (Frame::default(), Deadline::after(Duration::from_secs(60)));
            let received = connection.receive_json::<Envelope>(&mut frame, Kind::Control, within);
            let (request, Envelope::Command { call, .. }) = received.expect("a command") else {
                panic!("a command is expected");
            };
            calls.push(call);
            if is_second {
                let done = Obeyed::Answer(Answer::Done {});
                connection
                    .send_json(&done, Kind::Control, request, within)
                    .expect("somebody listens");
            }
        }
        calls
    }

    #[test]
    fn a_command_whose_connection_is_lost_goes_out_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            servers: 2,
            ..Settings::default()
        };
        let security = Security::default();
        let listener = Listener::bind("127.0.0.1:0", &security, false).expect("a free port");
        let path = folder.path().to_path_buf();
        let driver = Driver::new(settings, path.clone(), security, Arc::new(|_| {})).expect("a coordinator");
        driver.serve_with(Arc::new(Host::new(path, None)), "beside it".to_owned());
        let addresses = ["beside it".to_owned(), listener.address().to_string()];
        for (index, address) in addresses.into_iter().enumerate() {
            let request = Request::Register {
                index: Some(index as u32),
                is_fixed: true,
                address,
                incarnation: index as u64 + 1,
            };
            let reply = driver.ask(driver.connect(), request);
            assert!(matches!(reply, Some(Reply::Registered { .. })));
        }
        let served = std::thread::spawn(move || serve_the_second(&listener));
        let connection = driver.connect();
        loop {
            let (job, name) = (job(), "trainer".to_owned());
            match driver.ask(connection, Request::Join { job, name }) {
                Some(Reply::Welcome { .. }) => break,
                Some(Reply::Wait { .. }) => {}
                other => panic!("a trainer that joins is told {other:?}"),
            }
        }
        let calls = served.join().expect("a server");
        assert_eq!(calls[0], calls[1], "it is the same call, which is obeyed once");
    }
}
