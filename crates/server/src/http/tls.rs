//! TLS: the certificate for connections, which is reloaded when its files change.
//!
//! # Invariants
//! - Unusable files leave the current certificate in use and are logged once.
//! - The files are checked at most once a second, and never on an async thread.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, io};

use engine::clock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::blocking::run_blocking;
use crate::error::{TlsError, TlsFiles};

const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A TLS configuration that follows its files.
pub(crate) struct TlsReloader {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
    looked: Mutex<TlsFilesCheck>,
}

/// The state of the files at the last check.
struct TlsFilesCheck {
    at: Instant,
    versions: [Option<FileRevision>; 2],
}

/// The modification time of a file, and its size.
type FileRevision = (SystemTime, u64);

impl TlsReloader {
    pub(crate) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        // Read the revisions before the files: a later change causes another reload.
        let versions = files.versions();
        let config = RwLock::new(Arc::new(files.read()?));
        Ok(Self { files, config, looked: Mutex::new(TlsFilesCheck { at: clock::now(), versions }) })
    }

    /// Returns the acceptor for a new connection.
    pub(crate) async fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        if self.is_time_to_look() {
            let this = Arc::clone(self);
            // If the server is stopping, the current certificate is good enough.
            run_blocking(move || this.reload_if_changed()).await.unwrap_or_default();
        }
        let config = self.config.read().expect("no code panics while it holds this lock");
        TlsAcceptor::from(Arc::clone(&config))
    }

    fn is_time_to_look(&self) -> bool {
        let mut looked = self.looked.lock().expect("no code panics while it holds this lock");
        let (now, last) = (clock::now(), looked.at);
        let is_time = now.duration_since(last) >= LOOK_INTERVAL;
        if is_time {
            looked.at = now;
        }
        is_time
    }

    fn reload_if_changed(&self) {
        let versions = self.files.versions();
        {
            let mut looked = self.looked.lock().expect("no code panics while it holds this lock");
            if looked.versions == versions {
                return;
            }
            looked.versions = versions;
        }
        match self.files.read() {
            Ok(config) => {
                *self.config.write().expect("no code panics while it holds this lock") =
                    Arc::new(config);
                tracing::info!("reloaded the TLS certificate");
            }
            Err(error) => {
                tracing::error!(%error, "cannot reload the TLS certificate; keeping the old one");
            }
        }
    }
}

impl TlsFiles {
    fn versions(&self) -> [Option<FileRevision>; 2] {
        [&self.certificates, &self.key].map(|path| {
            let version = |metadata: fs::Metadata| Ok((metadata.modified()?, metadata.len()));
            fs::metadata(path).and_then(version).ok() as Option<FileRevision>
        })
    }

    fn read(&self) -> Result<ServerConfig, TlsError> {
        let Self { certificates: path, key } = self;
        let unreadable = |path: &PathBuf, error| {
            let path = path.clone();
            match error {
                pem::Error::Io(source) => TlsError::Io { path, source },
                source => TlsError::Pem { path, source },
            }
        };
        let chain =
            CertificateDer::pem_file_iter(path).map_err(|source| unreadable(path, source))?;
        let chain: Vec<_> =
            chain.collect::<Result<_, _>>().map_err(|source| unreadable(path, source))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: path.clone() });
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|source| unreadable(key, source))?;
        let unusable = |source| TlsError::Unusable { files: self.clone(), source };
        let provider = Arc::new(ring::default_provider());
        let versions = ServerConfig::builder_with_provider(provider);
        let versions = versions.with_safe_default_protocol_versions().map_err(unusable)?;
        let certified = versions.with_no_client_auth().with_single_cert(chain, key);
        let mut config = certified.map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Returns the error of a handshake that took too long.
pub(crate) fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "TLS handshake timed out")
}
