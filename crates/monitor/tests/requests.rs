//! Requests over real sockets.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, mpsc};

use clickmill_monitor::{Answer, Error, Metrics, Monitor};

const TOKEN: &str = "a token for the monitor";

fn monitor(token: Option<&str>) -> Monitor {
    Monitor::start("127.0.0.1:0", token, false, Metrics::default()).unwrap()
}

fn raw(address: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    // A server that has heard enough may close before all is said.
    let _ = socket.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// Status and body.
fn get(address: SocketAddr, path: &str, headers: &str) -> (u16, String) {
    let answer = raw(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: here\r\n{headers}\r\n"),
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.parse().unwrap(), body.to_owned())
}

#[test]
fn metrics_are_read_as_they_stand() {
    let monitor = monitor(None);
    let metrics = monitor.metrics();
    let labels = [("table", "t\"1"), ("server", "0")];
    let pulls = metrics
        .counter(
            "clickmill_pserver_rows_pulled_total",
            "Rows given to trainers.",
            &labels,
        )
        .unwrap();
    pulls.add(3.0);
    pulls.add(-1.0);
    pulls.add(f64::NAN);
    metrics
        .gauge("clickmill_pserver_memory_bytes", "Memory of tables", &[])
        .unwrap()
        .set(1024.0);
    let waits = metrics
        .histogram("clickmill_trainer_wait_seconds", "Waits", &[0.1, 1.0], &[])
        .unwrap();
    waits.observe(0.5);
    let (status, body) = get(monitor.address(), "/metrics", "");
    assert_eq!(status, 200);
    for line in [
        "# HELP clickmill_pserver_rows_pulled Rows given to trainers.",
        "# TYPE clickmill_pserver_rows_pulled counter",
        "clickmill_pserver_rows_pulled_total{server=\"0\",table=\"t\\\"1\"} 3.0",
        "clickmill_pserver_memory_bytes{} 1024.0",
        "clickmill_trainer_wait_seconds_bucket{le=\"0.1\"} 0",
        "clickmill_trainer_wait_seconds_bucket{le=\"1.0\"} 1",
        "clickmill_trainer_wait_seconds_bucket{le=\"+Inf\"} 1",
        "# EOF",
    ] {
        assert!(body.lines().any(|found| found == line), "{line}\n{body}");
    }
}

#[test]
fn the_same_name_and_labels_are_the_same_series() {
    let metrics = Metrics::default();
    let count = |labels: &[(&str, &str)]| metrics.counter("clickmill_test_things_total", "Things", labels);
    count(&[("a", "1"), ("b", "2")]).unwrap().add(1.0);
    count(&[("b", "2"), ("a", "1")]).unwrap().add(1.0);
    assert!(
        metrics
            .text()
            .contains("clickmill_test_things_total{a=\"1\",b=\"2\"} 2.0")
    );
}

#[test]
fn names_that_would_not_be_found_again_are_refused() {
    let metrics = Metrics::default();
    let refused = |outcome: Result<(), Error>| matches!(outcome, Err(Error::Metric { .. }));
    for name in [
        "rows_total",
        "clickmill_Rows_total",
        "clickmill_rows",
        "clickmill__total",
        "clickmill_ä_total",
    ] {
        assert!(refused(metrics.counter(name, "", &[]).map(drop)), "{name}");
    }
    assert!(refused(metrics.gauge("clickmill_rows_total", "", &[]).map(drop)));
    assert!(refused(
        metrics.gauge("clickmill_rows", "", &[("a b", "")]).map(drop)
    ));
    assert!(refused(
        metrics
            .gauge("clickmill_rows", "", &[("a", "1"), ("a", "2")])
            .map(drop)
    ));
    metrics.gauge("clickmill_rows", "", &[("a", "1")]).unwrap();
    assert!(refused(
        metrics.gauge("clickmill_rows", "", &[("b", "1")]).map(drop)
    ));
    assert!(refused(
        metrics
            .histogram("clickmill_rows", "", &[1.0], &[("a", "1")])
            .map(drop)
    ));
    assert!(refused(
        metrics
            .histogram("clickmill_seconds", "", &[2.0, 1.0], &[])
            .map(drop)
    ));
}

#[test]
fn what_is_not_counted_as_it_happens_is_set_before_reading() {
    let monitor = monitor(None);
    let gauge = monitor
        .metrics()
        .gauge("clickmill_test_rows", "Rows", &[])
        .unwrap();
    monitor.metrics().before_reading(move || gauge.add(1.0));
    get(monitor.address(), "/metrics", "");
    let (_, body) = get(monitor.address(), "/metrics", "");
    assert!(body.contains("clickmill_test_rows{} 2.0"), "{body}");
}

#[test]
fn a_process_is_ready_when_it_says_so() {
    let monitor = monitor(None);
    let ready = || get(monitor.address(), "/readyz", "");
    assert_eq!(get(monitor.address(), "/healthz", ""), (200, "ok\n".to_owned()));
    assert_eq!(ready(), (503, "starting\n".to_owned()));
    monitor.set_not_ready("waiting for pserver 1");
    assert_eq!(ready(), (503, "waiting for pserver 1\n".to_owned()));
    monitor.set_ready();
    assert_eq!(ready(), (200, "ready\n".to_owned()));
}

#[test]
fn metrics_and_reasons_are_for_those_who_have_the_token() {
    let monitor = monitor(Some(TOKEN));
    let with_token = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(get(monitor.address(), "/metrics", "").0, 401);
    assert_eq!(
        get(monitor.address(), "/metrics", "Authorization: Bearer another\r\n").0,
        401
    );
    assert_eq!(get(monitor.address(), "/metrics", &with_token).0, 200);
    assert_eq!(
        get(monitor.address(), "/readyz", ""),
        (503, "not ready\n".to_owned())
    );
    assert_eq!(
        get(monitor.address(), "/readyz", &with_token),
        (503, "starting\n".to_owned())
    );
    assert_eq!(get(monitor.address(), "/healthz", "").0, 200);
}

#[test]
fn a_token_is_needed_beyond_this_machine() {
    let start = |token, is_insecure| Monitor::start("0.0.0.0:0", token, is_insecure, Metrics::default());
    assert!(matches!(start(None, false), Err(Error::Open { .. })));
    assert!(start(Some(TOKEN), false).is_ok());
    assert!(start(None, true).is_ok());
}

#[test]
fn requests_that_are_no_reading_are_refused() {
    let monitor = monitor(None);
    let address = monitor.address();
    assert_eq!(get(address, "/", "").0, 404);
    let posted = raw(
        address,
        "POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nab",
    );
    assert!(posted.starts_with("HTTP/1.1 405"), "{posted}");
    let long = format!("GET /{} HTTP/1.1\r\nHost: here\r\n\r\n", "x".repeat(20_000));
    assert!(!raw(address, &long).starts_with("HTTP/1.1 2"));
    assert!(!raw(address, "\x16\x03\x01 no request at all\r\n\r\n").starts_with("HTTP/1.1 2"));
    assert_eq!(get(address, "/healthz", "").0, 200);
}

#[test]
fn silent_peers_leave_room_for_others_when_they_go() {
    let monitor = monitor(None);
    let mut silent: Vec<TcpStream> = (0..16)
        .map(|_| TcpStream::connect(monitor.address()).unwrap())
        .collect();
    // All places are taken, in the order of connecting: the next one is closed.
    let mut one_more = TcpStream::connect(monitor.address()).unwrap();
    assert_eq!(one_more.read(&mut [0]).unwrap_or(0), 0);
    // An answer shows that the place of the one that has spoken is given back.
    let mut spoken = silent.pop().unwrap();
    spoken
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
        .unwrap();
    spoken.read_to_end(&mut Vec::new()).unwrap();
    while !raw(monitor.address(), "GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n").starts_with("HTTP/1.1 200") {
    }
}

#[test]
fn a_monitor_that_is_dropped_gives_its_address_back() {
    let monitor = monitor(None);
    let address = monitor.address();
    let _silent = TcpStream::connect(address).unwrap();
    drop(monitor);
    let again = Monitor::start(&address.to_string(), None, false, Metrics::default());
    assert_eq!(again.unwrap().address(), address);
}

#[test]
fn a_process_has_pages_of_its_own_for_those_who_have_the_token() {
    let monitor = monitor(Some(TOKEN));
    assert_eq!(get(monitor.address(), "/status", "").0, 404);
    monitor.tell("/status", || Answer::Json("{\"phase\":\"running\"}".to_owned()));
    let own_header = format!("X-Clickmill-Token: {TOKEN}\r\n");
    let through_a_proxy = format!("Authorization: Bearer of the proxy\r\n{own_header}");
    for headers in [&own_header, &through_a_proxy] {
        let answer = get(monitor.address(), "/status", headers);
        assert_eq!(answer, (200, "{\"phase\":\"running\"}".to_owned()));
    }
    assert_eq!(get(monitor.address(), "/metrics", &own_header).0, 200);
    assert_eq!(get(monitor.address(), "/status", "").0, 401);
    let posted = raw(
        monitor.address(),
        &format!("POST /status HTTP/1.1\r\nHost: here\r\n{own_header}\r\n"),
    );
    assert!(posted.starts_with("HTTP/1.1 405"), "{posted}");
    let (status, words) = get(monitor.address(), "/nowhere", &own_header);
    assert_eq!(status, 404);
    assert!(words.contains("/status"), "{words}");
}

#[test]
fn an_order_is_a_post_with_the_token_and_its_query() {
    let post = |monitor: &Monitor, headers: &str| {
        raw(
            monitor.address(),
            &format!("POST /scale?pservers=4 HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n{headers}\r\n"),
        )
    };
    let token = format!("X-Clickmill-Token: {TOKEN}\r\n");
    let with_token = monitor(Some(TOKEN));
    with_token.obey("/scale", |query| Answer::Refused(format!("asked for {query}")));
    let answer = post(&with_token, &token);
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert!(answer.ends_with("asked for pservers=4\n"), "{answer}");
    assert!(post(&with_token, "").starts_with("HTTP/1.1 401"));
    assert_eq!(get(with_token.address(), "/scale?pservers=4", &token).0, 405);
    // A web page could make a browser send it.
    let without = monitor(None);
    without.obey("/scale", |_| Answer::Json("{}".to_owned()));
    assert!(post(&without, &token).starts_with("HTTP/1.1 403"));
}

#[test]
fn probes_do_not_wait_for_pages_that_take_long() {
    let monitor = monitor(None);
    let (release, released) = mpsc::channel::<()>();
    let (ask, asked) = mpsc::channel();
    let released = Mutex::new(released);
    monitor.tell("/status", move || {
        ask.send(()).unwrap();
        let _ = released.lock().unwrap().recv();
        Answer::Json("{}".to_owned())
    });
    let address = monitor.address();
    let slow = std::thread::spawn(move || get(address, "/status", ""));
    asked.recv().unwrap();
    assert_eq!(get(address, "/healthz", "").0, 200);
    drop(release);
    assert_eq!(slow.join().unwrap().0, 200);
}

#[test]
fn a_page_that_panics_takes_nobody_along() {
    let monitor = monitor(None);
    monitor.tell("/status", || panic!("of the process"));
    assert_eq!(get(monitor.address(), "/status", "").0, 503);
    assert_eq!(get(monitor.address(), "/healthz", "").0, 200);
}
