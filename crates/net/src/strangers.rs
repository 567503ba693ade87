//! Connections whose peers have not said who they are.
//!
//! Each costs a thread, so there are places for so many. Who comes when all are taken gets one: whoever opens
//! connections and says nothing cannot keep others out, and hurts others of its own address first.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MAX_STRANGERS: usize = 256;

#[derive(Default)]
pub(crate) struct Strangers {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which they came.
    waiting: BTreeMap<u64, Stranger>,
    num_come: u64,
}

struct Stranger {
    address: IpAddr,
    /// Another handle of its socket, by which its connection can be ended.
    socket: TcpStream,
}

/// One of them; free again when it is dropped.
pub(crate) struct Place {
    strangers: Arc<Strangers>,
    number: u64,
}

impl Strangers {
    /// For a connection from `address`. When all places are taken, the oldest of those of the address that has the most of
    /// them is closed.
    pub(crate) fn take_place(self: &Arc<Self>, socket: &TcpStream, address: IpAddr) -> io::Result<Place> {
        let socket = socket.try_clone()?;
        let mut state = self.lock();
        if state.waiting.len() >= MAX_STRANGERS {
            state.close_one();
        }
        state.num_come += 1;
        let number = state.num_come;
        state.waiting.insert(number, Stranger { address, socket });
        Ok(Place {
            strangers: Arc::clone(self),
            number,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close_one(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for stranger in self.waiting.values() {
            *counts.entry(stranger.address).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or(0);
        let oldest = self
            .waiting
            .iter()
            .find(|(_, stranger)| counts[&stranger.address] == most)
            .map(|(number, _)| *number);
        if let Some(stranger) = oldest.and_then(|number| self.waiting.remove(&number)) {
            // Its thread finds the connection closed. One that has gone already needs no closing.
            let _ = stranger.socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.lock().waiting.remove(&self.number);
    }
}
