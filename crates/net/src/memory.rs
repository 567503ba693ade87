//! Memory that two processes of one host share: a long frame lies there, and only its header goes through the socket.
//!
//! ```text
//! region  = nonce u8[32] | up u32 | down u32 | … to 4096 | room for a frame up | room for a frame down
//! ```
//!
//! The side that has connected makes a region and says where it is. The other side opens it by way of `/proc`, which
//! leads to a process of this host that belongs to the same user, or to nothing that has the nonce. `up` and `down` hold
//! the length of the frame that lies there and that the peer has not done with; a frame that finds another there goes
//! through the socket. Frames are written there and read there, without a copy. Regions are sealed against shrinking:
//! no peer can take memory away from under a reader.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::{ptr, slice};

use clickmill_wire::Lent;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, memfd_create,
};
use serde::{Deserialize, Serialize};

use crate::token::nonce;

/// What shorter frames cost in the socket is less than the way around it.
pub(crate) const MIN_SHARED_BYTES: usize = 32 << 10;
/// Of a frame, in either direction.
pub(crate) const MAX_SHARED_BYTES: usize = 64 << 20;

const NAME: &str = "clickmill";
/// What a descriptor of a region leads to.
const LINK: &str = "/memfd:clickmill";
const NONCE_BYTES: usize = 32;
const HEAD_BYTES: usize = 4096;
const UNIT: usize = 1 << 20;

/// Where a region is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offer {
    process: u32,
    descriptor: i32,
    nonce: String,
    capacity: usize,
}

/// What becomes of an offer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Taken {
    pub is_taken: bool,
}

/// The two halves of a region.
#[derive(Clone, Copy, Debug)]
enum Half {
    /// From the side that has made it.
    Up,
    Down,
}

#[derive(Debug)]
struct Region {
    map: MmapRaw,
    capacity: usize,
}

/// A region, seen from one of its two sides.
#[derive(Debug)]
pub(crate) struct Memory {
    region: Arc<Region>,
    /// For what this side writes.
    own: Half,
    /// A frame of this side is being written there, or lies there.
    is_lent: Arc<AtomicBool>,
    /// For the peer, until it has found it.
    file: Option<File>,
}

impl Memory {
    /// Makes a region for frames of `wanted` bytes and some more.
    pub(crate) fn make(wanted: usize) -> io::Result<(Self, Offer)> {
        let capacity = (wanted + wanted / 4).next_multiple_of(UNIT).min(MAX_SHARED_BYTES);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create(NAME, flags)?);
        // All of it at once: a page that is not to be had is an error here, and would be the end of the process later.
        // Under a limit of a control group it may be the end here as well: what lies in memory counts against it.
        fallocate(&file, FallocateFlags::empty(), 0, region_bytes(capacity) as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let region = Region::map(&file, capacity)?;
        let offer = Offer {
            process: std::process::id(),
            descriptor: file.as_raw_fd(),
            nonce: nonce(),
            capacity,
        };
        region.put(0, offer.nonce.as_bytes());
        let memory = Self {
            region: Arc::new(region),
            own: Half::Up,
            is_lent: Arc::default(),
            file: Some(file),
        };
        Ok((memory, offer))
    }

