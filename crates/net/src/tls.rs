//! Encryption of connections, with certificates on both sides.

use std::fmt;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::Error;

/// PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Of this process, with those between it and the authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// What the certificates of all processes are checked against.
    pub authority: PathBuf,
    /// Name that the certificates of servers are made out to.
    pub server_name: String,
}

#[derive(Clone)]
pub struct Tls {
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) server_name: ServerName<'static>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tls({:?})", self.server_name)
    }
}

impl Tls {
    pub fn read(files: &TlsFiles) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut authority = RootCertStore::empty();
        for certificate in certificates(&files.authority)? {
            authority
                .add(certificate)
                .map_err(|error| wrong(&files.authority, error))?;
        }
        let authority = Arc::new(authority);
        let own = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| wrong(&files.key, format!("no private key can be read: {error}")))?;
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&files.certificate, error))?
            .with_root_certificates(Arc::clone(&authority))
            .with_client_auth_cert(own.clone(), key.clone_key())
            .map_err(|error| wrong(&files.certificate, error))?;
        let verifier = WebPkiClientVerifier::builder_with_provider(authority, Arc::clone(&provider))
            .build()
            .map_err(|error| wrong(&files.authority, error))?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&files.certificate, error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(own, key)
            .map_err(|error| wrong(&files.certificate, error))?;
        let server_name = ServerName::try_from(files.server_name.clone())
            .map_err(|error| wrong(&files.certificate, format!("server name: {error}")))?;
        Ok(Self {
            client: Arc::new(client),
            server: Arc::new(server),
            server_name,
        })
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let opened = std::fs::File::open(file).map_err(|error| wrong(file, error))?;
    let found = CertificateDer::pem_reader_iter(BufReader::new(opened))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(file, error))?;
    if found.is_empty() {
        return Err(wrong(file, "no certificate is in it"));
    }
    Ok(found)
}

fn wrong(file: &Path, reason: impl fmt::Display) -> Error {
    Error::File {
        file: file.to_owned(),
        reason: reason.to_string(),
    }
}
