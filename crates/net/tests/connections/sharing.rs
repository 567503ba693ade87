//! Long frames between processes of one host, which lie in memory of both.

use std::thread;

use clickmill_net::{Connection, Error, Security};
use clickmill_wire::{Frame, Header, Kind};

use crate::raw::served;
use crate::{meet, soon, with_token};

const LONG: usize = 3_000_000;

fn pair() -> (Connection, Connection) {
    let (opened, welcomed) = meet(&with_token("0123456789abcdef"), &with_token("0123456789abcdef"));
    let mut client = opened.unwrap();
    client.share_memory();
    (client, welcomed.unwrap())
}

fn payload(length: usize, salt: usize) -> Vec<u8> {
    let pattern: Vec<u8> = (0..251).map(|at| ((at + salt) % 251) as u8).collect();
    let mut payload = pattern.repeat(length / pattern.len() + 1);
    payload.truncate(length);
    payload
}

/// Answers every frame with what it says; where `is_copied`, with a frame that was not written where it is sent from.
fn echo(server: &mut Connection, count: usize, is_copied: bool) {
    let (mut frame, mut reply) = (Frame::default(), Frame::default());
    for _ in 0..count {
        let header = server.receive(&mut frame, soon()).unwrap();
        if !is_copied {
            server.lend(&mut reply);
        }
        reply.begin().bytes(frame.payload());
        frame.clear();
        server
            .send(&mut reply, Kind::Rows, header.request, soon())
            .unwrap();
    }
}

#[test]
fn frames_of_any_length_arrive_whole_in_both_directions() {
    let lengths = [0, 10, 100_000, LONG, 10, 70_000_000, LONG, 4 * LONG, 4 * LONG];
    for is_copied in [false, true] {
        let (mut client, mut server) = pair();
        thread::scope(|scope| {
            scope.spawn(move || echo(&mut server, lengths.len(), is_copied));
            let (mut frame, mut answer) = (Frame::default(), Frame::default());
            let mut shared = Vec::new();
            for (request, length) in lengths.into_iter().enumerate() {
                let payload = payload(length, request);
                if !is_copied {
                    client.lend(&mut frame);
                }
                frame.begin().bytes(&payload);
                client
                    .send(&mut frame, Kind::Step, request as u64, soon())
                    .unwrap();
                let header = client.receive(&mut answer, soon()).unwrap();
                assert_eq!((header.kind, header.request), (Kind::Rows, request as u64));
                assert!(answer.payload() == payload, "{length} bytes");
                shared.push(answer.is_lent());
                answer.clear();
            }
            // Of the first long one, on; the longest has no room, and short ones need none.
            assert_eq!(shared[..2], [false; 2]);
            assert_eq!(shared[2..4], [true; 2]);
            assert_eq!(shared[4], !is_copied);
            assert_eq!(shared[5..], [false, true, true, true]);
        });
    }
}

#[test]
fn an_answer_that_is_not_done_with_is_not_overwritten() {
    let (mut client, mut server) = pair();
    thread::scope(|scope| {
        scope.spawn(move || echo(&mut server, 2, false));
        let mut frame = Frame::default();
        let (mut first, mut second) = (Frame::default(), Frame::default());
        for (request, answer) in [&mut first, &mut second].into_iter().enumerate() {
            client.lend(&mut frame);
            frame.begin().bytes(&payload(LONG, request));
            client
                .send(&mut frame, Kind::Step, request as u64, soon())
                .unwrap();
            client.receive(answer, soon()).unwrap();
        }
        assert!(first.is_lent() && !second.is_lent());
        assert!(first.payload() == payload(LONG, 0) && second.payload() == payload(LONG, 1));
    });
}

#[test]
fn a_frame_goes_out_again_on_another_connection() {
    let (client, server) = pair();
    let mut frame = Frame::default();
    {
        let (mut client, mut server) = (client, server);
        thread::scope(|scope| {
            scope.spawn(|| echo(&mut server, 1, false));
            frame.begin().bytes(&payload(LONG, 1));
            client.send(&mut frame, Kind::Step, 0, soon()).unwrap();
            client.receive(&mut Frame::default(), soon()).unwrap();
        });
        client.lend(&mut frame);
        frame.begin().bytes(&payload(LONG, 2));
        assert!(frame.is_lent());
    }
    let (mut client, mut server) = pair();
    thread::scope(|scope| {
        scope.spawn(move || echo(&mut server, 1, false));
        client.send(&mut frame, Kind::Step, 0, soon()).unwrap();
        let mut answer = Frame::default();
        client.receive(&mut answer, soon()).unwrap();
        assert!(answer.payload() == payload(LONG, 2));
    });
}

#[test]
fn nothing_is_shared_unless_asked_for() {
    let (opened, welcomed) = meet(&Security::default(), &Security::default());
    let (mut client, mut server) = (opened.unwrap(), welcomed.unwrap());
    thread::scope(|scope| {
        scope.spawn(move || echo(&mut server, 1, false));
        let (mut frame, mut answer) = (Frame::default(), Frame::default());
        frame.begin().bytes(&payload(LONG, 0));
        client.send(&mut frame, Kind::Step, 0, soon()).unwrap();
        client.receive(&mut answer, soon()).unwrap();
        assert!(!answer.is_lent() && answer.payload() == payload(LONG, 0));
    });
}

#[test]
fn a_peer_that_does_not_know_of_it_is_not_asked() {
    served(
        |mut raw| {
            let (kind, received) = raw.receive();
            assert_eq!((kind, received.len()), (Kind::Step, LONG));
            raw.wait_for_end();
        },
        |mut client, _| {
            client.share_memory();
            let mut frame = Frame::default();
            frame.begin().bytes(&payload(LONG, 0));
            client.send(&mut frame, Kind::Step, 0, soon()).unwrap();
        },
    );
}

#[test]
fn a_frame_that_is_said_to_lie_in_memory_and_does_not_is_refused() {
    served(
        |mut raw| {
            raw.write(&Header::shared(Kind::Rows, 0, 100).encode());
            raw.wait_for_end();
        },
        |mut client, _| {
            let error = client.receive(&mut Frame::default(), soon()).unwrap_err();
            assert!(matches!(&error, Error::Wire { .. }), "{error}");
            assert!(error.to_string().contains("shared memory"), "{error}");
        },
    );
}