    /// Finds the region of an offer; an error where it is none of this host, user and length.
    pub(crate) fn find(offer: &Offer) -> io::Result<Self> {
        let wrong = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason);
        if offer.capacity > MAX_SHARED_BYTES || offer.nonce.len() != NONCE_BYTES {
            return Err(wrong("the offer is none"));
        }
        let path = format!("/proc/{}/fd/{}", offer.process, offer.descriptor);
        // Nothing else is opened: whatever it is, that could do something.
        if !fs::read_link(&path)?.to_string_lossy().starts_with(LINK) {
            return Err(wrong("it is no memory of clickmill"));
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if !fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) {
            return Err(wrong("the memory could shrink"));
        }
        if file.metadata()?.len() != region_bytes(offer.capacity) as u64 {
            return Err(wrong("the memory has another length"));
        }
        let region = Region::map(&file, offer.capacity)?;
        let mut found = [0; NONCE_BYTES];
        region.get(0, &mut found);
        if found != offer.nonce.as_bytes() {
            return Err(wrong("the memory is another one"));
        }
        Ok(Self {
            region: Arc::new(region),
            own: Half::Down,
            is_lent: Arc::default(),
            file: None,
        })
    }

    /// The peer has found it, or never will.
    pub(crate) fn forget_file(&mut self) {
        self.file = None;
    }

    pub(crate) fn capacity(&self) -> usize {
        self.region.capacity
    }

    /// Room for a frame of this side; none while one lies there that the peer has not taken.
    pub(crate) fn lend(&self) -> Option<Written> {
        if self.region.length(self.own).load(Ordering::Acquire) != 0
            || self.is_lent.swap(true, Ordering::AcqRel)
        {
            return None;
        }
        Some(Written {
            region: Arc::clone(&self.region),
            half: self.own,
            is_lent: Arc::clone(&self.is_lent),
        })
    }

    /// Leaves the frame that was written to room of this memory for the peer; false: it was not.
    pub(crate) fn leave(&self, bytes: &[u8]) -> bool {
        let is_here = ptr::eq(bytes.as_ptr(), self.region.begin(self.own));
        if is_here {
            let length = self.region.length(self.own);
            length.store(bytes.len() as u32, Ordering::Release);
        }
        is_here
    }

    /// Copies a frame to the room of this side; false: it is too long, or the room is taken.
    pub(crate) fn put(&self, bytes: &[u8]) -> bool {
        if bytes.len() > self.region.capacity {
            return false;
        }
        let Some(mut room) = self.lend() else {
            return false;
        };
        room.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        self.region
            .length(self.own)
            .store(bytes.len() as u32, Ordering::Release);
        true
    }

    /// The frame that the peer has left, of `length` bytes; none: there is no such frame.
    pub(crate) fn take(&self, length: usize) -> Option<Read> {
        let half = match self.own {
            Half::Up => Half::Down,
            Half::Down => Half::Up,
        };
        let found = self.region.length(half).load(Ordering::Acquire) as usize;
        (found == length && length <= self.region.capacity).then(|| Read {
            region: Arc::clone(&self.region),
            half,
        })
    }
}

/// Room that a frame of this side is written to.
#[derive(Debug)]
pub(crate) struct Written {
    region: Arc<Region>,
    half: Half,
    is_lent: Arc<AtomicBool>,
}

impl Lent for Written {
    fn bytes(&self) -> &[u8] {
        self.region.bytes(self.half)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.region.bytes_mut(self.half)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        self.is_lent.store(false, Ordering::Release);
    }
}

/// A frame that the peer has left; it may leave another when this is dropped.
#[derive(Debug)]
pub(crate) struct Read {
    region: Arc<Region>,
    half: Half,
}

impl Lent for Read {
    fn bytes(&self) -> &[u8] {
        self.region.bytes(self.half)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.region.bytes_mut(self.half)
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        self.region.length(self.half).store(0, Ordering::Release);
    }
}

impl Region {
    fn map(file: &File, capacity: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(region_bytes(capacity)).map_raw(file)?;
        Ok(Self { map, capacity })
    }

    #[expect(unsafe_code, reason = "both sides write to it, which only an atomic may see")]
    fn length(&self, half: Half) -> &AtomicU32 {
        let at = NONCE_BYTES + half as usize * size_of::<AtomicU32>();
        // SAFETY: within the head of the region, which is mapped as long as `self` lives, at a multiple of four; both
        // sides only reach it as an atomic.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    #[expect(unsafe_code, reason = "where a half begins")]
    fn begin(&self, half: Half) -> *mut u8 {
        // SAFETY: within the region, which has a head and room for two frames.
        unsafe {
            self.map
                .as_mut_ptr()
                .add(HEAD_BYTES + half as usize * self.capacity)
        }
    }

    #[expect(unsafe_code, reason = "a frame in memory of two processes")]
    fn bytes(&self, half: Half) -> &[u8] {
        // SAFETY: within the region. By the protocol, nobody writes to a half while it is read: its writer waits until
        // its length is zero. A process that does so all the same belongs to this user, holds the token of this cluster
        // and could write to all memory of this process.
        unsafe { slice::from_raw_parts(self.begin(half), self.capacity) }
    }

    #[expect(
        unsafe_code,
        clippy::mut_from_ref,
        reason = "a frame in memory of two processes"
    )]
    fn bytes_mut(&self, half: Half) -> &mut [u8] {
        // SAFETY: as in `bytes`; within this process one `Written` at most has a half, which is borrowed mutably with
        // the result, and one `Read` the other.
        unsafe { slice::from_raw_parts_mut(self.begin(half), self.capacity) }
    }

    #[expect(unsafe_code, reason = "the head of a region")]
    fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= HEAD_BYTES, "within the head");
        // SAFETY: within the region, by the assertion, and `bytes` is memory of this process alone.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(at), bytes.len()) }
    }

    #[expect(unsafe_code, reason = "the head of a region")]
    fn get(&self, at: usize, out: &mut [u8]) {
        assert!(at + out.len() <= HEAD_BYTES, "within the head");
        // SAFETY: as in `put`.
        unsafe { ptr::copy_nonoverlapping(self.map.as_ptr().add(at), out.as_mut_ptr(), out.len()) }
    }
}

