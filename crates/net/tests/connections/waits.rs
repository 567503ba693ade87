//! Peers that are slow, silent, gone or mad.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use clickmill_net::{Error, Security, interruptible};
use clickmill_wire::{Frame, Kind};

use crate::raw::{frame, served};
use crate::{brief, meet, soon};

#[test]
fn a_peer_that_stops_within_a_frame_is_named_at_the_deadline() {
    let whole = frame(Kind::Rows, b"many rows");
    for length in [10, whole.len() - 1] {
        served(
            |mut raw| {
                raw.write(&whole[..length]);
                raw.wait_for_end();
            },
            |mut client, address| {
                let mut frame = Frame::default();
                let error = client.receive(&mut frame, brief()).unwrap_err();
                assert!(
                    matches!(&error, Error::Deadline { peer, .. } if *peer == address),
                    "{error}"
                );
                let error = client.receive(&mut frame, soon()).unwrap_err();
                assert!(
                    error.is_retryable() && error.to_string().contains("middle of a frame"),
                    "{error}"
                );
            },
        );
    }
}

#[test]
fn a_deadline_between_frames_leaves_the_connection_whole() {
    let (go, wait) = mpsc::channel();
    served(
        move |mut raw| {
            wait.recv().unwrap();
            raw.write(&frame(Kind::Rows, b"late"));
            raw.wait_for_end();
        },
        |mut client, _| {
            let mut frame = Frame::default();
            let error = client.receive(&mut frame, brief()).unwrap_err();
            assert!(matches!(error, Error::Deadline { .. }), "{error}");
            go.send(()).unwrap();
            client.receive(&mut frame, soon()).unwrap();
            assert_eq!(frame.payload(), b"late");
        },
    );
}

#[test]
fn a_frame_that_comes_byte_by_byte_is_read() {
    served(
        |mut raw| {
            for byte in frame(Kind::Rows, b"a few rows") {
                raw.write(&[byte]);
            }
            raw.wait_for_end();
        },
        |mut client, _| {
            let mut frame = Frame::default();
            client.receive(&mut frame, soon()).unwrap();
            assert_eq!(frame.payload(), b"a few rows");
        },
    );
}

#[test]
fn frames_that_come_together_are_read_one_by_one() {
    let payloads: Vec<Vec<u8>> = [0, 3, 20_000, 1].map(|length| vec![5; length]).to_vec();
    let all: Vec<u8> = payloads
        .iter()
        .flat_map(|payload| frame(Kind::Rows, payload))
        .collect();
    served(
        |mut raw| {
            raw.write(&all);
            raw.wait_for_end();
        },
        |mut client, _| {
            let mut frame = Frame::default();
            for payload in &payloads {
                client.receive(&mut frame, soon()).unwrap();
                assert_eq!(frame.payload(), payload);
            }
        },
    );
}

#[test]
fn garbage_is_not_taken_for_a_frame() {
    served(
        |mut raw| {
            raw.write(b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n");
            raw.wait_for_end();
        },
        |mut client, address| {
            let error = client.receive(&mut Frame::default(), soon()).unwrap_err();
            assert!(error.to_string().contains("not a frame of clickmill"), "{error}");
            assert!(error.to_string().contains(&address), "{error}");
        },
    );
}

#[test]
fn a_damaged_frame_is_found() {
    served(
        |mut raw| {
            let mut bytes = frame(Kind::Rows, b"rows");
            *bytes.last_mut().unwrap() ^= 1;
            raw.write(&bytes);
            raw.wait_for_end();
        },
        |mut client, _| {
            let error = client.receive(&mut Frame::default(), soon()).unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
        },
    );
}

#[test]
fn a_peer_that_closes_is_named() {
    let whole = frame(Kind::Rows, b"rows");
    for length in [0, whole.len() - 1] {
        served(
            |mut raw| raw.write(&whole[..length]),
            |mut client, address| {
                let error = client.receive(&mut Frame::default(), soon()).unwrap_err();
                assert!(
                    matches!(&error, Error::Closed { peer } if *peer == address),
                    "{error}"
                );
                assert!(error.is_retryable());
            },
        );
    }
}

#[test]
fn a_name_given_later_is_the_one_in_errors() {
    served(drop, |mut client, _| {
        client.rename("pserver 3".to_owned());
        let error = client.receive(&mut Frame::default(), soon()).unwrap_err();
        assert_eq!(error.to_string(), "pserver 3 has closed the connection");
    });
}

#[test]
fn a_plain_frame_that_nobody_reads_ends_by_its_deadline() {
    let (client, server) = meet(&Security::default(), &Security::default());
    let (mut client, server) = (client.unwrap(), server.unwrap());
    let mut frame = Frame::default();
    frame.begin().bytes(&vec![1; 128 << 20]);
    let error = client.send(&mut frame, Kind::Step, 1, brief()).unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    drop(server);
}

#[test]
fn a_wait_ends_when_the_process_stops() {
    let (client, server) = meet(&Security::default(), &Security::default());
    let (mut client, server) = (client.unwrap(), server.unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    client.stop_with(Arc::clone(&stop));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.receive(&mut Frame::default(), soon()).unwrap_err());
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(waiting.join().unwrap(), Error::Stopped));
    });
    drop(server);
}

#[test]
fn a_wait_for_an_answer_ends_when_whoever_runs_it_says_so() {
    let (client, server) = meet(&Security::default(), &Security::default());
    let (mut client, server) = (client.unwrap(), server.unwrap());
    let error = interruptible(|| true, || client.receive(&mut Frame::default(), soon())).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
    // Only what it runs: a wait after it goes by its deadline.
    let error = client.receive(&mut Frame::default(), brief()).unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    drop(server);
}

#[test]
fn a_wait_for_a_reader_ends_when_whoever_runs_it_says_so() {
    let (client, server) = meet(&Security::default(), &Security::default());
    let (mut client, server) = (client.unwrap(), server.unwrap());
    let mut frame = Frame::default();
    frame.begin().bytes(&vec![1; 128 << 20]);
    let error = interruptible(|| true, || client.send(&mut frame, Kind::Step, 1, soon())).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
    drop(server);
}

#[test]
fn a_refusal_arrives_with_its_code_and_reason() {
    let (client, server) = meet(&Security::default(), &Security::default());
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    server
        .refuse("epoch", "the cluster has gone back", 7, soon())
        .unwrap();
    let mut frame = Frame::default();
    let outcome = client.receive_json::<serde_json::Value>(&mut frame, Kind::Control, soon());
    let error = outcome.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { code, .. } if code == "epoch"),
        "{error}"
    );
    assert!(error.to_string().contains("the cluster has gone back"), "{error}");
}
