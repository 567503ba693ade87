//! How fast frames travel on this machine: `cargo run --release -p clickmill-net --example loopback_speed`.
//!
//! Frames of 2 MB go to an echo and back, plain and encrypted. A byte counts once for each direction, CPU
//! time is that of both ends together. Arguments: megabytes of a frame, number of frames.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for developers")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clickmill_net::{
    Connection, Deadline, Error, Hello, Listener, Role, Security, Tls, TlsFiles, Token, Traffic,
};
use clickmill_wire::{Frame, Kind};

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn hello(role: Role) -> Hello {
    Hello {
        role,
        name: "speed".to_owned(),
        features: std::collections::BTreeSet::default(),
    }
}

fn echo(mut connection: Connection) {
    let (mut received, mut sent) = (Frame::default(), Frame::default());
    loop {
        match connection.receive(&mut received, soon()) {
            Ok(header) => {
                sent.begin().bytes(received.payload());
                connection
                    .send(&mut sent, Kind::Rows, header.request, soon())
                    .unwrap();
            }
            Err(Error::Closed { .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Seconds of this process on all cores.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    let ticks = after_name.split(' ').skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

fn measure(name: &str, security: &Security, num_bytes: usize, num_frames: u64) {
    let listener = Listener::bind("127.0.0.1:0", security, false).unwrap();
    let address = listener.address().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stop = Arc::new(AtomicBool::new(false));
            let accepted = listener.accept().unwrap();
            echo(
                accepted
                    .welcome(&hello(Role::Pserver), security, Arc::default(), stop)
                    .unwrap(),
            );
        });
        let traffic = Arc::new(Traffic::default());
        let mut connection =
            Connection::open(&address, &hello(Role::Trainer), security, soon(), traffic).unwrap();
        let payload = vec![7; num_bytes];
        let (mut sent, mut received) = (Frame::default(), Frame::default());
        let (began, cpu_before) = (Instant::now(), cpu_seconds());
        for request in 0..num_frames {
            sent.begin().bytes(&payload);
            connection.send(&mut sent, Kind::Step, request, soon()).unwrap();
            connection.receive(&mut received, soon()).unwrap();
            assert_eq!(received.payload().len(), payload.len());
        }
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu_before);
        let gigabytes = 2.0 * (num_bytes as u64 * num_frames) as f64 / 1e9;
        println!(
            "{name}: {:.2} GB/s, {:.2} CPU seconds a GB, {:.1} µs a frame and its answer",
            gigabytes / seconds,
            cpu / gigabytes,
            seconds / num_frames as f64 * 1e6
        );
    });
}

fn tls() -> Tls {
    let folder = std::env::temp_dir().join(format!("loopback-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["clickmill".to_owned()]).unwrap();
    let files = TlsFiles {
        certificate: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
        authority: folder.join("certificate.pem"),
        server_name: "clickmill".to_owned(),
    };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let tls = Tls::read(&files).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    tls
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<f64>().unwrap());
    let num_bytes = (arguments.next().unwrap_or(2.0) * 1e6) as usize;
    let num_frames = arguments.next().unwrap_or(500.0) as u64;
    let token = Some(Token::new("a token for measuring").unwrap());
    let plain = Security { token, tls: None };
    measure("plain", &plain, num_bytes, num_frames);
    let encrypted = Security {
        tls: Some(tls()),
        ..plain
    };
    measure("tls", &encrypted, num_bytes, num_frames);
}
