//! Any bytes as a stream of frames: refused, or the frames that give these bytes again; memory follows what
//! has arrived, not what was announced.
#![no_main]

use clickmill_fuzz::framed;
use clickmill_wire::{Frame, HEADER_BYTES, Header};
use libfuzzer_sys::fuzz_target;

/// Fills the frame from what is there, in pieces; whether all of it was.
fn arrive(frame: &mut Frame, header: &Header, stream: &[u8]) -> bool {
    let mut arrived = 0;
    loop {
        let room = frame.receive(header, arrived);
        assert!(room.len() <= 4 * (arrived + (1 << 20)));
        if room.is_empty() {
            return true;
        }
        let count = room.len().min(1000).min(stream.len() - arrived);
        if count == 0 {
            return false;
        }
        room[..count].copy_from_slice(&stream[arrived..arrived + count]);
        arrived += count;
    }
}

fuzz_target!(|stream: &[u8]| {
    let mut frame = Frame::default();
    let mut left = stream;
    while let Some((head, rest)) = left.split_first_chunk::<HEADER_BYTES>() {
        let Ok(header) = Header::decode(head) else { return };
        if !arrive(&mut frame, &header, rest) {
            return;
        }
        let payload = frame.payload();
        assert_eq!(payload, &rest[..header.length as usize]);
        let ours = framed(header.kind, header.request, payload);
        let theirs = &left[..ours.len()];
        // The checksum hides what lies behind it: a wrong one is found, and the frame goes on as if it fitted.
        assert_eq!(header.check(payload).is_ok(), ours == theirs);
        left = &left[ours.len()..];
    }
});
