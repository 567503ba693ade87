//! Frames of a connection that lie in memory of both sides.

use std::time::Duration;

use clickmill_wire::{Frame, HEADER_BYTES, Header, Kind};

use super::{Connection, json_frame};
use crate::memory::Taken;
use crate::{Deadline, Error, sharing};

/// How long an answer of a few bytes may take to go out.
const ANSWERING: Duration = Duration::from_secs(10);

impl Connection {
    /// Long frames go through shared memory from now on, where the peer is a process of this host that can do so.
    /// For the side that has connected.
    pub fn share_memory(&mut self) {
        if self.hello.features.contains(sharing::FEATURE) && self.stream.is_plain_within_host() {
            self.sharing.begin();
        }
    }

    /// Gives the frame that is begun next memory from which the peer can read it; without it, it is copied there.
    pub fn lend(&self, frame: &mut Frame) {
        frame.clear();
        frame.lend(self.sharing.lend());
    }

    /// Before a frame for which there is not enough of it.
    pub(super) fn offer_memory(&mut self, length: usize, deadline: Deadline) -> Result<(), Error> {
        let Some((memory, offer)) = self.sharing.offer(length) else {
            return Ok(());
        };
        self.say(&offer, deadline)?;
        let mut frame = Frame::default();
        // Nothing was asked since the last answer.
        let (_, taken) = self.receive_json::<Taken>(&mut frame, Kind::Memory, deadline)?;
        self.sharing.answered(memory, taken.is_taken);
        Ok(())
    }

    pub(super) fn find_memory(&mut self, frame: &Frame) -> Result<(), Error> {
        let offer = self.json(frame.payload())?;
        let is_taken = self.stream.is_plain_within_host() && self.sharing.find(&offer);
        self.say(&Taken { is_taken }, Deadline::after(ANSWERING))
    }

    /// No message of anybody: it is not counted.
    fn say(&mut self, message: &impl serde::Serialize, deadline: Deadline) -> Result<(), Error> {
        let mut frame = json_frame(message);
        let bytes = frame.finish(Kind::Memory, 0);
        let outcome = self.send_all(bytes.map_err(|source| self.wire(source))?, deadline);
        self.close_within_frame(outcome)
    }

    pub(super) fn take_shared(
        &self,
        header: &Header,
        frame: &mut Frame,
    ) -> Result<(), clickmill_wire::Error> {
        header.check(&[])?;
        let length = header.length;
        if let Some(memory) = self.sharing.take(HEADER_BYTES + length as usize) {
            frame.receive_lent(memory, length as usize);
            return Ok(());
        }
        Err(clickmill_wire::Error::NotShared { length })
    }
}
