//! Any bytes as the first words of a stranger: refused, or words that are fit for a log and read again alike.
#![no_main]

use clickmill_wire::hello::{Hello, Opening, Proof, Refusal, Return, protocol};
use libfuzzer_sys::fuzz_target;

fn check(hello: &Hello) {
    assert!(hello.name.len() <= 256 && !hello.name.contains(['\n', '\r', '\u{1b}', '\0']));
    assert!(hello.features.len() <= 64);
}

fuzz_target!(|payload: &[u8]| {
    if let Ok(opening) = Opening::decode(payload) {
        assert_eq!(protocol(payload), Ok(opening.protocol));
        check(&opening.hello);
        let written = serde_json::to_vec(&opening).expect("plain data");
        assert_eq!(Opening::decode(&written), Ok(opening));
    }
    if let Ok(returned) = Return::decode(payload) {
        check(&returned.hello);
        let written = serde_json::to_vec(&returned).expect("plain data");
        assert_eq!(Return::decode(&written), Ok(returned));
    }
    let _ = serde_json::from_slice::<Proof>(payload);
    let _ = serde_json::from_slice::<Refusal>(payload);
});
