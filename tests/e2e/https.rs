//! A server on this machine that serves one file over HTTPS, under a certificate of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server that stops at the end of the test.
pub(crate) struct HttpsServer {
    address: SocketAddr,
    certificate: PathBuf,
    requests: Arc<AtomicUsize>,
    _place: TempDir,
}

impl HttpsServer {
    /// URL of the file.
    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/component.wasm", self.address.port())
    }

    /// File of the certificate that clients must trust.
    pub(crate) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

/// Serves a file.
#[allow(clippy::disallowed_methods, reason = "tests write files")]
pub(crate) async fn serve(file: Vec<u8>) -> HttpsServer {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let place = tempfile::tempdir().unwrap();
    let certificate = place.path().join("certificate.pem");
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let (file, counter) = (Arc::new(file), Arc::clone(&requests));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, file, counter) = (acceptor.clone(), Arc::clone(&file), Arc::clone(&counter));
            tokio::spawn(async move {
                // A client that does not trust the certificate, or gives up, is what some tests want.
                let _ = answer(acceptor, stream, &file, &counter).await;
            });
        }
    });
    HttpsServer {
        address,
        certificate,
        requests,
        _place: place,
    }
}

async fn answer(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    file: &[u8],
    requests: &AtomicUsize,
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    requests.fetch_add(1, Ordering::Relaxed);
    let body = if request.starts_with(b"GET /component.wasm HTTP") {
        Some(file)
    } else {
        None
    };
    let head = match body {
        // Without a length, so that only counting shows how much comes.
        Some(_) => "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    };
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.unwrap_or_default()).await?;
    stream.shutdown().await
}
