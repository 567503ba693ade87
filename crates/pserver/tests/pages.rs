//! What a server with a coordinator answers over HTTP, asked through real sockets.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use clickmill_coordinator::{Settings, Status};
use clickmill_monitor::{Metrics, Monitor};
use clickmill_net::Security;
use clickmill_pserver::{Server, ServerSettings};
use tempfile::TempDir;

const TOKEN: &str = "a token for the monitor";

struct Cluster {
    server: Server,
    monitor: Monitor,
    _folder: TempDir,
}

fn cluster(coordinator: Option<&str>) -> Cluster {
    let folder = tempfile::tempdir().unwrap();
    let settings = ServerSettings {
        address: "127.0.0.1:0".to_owned(),
        announced: None,
        is_insecure: false,
        index: Some(0),
        coordinator: coordinator.map(ToOwned::to_owned),
        coordinator_settings: Settings::default(),
        snapshots: folder.path().to_path_buf(),
        memory_budget: None,
        security: Security::default(),
    };
    let server = Server::start(settings, Arc::new(|_| {})).unwrap();
    let monitor = Monitor::start("127.0.0.1:0", Some(TOKEN), false, Metrics::default()).unwrap();
    server.answer_on(&monitor);
    Cluster {
        server,
        monitor,
        _folder: folder,
    }
}

/// Status and body.
fn ask(monitor: &Monitor, request: &str, token: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(monitor.address()).unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\nX-Clickmill-Token: {token}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn the_status_is_the_coordinators_own() {
    let cluster = cluster(None);
    let (code, body) = ask(&cluster.monitor, "GET /status", TOKEN);
    assert_eq!(code, 200, "{body}");
    let status: Status = serde_json::from_str(&body).unwrap();
    assert_eq!((status.num_servers, status.metrics), (1, None));
    assert_eq!(ask(&cluster.monitor, "GET /status", "another token").0, 401);
    cluster.server.stop();
}

#[test]
fn orders_are_answered_in_the_words_of_the_coordinator() {
    let cluster = cluster(None);
    let order = |path: &str| ask(&cluster.monitor, &format!("POST {path}"), TOKEN);
    let (code, words) = order("/scale?pservers=3");
    assert_eq!(code, 409);
    assert!(words.starts_with("the cluster is not running"), "{words}");
    for wrong in [
        "/scale",
        "/scale?pservers=",
        "/scale?pservers=-1",
        "/scale?other=3",
    ] {
        assert_eq!(order(wrong).0, 400, "{wrong}");
    }
    assert_eq!(order("/snapshot").0, 409);
    let (code, words) = order("/stop");
    assert_eq!(code, 200, "{words}");
    assert!(words.contains("accepted"), "{words}");
    while cluster.server.wait(std::time::Duration::from_secs(60)).is_none() {}
    cluster.server.stop();
}

#[test]
fn nobody_answers_for_a_coordinator_that_is_elsewhere_or_gone() {
    let other = cluster(None);
    let second = cluster(Some(other.server.address()));
    assert_eq!(ask(&second.monitor, "GET /status", TOKEN).0, 404);
    second.server.stop();
    let Cluster {
        server,
        monitor,
        _folder,
    } = other;
    server.stop();
    drop(server);
    // Threads of it may still hold what they are busy with.
    let code = || ask(&monitor, "GET /status", TOKEN).0;
    while code() != 503 {}
}
