//! The way to the coordinator: a connection that is made again when it breaks, or no wire at all.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clickmill_coordinator::{Reply, Request};
use clickmill_net::{Connection, Deadline, Error, Hello, Role};
use clickmill_wire::{Frame, Kind};

use crate::driver::{Driver, Envelope};
use crate::server::ServerSettings;

pub(crate) const ANSWER: Duration = Duration::from_secs(60);
const MIN_PATIENCE: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(5);

pub(crate) struct Link {
    driver: Option<(Arc<Driver>, u64)>,
    settings: Arc<ServerSettings>,
    stop: Arc<AtomicBool>,
    connection: Option<Connection>,
    /// Why nobody answered the last time; none when somebody did.
    pub(crate) failure: Option<Error>,
}

impl Link {
    /// `driver`: the coordinator is in this process.
    pub(crate) fn new(
        driver: Option<Arc<Driver>>,
        settings: Arc<ServerSettings>,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        Self {
            driver: driver.map(|driver| {
                let number = driver.connect();
                (driver, number)
            }),
            settings,
            stop: Arc::clone(stop),
            connection: None,
            failure: None,
        }
    }

    /// None when the coordinator cannot be reached.
    pub(crate) fn ask(&mut self, request: Request) -> Option<Reply> {
        if let Some((driver, number)) = &self.driver {
            return driver.ask(*number, request);
        }
        match self.ask_over_the_wire(request) {
            Ok(reply) => {
                self.failure = None;
                Some(reply)
            }
            Err(error) => {
                self.connection = None;
                self.failure = Some(error);
                None
            }
        }
    }

    fn ask_over_the_wire(&mut self, request: Request) -> Result<Reply, Error> {
        let settings = &self.settings;
        // When it takes longer, the coordinator has given this server up.
        let patience = settings.coordinator_settings.heartbeat_deadline;
        let deadline = Deadline::after(patience.clamp(MIN_PATIENCE, ANSWER));
        let connection = match &mut self.connection {
            Some(connection) => connection,
            place => {
                let address = settings.coordinator.as_deref().unwrap_or_default();
                let (hello, within) = (own_hello(), Deadline::after(CONNECT));
                let (security, stop) = (&settings.security, Arc::clone(&self.stop));
                let opened = Connection::open_until(address, &hello, security, within, Arc::default(), stop);
                place.insert(opened?)
            }
        };
        connection.send_json(&Envelope::Request(request), Kind::Control, 1, deadline)?;
        let (_, reply) = connection.receive_json::<Reply>(&mut Frame::default(), Kind::Control, deadline)?;
        Ok(reply)
    }

    /// Why it will never be reached, where the two have not the same token, or only one of them encrypts.
    pub(crate) fn misfit(&self) -> Option<&Error> {
        let is_misfit = |error: &&Error| {
            matches!(error, Error::Token { .. })
                || matches!(error, Error::Refused { code, .. } if code == "token")
                || error.is_about_encryption()
        };
        self.failure.as_ref().filter(is_misfit)
    }
}

pub(crate) fn own_hello() -> Hello {
    Hello {
        role: Role::Pserver,
        name: "pserver".to_owned(),
        features: std::collections::BTreeSet::new(),
    }
}
