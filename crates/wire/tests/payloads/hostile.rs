//! Bytes of a peer that is broken or means harm: refused, or read; never a panic, never much memory.

use clickmill_wire::rows::Rows;
use clickmill_wire::step::{Step, decode_commit};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::memory::taken_by;
use crate::rows::answers;
use crate::steps::steps;

/// Lists have their own form in memory, a little larger than the bytes they are read from: a push without
/// parts is 33 bytes on the wire, and a few times that in memory.
fn allowed(payload: &[u8]) -> usize {
    8 * payload.len() + 64
}

fn read_all(payload: &[u8]) {
    let taken = taken_by(|| {
        let _ = Step::decode(payload);
        let _ = decode_commit(payload);
        let _ = Rows::decode(payload);
    });
    assert!(
        taken <= allowed(payload),
        "{taken} bytes taken for a payload of {}",
        payload.len()
    );
}

fn payloads() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        steps().prop_map(|step| step.payload()),
        answers().prop_map(|rows| rows.payload()),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(payload in vec(any::<u8>(), 0..300)) {
        read_all(&payload);
    }

    #[test]
    fn changed_payloads_are_read_or_refused(
        mut payload in payloads(),
        changes in vec((any::<Index>(), any::<u8>()), 1..8),
    ) {
        for (at, value) in changes {
            let at = at.index(payload.len());
            payload[at] = value;
        }
        read_all(&payload);
    }

    /// The largest lengths, wherever a length may stand.
    #[test]
    fn huge_lengths_take_no_memory(mut payload in payloads(), at in any::<Index>(), length in 1..=4_usize) {
        let at = at.index(payload.len());
        let end = payload.len().min(at + length);
        payload[at..end].fill(0xff);
        read_all(&payload);
    }

    #[test]
    fn a_step_that_was_cut_is_refused(made in steps(), at in any::<Index>()) {
        let payload = made.payload();
        prop_assert!(Step::decode(&payload[..at.index(payload.len())]).is_err());
    }

    #[test]
    fn rows_that_were_cut_are_refused(made in answers(), at in any::<Index>()) {
        let payload = made.payload();
        prop_assert!(Rows::decode(&payload[..at.index(payload.len())]).is_err());
    }

    #[test]
    fn more_than_was_written_is_refused(step in steps(), rows in answers(), more in vec(any::<u8>(), 1..9)) {
        prop_assert!(Step::decode(&[step.payload(), more.clone()].concat()).is_err());
        prop_assert!(Rows::decode(&[rows.payload(), more].concat()).is_err());
    }
}
