//! Who belongs to the cluster: trainers and servers, by incarnation.
//!
//! A process that starts is a new incarnation. Dead is what this module says is dead, and it is final: an incarnation
//! that was declared dead is not taken back, though its process may come as another one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::message::{ConnectionId, ServerStatistics, TrainerStatistics};
use crate::settings::Settings;

/// When a member was heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    /// Nothing while the connection is closed.
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) heard: Duration,
    closed: Option<Duration>,
}

impl Presence {
    fn new(connection: ConnectionId, now: Duration) -> Self {
        Self {
            connection: Some(connection),
            heard: now,
            closed: None,
        }
    }

    fn hear(&mut self, connection: ConnectionId, now: Duration) {
        *self = Self::new(connection, now);
    }

    fn close(&mut self, connection: ConnectionId, now: Duration) {
        if self.connection == Some(connection) {
            self.connection = None;
            self.closed = Some(now);
        }
    }

    /// Why it is dead, if it is.
    fn death(&self, settings: &Settings, now: Duration) -> Option<String> {
        let silent = now.saturating_sub(self.heard);
        if silent >= settings.heartbeat_deadline {
            return Some(format!("not heard of for {} s", silent.as_secs()));
        }
        let gone = now.saturating_sub(self.closed?);
        (gone >= settings.closed_deadline).then(|| {
            format!(
                "its connection was closed and it was not back after {} s",
                gone.as_secs()
            )
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Trainer {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) presence: Presence,
    pub(crate) statistics: TrainerStatistics,
    /// It was given work and has not said since that it has none under way.
    pub(crate) is_busy: bool,
    /// The fence at which it is parked.
    pub(crate) parked: Option<u64>,
    /// The epoch in which it was given work for the last time; 0: never. Servers may hold pushes of it.
    pub(crate) granted: u64,
}

impl Trainer {
    /// May be in the middle of a batch.
    pub(crate) fn is_out(&self) -> bool {
        self.is_busy && self.parked.is_none()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) incarnation: u64,
    pub(crate) presence: Presence,
    pub(crate) statistics: ServerStatistics,
    /// When it was declared dead; the place is kept so that its name can be told.
    pub(crate) lost: Option<Duration>,
    /// Whoever started it gave it this index. Any other may be given the place of a lost one.
    pub(crate) is_fixed: bool,
}

impl Server {
    /// Takes what a heartbeat says, and gives what was known before. One that was on its way while buckets moved
    /// tells of rows that are elsewhere by now.
    pub(crate) fn note(&mut self, mut statistics: ServerStatistics) -> ServerStatistics {
        let known = &self.statistics;
        if statistics.epoch > 0 && statistics.epoch < known.epoch {
            (statistics.rows, statistics.bytes, statistics.epoch) = (known.rows, known.bytes, known.epoch);
        }
        std::mem::replace(&mut self.statistics, statistics)
    }
}

/// What became of a request to be a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Registration {
    /// A new incarnation at this index, in place of one that is declared dead by that.
    New {
        index: u32,
        replaced: bool,
    },
    /// An incarnation that is known, over another connection than before or over the same.
    Back {
        index: u32,
        is_other: bool,
    },
    /// Another incarnation lives at the index.
    Taken {
        address: String,
    },
    Dead,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    trainers: BTreeMap<u64, Trainer>,
    servers: BTreeMap<u32, Server>,
    dead: BTreeSet<u64>,
    num_joined: u64,
}

impl Members {
    pub(crate) fn trainers(&self) -> &BTreeMap<u64, Trainer> {
        &self.trainers
    }

    pub(crate) fn trainer_mut(&mut self, incarnation: u64) -> Option<&mut Trainer> {
        self.trainers.get_mut(&incarnation)
    }

    pub(crate) fn trainers_mut(&mut self) -> impl Iterator<Item = (u64, &mut Trainer)> {
        self.trainers
            .iter_mut()
            .map(|(incarnation, trainer)| (*incarnation, trainer))
    }

    /// How many trainers have ever joined in this life, each time that they did.
    pub(crate) fn num_joined(&self) -> u64 {
        self.num_joined
    }

    pub(crate) fn servers(&self) -> &BTreeMap<u32, Server> {
        &self.servers
    }

    pub(crate) fn is_live(&self, index: u32) -> bool {
        self.servers
            .get(&index)
            .is_some_and(|server| server.lost.is_none())
    }

    /// A trainer joins; gives its incarnation, of which no two lives of the coordinator make the same.
    pub(crate) fn join(&mut self, name: &str, connection: ConnectionId, life: u64, now: Duration) -> u64 {
        let taken: BTreeSet<u32> = self.trainers.values().map(|trainer| trainer.number).collect();
        let number = first_free(|number| taken.contains(&number));
        self.num_joined += 1;
        let incarnation = life * PER_LIFE + self.num_joined;
        let trainer = Trainer {
            number,
            name: name.to_owned(),
            presence: Presence::new(connection, now),
            statistics: TrainerStatistics::default(),
            is_busy: false,
            parked: None,
            granted: 0,
        };
        self.trainers.insert(incarnation, trainer);
        incarnation
    }

    /// The incarnation that has joined over this connection.
    pub(crate) fn joined_over(&self, connection: ConnectionId) -> Option<u64> {
        let over = |trainer: &Trainer| trainer.presence.connection == Some(connection);
        self.trainers
            .iter()
            .find(|(_, trainer)| over(trainer))
            .map(|(incarnation, _)| *incarnation)
    }

    /// An incarnation of this name whose connection is gone: its process was started again.
    pub(crate) fn left_behind(&self, name: &str) -> Option<u64> {
        let gone = |trainer: &Trainer| trainer.name == name && trainer.presence.connection.is_none();
        self.trainers
            .iter()
            .find(|(_, trainer)| gone(trainer))
            .map(|(incarnation, _)| *incarnation)
    }

    /// Notes that a trainer was heard of; false: it is dead, or of another life.
    pub(crate) fn hear(&mut self, incarnation: u64, connection: ConnectionId, now: Duration) -> bool {
        match self.trainers.get_mut(&incarnation) {
            Some(trainer) => {
                trainer.presence.hear(connection, now);
                true
            }
            None => false,
        }
    }

    /// Takes a trainer out; it does not come back.
    pub(crate) fn bury(&mut self, incarnation: u64) -> Option<Trainer> {
        self.trainers.remove(&incarnation)
    }

    pub(crate) fn register(
        &mut self,
        index: Option<u32>,
        is_fixed: bool,
        address: &str,
        incarnation: u64,
        connection: ConnectionId,
        now: Duration,
    ) -> Registration {
        if self.dead.contains(&incarnation) {
            return Registration::Dead;
        }
        let known = self
            .servers
            .iter_mut()
            .find(|(_, server)| server.incarnation == incarnation);
        if let Some((index, server)) = known {
            let is_other = server.presence.connection != Some(connection);
            server.presence.hear(connection, now);
            address.clone_into(&mut server.address);
            return Registration::Back {
                index: *index,
                is_other,
            };
        }
        // The first one is where the coordinator is, and knows its index.
        let free = || 1 + first_free(|index| self.is_live(index + 1));
        let wanted = index.unwrap_or_else(free);
        let before = self.servers.get(&wanted).filter(|server| server.lost.is_none());
        // At another address it may be that both are alive: then the first has the time to come back.
        let may_live = |server: &&Server| server.presence.connection.is_some() || server.address != address;
        let (index, is_fixed) = match before.filter(may_live) {
            Some(server) if is_fixed && server.is_fixed => {
                return Registration::Taken {
                    address: server.address.clone(),
                };
            }
            Some(_) => (free(), false),
            None => (wanted, is_fixed),
        };
        let replaced = self.is_live(index);
        self.lose(index, now);
        let server = Server {
            address: address.to_owned(),
            incarnation,
            presence: Presence::new(connection, now),
            statistics: ServerStatistics::default(),
            lost: None,
            is_fixed,
        };
        self.servers.insert(index, server);
        Registration::New { index, replaced }
    }

    /// The server of this incarnation, if it lives, and its index: one that was given another may not know it yet.
    pub(crate) fn hear_server(
        &mut self,
        index: u32,
        incarnation: u64,
        connection: ConnectionId,
        now: Duration,
    ) -> Option<(u32, &mut Server)> {
        let is_it = |server: &Server| server.incarnation == incarnation && server.lost.is_none();
        let index = if self.servers.get(&index).is_some_and(is_it) {
            index
        } else {
            *self.servers.iter().find(|(_, server)| is_it(server))?.0
        };
        let server = self.servers.get_mut(&index)?;
        server.presence.hear(connection, now);
        Some((index, server))
    }

    /// A server gets another index, where none lives. It stays the incarnation that it is.
    pub(crate) fn give_place(&mut self, from: u32, to: u32) {
        debug_assert!(!self.is_live(to));
        if let Some(server) = self.servers.remove(&from) {
            self.servers.insert(to, server);
        }
    }

    /// A server has answered a command: it lives.
    pub(crate) fn answered(&mut self, index: u32, now: Duration) {
        if let Some(server) = self.servers.get_mut(&index) {
            server.presence.heard = now;
        }
    }

    /// A server has said what it holds since this epoch began.
    pub(crate) fn holds(&mut self, index: u32, epoch: u64, rows: u64, bytes: u64) {
        if let Some(server) = self.servers.get_mut(&index) {
            let statistics = &mut server.statistics;
            (statistics.rows, statistics.bytes, statistics.epoch) = (rows, bytes, epoch);
        }
    }

    /// Declares a server dead.
    pub(crate) fn lose(&mut self, index: u32, now: Duration) {
        if let Some(server) = self
            .servers
            .get_mut(&index)
            .filter(|server| server.lost.is_none())
        {
            server.lost = Some(now);
            self.dead.insert(server.incarnation);
        }
    }

    /// A server that is not needed any more is forgotten; not lost.
    pub(crate) fn dismiss(&mut self, index: u32) {
        if let Some(server) = self.servers.remove(&index) {
            self.dead.insert(server.incarnation);
        }
    }

    pub(crate) fn close(&mut self, connection: ConnectionId, now: Duration) {
        let trainers = self.trainers.values_mut().map(|trainer| &mut trainer.presence);
        let servers = self.servers.values_mut().map(|server| &mut server.presence);
        trainers
            .chain(servers)
            .for_each(|presence| presence.close(connection, now));
    }

    /// Trainers past their deadline, with the reason.
    pub(crate) fn dead_trainers(&self, settings: &Settings, now: Duration) -> Vec<(u64, String)> {
        let trainers = self.trainers.iter();
        trainers
            .filter_map(|(own, trainer)| Some((*own, trainer.presence.death(settings, now)?)))
            .collect()
    }

    /// Servers past their deadline, with the reason.
    pub(crate) fn dead_servers(&self, settings: &Settings, now: Duration) -> Vec<(u32, String)> {
        let live = self.servers.iter().filter(|(_, server)| server.lost.is_none());
        live.filter_map(|(index, server)| Some((*index, server.presence.death(settings, now)?)))
            .collect()
    }

    pub(crate) fn trainer_words(&self, incarnation: u64) -> String {
        match self.trainers.get(&incarnation) {
            // Whoever started it has numbered it; the number here only says who came first.
            Some(trainer) if trainer.name.starts_with("trainer ") => trainer.name.clone(),
            Some(trainer) => format!("trainer {} ({})", trainer.number, trainer.name),
            None => format!("trainer of incarnation {incarnation}"),
        }
    }

    /// `pserver 1 (10.0.0.2:30240)`.
    pub(crate) fn server_name(&self, index: u32) -> String {
        match self.servers.get(&index) {
            Some(Server { address, .. }) => format!("pserver {index} ({address})"),
            None => format!("pserver {index}, which has not registered yet"),
        }
    }

    /// `pserver 1 (10.0.0.2:30240), lost 12 s ago`.
    pub(crate) fn server_words(&self, index: u32, now: Duration) -> String {
        let lost = self.lost_for(index, now);
        let lost = lost.map(|lost| format!(", lost {} s ago", lost.as_secs()));
        self.server_name(index) + &lost.unwrap_or_default()
    }

    /// How long ago a server was lost; none for one that is there, or that has never been.
    pub(crate) fn lost_for(&self, index: u32, now: Duration) -> Option<Duration> {
        let lost = self.servers.get(&index)?.lost?;
        Some(now.saturating_sub(lost))
    }
}

fn first_free(is_taken: impl Fn(u32) -> bool) -> u32 {
    let mut number = 0;
    while is_taken(number) {
        number += 1;
    }
    number
}

/// Numbers that must differ between lives of the coordinator (epochs, incarnations, snapshots) are made of the
/// number of the life, which is durable before the first of them is used, and a count below this.
pub(crate) const PER_LIFE: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn settings() -> Settings {
        Settings {
            heartbeat_deadline: at(30),
            closed_deadline: at(5),
            ..Settings::default()
        }
    }

    #[test]
    fn a_silent_trainer_dies_at_its_deadline() {
        let mut members = Members::default();
        let own = members.join("a", 1, 1, at(0));
        assert!(members.hear(own, 1, at(10)));
        assert!(members.dead_trainers(&settings(), at(39)).is_empty());
        let dead = members.dead_trainers(&settings(), at(40));
        assert_eq!(dead, [(own, "not heard of for 30 s".to_owned())]);
    }

    #[test]
    fn a_closed_connection_shortens_the_deadline_unless_the_trainer_is_back() {
        let mut members = Members::default();
        let (gone, back) = (members.join("a", 1, 1, at(0)), members.join("b", 2, 1, at(0)));
        members.close(1, at(1));
        members.close(2, at(1));
        assert!(members.hear(back, 3, at(4)));
        members.close(2, at(5));
        let dead: Vec<u64> = members
            .dead_trainers(&settings(), at(8))
            .iter()
            .map(|(own, _)| *own)
            .collect();
        assert_eq!(dead, [gone]);
        members.bury(gone);
        assert!(!members.hear(gone, 4, at(9)), "dead is final");
    }

    #[test]
    fn numbers_of_trainers_are_used_again_and_incarnations_are_not() {
        let mut members = Members::default();
        let first = members.join("a", 1, 1, at(0));
        members.bury(first);
        let second = members.join("a", 2, 1, at(0));
        assert_ne!(first, second);
        assert_eq!(members.trainers()[&second].number, 0);
    }

    #[test]
    fn a_dead_server_is_replaced_and_its_incarnation_refused() {
        let mut members = Members::default();
        let new = |index, replaced| Registration::New { index, replaced };
        assert_eq!(
            members.register(Some(1), true, "a:1", 10, 1, at(0)),
            new(1, false)
        );
        assert_eq!(
            members.register(Some(1), true, "b:1", 11, 2, at(1)),
            Registration::Taken {
                address: "a:1".into()
            }
        );
        members.close(1, at(2));
        assert_eq!(
            members.register(Some(1), true, "b:1", 11, 2, at(3)),
            Registration::Taken {
                address: "a:1".into()
            }
        );
        assert_eq!(members.register(Some(1), true, "a:1", 11, 2, at(3)), new(1, true));
        assert_eq!(
            members.register(Some(1), true, "a:1", 10, 3, at(4)),
            Registration::Dead
        );
        assert_eq!(
            members.register(Some(1), true, "b:2", 11, 4, at(4)),
            Registration::Back {
                index: 1,
                is_other: true
            }
        );
        assert_eq!(members.server_words(1, at(4)), "pserver 1 (b:2)");
    }

    #[test]
    fn a_server_without_an_index_takes_the_place_of_a_lost_one() {
        let mut members = Members::default();
        members.register(Some(1), true, "a:1", 10, 1, at(0));
        members.register(Some(2), true, "a:2", 11, 2, at(0));
        members.lose(1, at(1));
        assert_eq!(members.server_words(1, at(13)), "pserver 1 (a:1), lost 12 s ago");
        assert_eq!(
            members.register(None, false, "c:1", 12, 3, at(2)),
            Registration::New {
                index: 1,
                replaced: false
            }
        );
        assert_eq!(
            members.register(None, false, "c:2", 13, 4, at(2)),
            Registration::New {
                index: 3,
                replaced: false
            }
        );
    }

    #[test]
    fn a_server_whose_place_a_spare_has_becomes_a_spare() {
        let mut members = Members::default();
        let new = |index| Registration::New {
            index,
            replaced: false,
        };
        members.register(Some(1), true, "a:1", 10, 1, at(0));
        assert_eq!(members.register(None, false, "b:1", 11, 2, at(0)), new(2));
        members.lose(1, at(1));
        members.give_place(2, 1);
        assert_eq!(members.register(Some(1), true, "a:1", 12, 3, at(2)), new(2));
        assert!(!members.servers()[&2].is_fixed, "it may take any other place");
        // One that had a place in another life of the coordinator asks for that.
        assert_eq!(members.register(Some(2), false, "c:1", 13, 4, at(3)), new(3));
        assert_eq!(members.register(Some(5), false, "d:1", 14, 5, at(3)), new(5));
    }

    #[test]
    fn a_server_that_was_given_another_place_is_known_by_its_incarnation() {
        let mut members = Members::default();
        members.register(None, false, "a:1", 10, 1, at(0));
        members.give_place(1, 4);
        let index =
            |members: &mut Members, index| members.hear_server(index, 10, 1, at(1)).map(|(index, _)| index);
        assert_eq!(index(&mut members, 1), Some(4));
        assert_eq!(index(&mut members, 4), Some(4));
        members.lose(4, at(2));
        assert_eq!(index(&mut members, 4), None, "dead is final");
    }
}
