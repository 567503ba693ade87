//! Any bytes as a step or a commit: refused, or written again byte for byte where nothing is left to choice.
#![no_main]

use clickmill_fuzz::step_payload;
use clickmill_wire::step::{Step, decode_commit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|payload: &[u8]| {
    if let Ok(step) = Step::decode(payload) {
        // Whether an empty list is announced is the writer's choice: one round makes it ours.
        let written = step_payload(&step);
        assert_eq!(written.len(), payload.len());
        let again = Step::decode(&written).expect("our own payload");
        assert_eq!(step_payload(&again), written);
    }
    if let Ok(origin) = decode_commit(payload) {
        let mut frame = clickmill_wire::Frame::default();
        origin.encode(&mut frame.begin());
        assert_eq!(frame.payload(), payload);
    }
});
