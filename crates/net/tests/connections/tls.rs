//! Encrypted connections, with certificates of two authorities.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use clickmill_net::{Connection, Error, Role, Security, Tls, TlsFiles};
use clickmill_wire::{Frame, Kind};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::raw::Raw;
use crate::{brief, error, hello, meet, open, soon, with_token};

const NAME: &str = "cluster.example";

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    /// A certificate of this authority for `name`, in a process that trusts `trusted`.
    fn tls(&self, name: &str, trusted: &Self) -> Tls {
        let folder = tempfile::tempdir().unwrap();
        let files = self.files(folder.path(), name, trusted);
        Tls::read(&files).unwrap()
    }

    fn files(&self, folder: &Path, name: &str, trusted: &Self) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = TlsFiles {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
            authority: folder.join("authority.pem"),
            server_name: NAME.to_owned(),
        };
        std::fs::write(&files.certificate, certificate.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        std::fs::write(&files.authority, trusted.issuer.pem()).unwrap();
        files
    }
}

fn encrypted(tls: Tls) -> Security {
    Security {
        tls: Some(tls),
        ..with_token("a secret of this cluster")
    }
}

fn pair() -> (Connection, Connection) {
    let authority = Authority::new();
    let security = || encrypted(authority.tls(NAME, &authority));
    let (opened, welcomed) = meet(&security(), &security());
    (opened.unwrap(), welcomed.unwrap())
}

#[test]
fn frames_of_any_length_arrive_whole_in_both_directions() {
    let (mut client, mut server) = pair();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut frame = Frame::default();
            for _ in 0..4 {
                let header = server.receive(&mut frame, soon()).unwrap();
                let payload = frame.payload().to_vec();
                frame.begin().bytes(&payload);
                server
                    .send(&mut frame, Kind::Rows, header.request, soon())
                    .unwrap();
            }
        });
        let mut frame = Frame::default();
        for (request, length) in [0, 1, 70_000, 9_000_000].into_iter().enumerate() {
            let payload: Vec<u8> = (0..length).map(|at| (at % 253) as u8).collect();
            frame.begin().bytes(&payload);
            client
                .send(&mut frame, Kind::Step, request as u64, soon())
                .unwrap();
            let header = client.receive(&mut frame, soon()).unwrap();
            assert_eq!((header.kind, header.request), (Kind::Rows, request as u64));
            assert!(frame.payload() == payload, "{length} bytes");
        }
    });
}

#[test]
fn a_server_of_another_authority_is_refused_by_the_client() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (opened, welcomed) = meet(
        &encrypted(ours.tls(NAME, &ours)),
        &encrypted(theirs.tls(NAME, &ours)),
    );
    let error = error(opened);
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    assert!(!error.is_retryable());
    assert!(welcomed.is_err());
}

#[test]
fn a_client_of_another_authority_is_refused_by_the_server_and_hears_so() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (opened, welcomed) = meet(
        &encrypted(theirs.tls(NAME, &ours)),
        &encrypted(ours.tls(NAME, &ours)),
    );
    let (opened, welcomed) = (error(opened), error(welcomed));
    assert!(matches!(opened, Error::Tls { .. }), "{opened}");
    assert!(matches!(welcomed, Error::Tls { .. }), "{welcomed}");
}

#[test]
fn a_server_certificate_made_out_to_another_name_is_refused() {
    let authority = Authority::new();
    let (opened, _) = meet(
        &encrypted(authority.tls(NAME, &authority)),
        &encrypted(authority.tls("elsewhere.example", &authority)),
    );
    assert!(matches!(error(opened), Error::Tls { .. }));
}

#[test]
fn encryption_on_one_side_alone_makes_no_connection_and_both_are_told() {
    let authority = Authority::new();
    let encrypted = encrypted(authority.tls(NAME, &authority));
    let plain = with_token("a secret of this cluster");
    let (opened, welcomed) = meet(&plain, &encrypted);
    let words = told(opened);
    assert!(
        words.contains("this server expects TLS: set `cluster.tls`"),
        "{words}"
    );
    let words = error(welcomed).to_string();
    assert!(
        words.contains("does not use TLS, and this process expects it"),
        "{words}"
    );
    let (opened, welcomed) = meet(&encrypted, &plain);
    let words = told(opened);
    assert!(
        words.contains("this server does not use TLS: start it with --tls-certificate"),
        "{words}"
    );
    let words = error(welcomed).to_string();
    assert!(words.contains("uses TLS, and this process does not"), "{words}");
}

/// In which words a client is refused; they name the server.
fn told(opened: Result<Connection, Error>) -> String {
    let error = error(opened);
    assert!(error.is_about_encryption() && !error.is_retryable(), "{error}");
    let words = error.to_string();
    assert!(words.starts_with("127.0.0.1:"), "{words}");
    words
}

#[test]
fn a_plain_hello_in_answer_to_a_handshake_makes_no_connection() {
    let authority = Authority::new();
    let security = encrypted(authority.tls(NAME, &authority));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut raw = Raw {
                socket: listener.accept().unwrap().0,
            };
            raw.send_json(Kind::Hello, &serde_json::json!({ "protocol": 1 }));
            raw.wait_for_end();
        });
        let error = error(open(&address, &security));
        assert!(matches!(error, Error::Wire { .. }), "{error}");
    });
}

#[test]
fn a_handshake_that_nobody_answers_ends_by_its_deadline() {
    let authority = Authority::new();
    let security = encrypted(authority.tls(NAME, &authority));
    // The system takes the connection; nobody reads from it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let own = hello(Role::Trainer, "trainer-0");
    let error = error(Connection::open(
        &address,
        &own,
        &security,
        brief(),
        Arc::default(),
    ));
    assert!(
        matches!(&error, Error::Deadline { peer, .. } if *peer == address),
        "{error}"
    );
}

#[test]
fn a_frame_that_nobody_reads_ends_by_its_deadline() {
    let (mut client, server) = pair();
    let mut frame = Frame::default();
    frame.begin().bytes(&vec![1; 64 << 20]);
    let error = client.send(&mut frame, Kind::Step, 1, brief()).unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    // What follows would be taken for the rest of the frame.
    let error = client.send(&mut frame, Kind::Step, 2, soon()).unwrap_err();
    assert!(error.to_string().contains("middle of a frame"), "{error}");
    drop(server);
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let files = authority.files(folder.path(), NAME, &authority);
    for file in [&files.key, &files.certificate, &files.authority] {
        let kept = std::fs::read(file).unwrap();
        std::fs::write(file, "nothing").unwrap();
        let error = Tls::read(&files).unwrap_err();
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
        std::fs::write(file, kept).unwrap();
    }
    assert!(Tls::read(&files).is_ok());
}
