//! Who is let in.

use std::net::TcpListener;
use std::thread;

use clickmill_net::{Error, Listener, Role, Security};
use clickmill_wire::hello::{Hello, Opening, Proof, Refusal, Return};
use clickmill_wire::{Kind, PROTOCOL_VERSION};

use crate::raw::Raw;
use crate::{error, meet, open, welcome, with_token};

const SECRET: &str = "a secret of this cluster";

fn opening() -> Opening {
    Opening {
        protocol: PROTOCOL_VERSION,
        nonce: "1".repeat(32),
        hello: Hello {
            role: Role::Trainer,
            name: "raw".to_owned(),
            features: std::collections::BTreeSet::default(),
        },
    }
}

#[test]
fn peers_with_one_token_know_each_other() {
    let (opened, welcomed) = meet(&with_token(SECRET), &with_token(SECRET));
    let (opened, welcomed) = (opened.unwrap(), welcomed.unwrap());
    assert_eq!(
        (opened.hello().role, opened.hello().name.as_str()),
        (Role::Pserver, "pserver-0")
    );
    assert_eq!(
        (welcomed.hello().role, welcomed.hello().name.as_str()),
        (Role::Trainer, "trainer-0")
    );
    assert!(welcomed.hello().features.contains("bf16"));
}

#[test]
fn peers_without_tokens_meet_on_this_machine() {
    let (opened, welcomed) = meet(&Security::default(), &Security::default());
    assert!(opened.is_ok() && welcomed.is_ok());
}

#[test]
fn a_server_with_another_token_is_not_spoken_to() {
    let (opened, welcomed) = meet(&with_token("another secret, not theirs"), &with_token(SECRET));
    let error = error(opened);
    assert!(matches!(error, Error::Token { .. }) && !error.is_retryable());
    assert!(error.to_string().contains("does not know the token"), "{error}");
    assert!(matches!(welcomed, Err(Error::Closed { .. })));
}

#[test]
fn a_client_whose_proof_is_wrong_is_refused_in_words() {
    let security = with_token(SECRET);
    let listener = Listener::bind("127.0.0.1:0", &security, false).unwrap();
    let address = listener.address().to_string();
    thread::scope(|scope| {
        let welcomed = scope.spawn(|| welcome(&listener, &security));
        let mut raw = Raw::connect(&address);
        raw.send_json(Kind::Hello, &opening());
        let returned = Return::decode(&raw.receive().1).unwrap();
        // The server's own proof is not one for a client.
        raw.send_json(
            Kind::Hello,
            &Proof {
                proof: returned.proof,
            },
        );
        let (kind, payload) = raw.receive();
        let refusal: Refusal = serde_json::from_slice(&payload).unwrap();
        assert_eq!((kind, refusal.code.as_str()), (Kind::Refused, "token"));
        drop(raw);
        assert!(matches!(welcomed.join().unwrap(), Err(Error::Token { .. })));
    });
}

#[test]
fn a_client_without_a_token_says_that_it_needs_one() {
    let (opened, welcomed) = meet(&Security::default(), &with_token(SECRET));
    let error = error(opened);
    assert!(error.to_string().contains("asks for a token"), "{error}");
    assert!(welcomed.is_err());
}

#[test]
fn a_server_without_a_token_is_not_trusted_by_a_client_with_one() {
    let (opened, welcomed) = meet(&with_token(SECRET), &Security::default());
    let error = error(opened);
    assert!(error.to_string().contains("has no token"), "{error}");
    assert!(welcomed.is_err());
}

#[test]
fn a_client_of_another_version_is_told_ours_and_sent_away() {
    let security = Security::default();
    let listener = Listener::bind("127.0.0.1:0", &security, false).unwrap();
    let address = listener.address().to_string();
    thread::scope(|scope| {
        let welcomed = scope.spawn(|| welcome(&listener, &security));
        let mut raw = Raw::connect(&address);
        raw.send_json(
            Kind::Hello,
            &serde_json::json!({"protocol": 999, "greeting": ["of", "a", "later", "form"]}),
        );
        let (_, payload) = raw.receive();
        assert_eq!(clickmill_wire::hello::protocol(&payload), Ok(PROTOCOL_VERSION));
        drop(raw);
        let error = error(welcomed.join().unwrap());
        assert!(matches!(error, Error::Version { found: 999, .. }) && !error.is_retryable());
    });
}

#[test]
fn a_server_of_another_version_is_named_with_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (socket, _) = listener.accept().unwrap();
            let mut raw = Raw { socket };
            raw.receive();
            raw.send_json(Kind::Hello, &serde_json::json!({"protocol": 7}));
            raw.wait_for_end();
        });
        let error = error(open(&address, &Security::default()));
        assert!(matches!(error, Error::Version { found: 7, .. }));
        assert!(error.to_string().contains(&address), "{error}");
    });
}
