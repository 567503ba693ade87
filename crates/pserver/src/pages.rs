//! What the coordinator can be asked over HTTP, by those who do not speak the wire: people outside of a cluster of machines
//! reach a process in it through proxies that know HTTP alone.
//!
//! `GET /status` is what `clickmill ps status --json` says. `POST /scale?pservers=N`, `/snapshot` and `/stop` are the orders of
//! `clickmill cluster`; each is answered at once with what is going to happen, and `/status` tells when it has.

use std::sync::{Arc, Weak};

use clickmill_coordinator::{Reply, Request};
use clickmill_monitor::{Answer, Monitor};

use crate::driver::Driver;

pub(crate) fn open(monitor: &Monitor, driver: &Arc<Driver>) {
    let desk = Desk {
        driver: Arc::downgrade(driver),
    };
    let status = desk.clone();
    monitor.tell("/status", move || status.answer(Request::Status {}));
    let scale = desk.clone();
    monitor.obey("/scale", move |query| match num_pservers(query) {
        Ok(pservers) => scale.answer(Request::Scale { pservers }),
        Err(words) => Answer::Wrong(words),
    });
    let snapshot = desk.clone();
    monitor.obey("/snapshot", move |_| snapshot.answer(Request::Snapshot {}));
    monitor.obey("/stop", move |_| desk.answer(Request::Stop {}));
}

/// Does not keep the coordinator: a monitor may outlive it.
#[derive(Clone)]
struct Desk {
    driver: Weak<Driver>,
}

impl Desk {
    fn answer(&self, request: Request) -> Answer {
        let reply = self.driver.upgrade().and_then(|driver| {
            let connection = driver.connect();
            let reply = driver.ask(connection, request);
            driver.close(connection);
            reply
        });
        match reply {
            Some(Reply::Status { status }) => json(&*status),
            Some(Reply::Refused { reason, .. }) => Answer::Refused(reason),
            Some(reply) => json(&reply),
            None => Answer::Absent("the coordinator does not answer".to_owned()),
        }
    }
}

fn json(value: &impl serde::Serialize) -> Answer {
    Answer::Json(serde_json::to_string(value).expect("messages are plain data"))
}

fn num_pservers(query: &str) -> Result<u32, String> {
    let value = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("pservers="))
        .ok_or_else(|| "how many? say `/scale?pservers=N`".to_owned())?;
    value
        .parse()
        .map_err(|_| "`pservers` must be a whole number".to_owned())
}