fn region_bytes(capacity: usize) -> usize {
    HEAD_BYTES + 2 * capacity
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn pair() -> (Memory, Memory) {
        let (made, offer) = Memory::make(100_000).unwrap();
        let found = Memory::find(&offer).unwrap();
        (made, found)
    }

    fn take(memory: &Memory, length: usize) -> Option<Vec<u8>> {
        Some(memory.take(length)?.bytes()[..length].to_vec())
    }

    #[test]
    fn frames_go_both_ways_at_once() {
        let (made, found) = pair();
        let (up, down) = (vec![7; 100_000], vec![9; 1 << 20]);
        assert!(made.put(&up) && found.put(&down));
        assert!(take(&found, up.len()).unwrap() == up);
        assert!(take(&made, down.len()).unwrap() == down);
    }

    #[test]
    fn a_frame_that_was_not_taken_is_not_overwritten() {
        let (made, found) = pair();
        assert!(made.put(&[1; 10]));
        assert!(!made.put(&[2; 10]));
        assert!(made.lend().is_none());
        let taken = found.take(10).unwrap();
        assert!(!made.put(&[2; 10]), "it is being read");
        assert_eq!(&taken.bytes()[..10], [1; 10]);
        drop(taken);
        assert!(made.put(&[2; 10]));
        assert_eq!(take(&found, 10).unwrap(), [2; 10]);
    }

    #[test]
    fn a_frame_that_is_being_written_has_the_room_to_itself() {
        let (made, found) = pair();
        let mut room = made.lend().unwrap();
        assert!(!made.put(&[1; 10]));
        room.bytes_mut()[..10].fill(3);
        assert!(found.take(10).is_none(), "it was not left yet");
        assert!(!made.leave(&[3; 10]), "that is another one");
        assert!(made.leave(&room.bytes()[..10]));
        assert_eq!(take(&found, 10).unwrap(), [3; 10]);
        drop(room);
        assert!(made.put(&[1; 10]));
    }

    #[test]
    fn what_was_not_put_cannot_be_taken() {
        let (made, found) = pair();
        assert!(found.take(10).is_none());
        assert!(made.put(&[1; 10]));
        assert!(found.take(11).is_none(), "another length");
        assert!(made.take(10).is_none(), "its own");
        assert!(!made.put(&vec![0; made.capacity() + 1]), "longer than the room");
    }

    #[test]
    fn a_frame_outlives_the_memory_of_its_connection() {
        let (made, found) = pair();
        assert!(made.put(&[5; 10]));
        let taken = found.take(10).unwrap();
        drop((made, found));
        assert_eq!(&taken.bytes()[..10], [5; 10]);
    }

    #[test]
    fn what_is_no_such_memory_is_not_found() {
        let (_made, offer) = Memory::make(10).unwrap();
        let offer = |change: &dyn Fn(&mut Offer)| {
            let mut changed = Offer {
                nonce: offer.nonce.clone(),
                ..offer
            };
            change(&mut changed);
            Memory::find(&changed)
        };
        offer(&|_| {}).unwrap();
        let file = tempfile::tempfile().unwrap();
        offer(&|offer| offer.descriptor = file.as_raw_fd()).unwrap_err();
        offer(&|offer| offer.descriptor = -1).unwrap_err();
        offer(&|offer| offer.process = u32::MAX).unwrap_err();
        offer(&|offer| offer.capacity = usize::MAX).unwrap_err();
        offer(&|offer| offer.capacity += UNIT).unwrap_err();
        offer(&|offer| offer.nonce = "0".repeat(NONCE_BYTES)).unwrap_err();
        let unsealed = File::from(memfd_create(NAME, MemfdFlags::ALLOW_SEALING).unwrap());
        unsealed.set_len(region_bytes(UNIT) as u64).unwrap();
        offer(&|offer| offer.descriptor = unsealed.as_raw_fd()).unwrap_err();
    }
}
