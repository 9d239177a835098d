//! TLS to PostgreSQL, by rustls. The certificate is always checked against the server's name.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

type Boxed = Box<dyn std::error::Error + Send + Sync>;

/// TLS configuration with the trusted certificates.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts the system's certificates, or only those of a PEM text.
    pub(super) fn new(roots: Option<&[u8]>) -> Result<Tls, Boxed> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?;
        let builder = match roots {
            None => builder.with_platform_verifier()?,
            Some(pem) => {
                let mut store = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    store.add(certificate?)?;
                }
                if store.is_empty() {
                    return Err("the file contains no certificate".into());
                }
                builder.with_root_certificates(store)
            }
        };
        Ok(Tls(Arc::new(builder.with_no_client_auth())))
    }
}

/// TLS for a connection, if it is enabled.
#[derive(Clone)]
pub(super) struct MaybeTls(pub(super) Option<Tls>);

/// Start of TLS on a socket.
pub(super) struct Handshake {
    tls: Option<Tls>,
    name: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for MaybeTls {
    type Stream = Secured<S>;
    type TlsConnect = Handshake;
    type Error = Boxed;

    fn make_tls_connect(&mut self, name: &str) -> Result<Handshake, Boxed> {
        Ok(Handshake {
            tls: self.0.clone(),
            name: name.to_owned(),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Secured<S>;
    type Error = Boxed;
    type Future = Pin<Box<dyn Future<Output = Result<Secured<S>, Boxed>> + Send>>;

    fn connect(self, socket: S) -> Self::Future {
        Box::pin(async move {
            let tls = self.tls.ok_or("the connection is to have no TLS")?;
            let name = ServerName::try_from(self.name)?;
            let stream = TlsConnector::from(tls.0).connect(name, socket).await?;
            Ok(Secured(Box::new(stream)))
        })
    }
}

/// A socket with TLS.
pub(super) struct Secured<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Secured<S> {
    /// No channel binding: the certificate was checked against the server's name, which rules out a man in the
    /// middle.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secured<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secured<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;

    /// Text that a client reads from a server.
    async fn read(tls: Option<Tls>, server: ServerConfig, name: &str) -> Result<String, String> {
        let (near, far) = duplex(10_000);
        let serving = async {
            let mut stream = TlsAcceptor::from(Arc::new(server)).accept(far).await?;
            stream.write_all(b"welcome").await?;
            stream.shutdown().await
        };
        let reading = async {
            let mut maker = MaybeTls(tls);
            let handshake = MakeTlsConnect::<DuplexStream>::make_tls_connect(&mut maker, name)?;
            let mut stream = handshake.connect(near).await?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await?;
            Ok(text)
        };
        let (_, read): (_, Result<String, Boxed>) = tokio::join!(serving, reading);
        read.map_err(|err| err.to_string())
    }

    /// Certificate of a server for a name, as PEM, and the server's settings.
    fn certified(name: &str) -> (String, ServerConfig) {
        let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        (certified.cert.pem(), server)
    }

    #[test]
    fn a_server_is_believed_by_its_name_and_by_who_is_trusted() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (pem, server) = certified("db.example");
        let (other, _) = certified("db.example");
        let trusting = |pem: &str| Some(Tls::new(Some(pem.as_bytes())).unwrap());
        for (tls, name, says) in [
            (trusting(&pem), "db.example", Ok("welcome")),
            (trusting(&pem), "db.example.org", Err("not valid for name")),
            (trusting(&pem), "10.0.0.1", Err("not valid for name")),
            (trusting(&other), "db.example", Err("invalid peer certificate")),
            (trusting(&pem), "", Err("invalid dns name")),
            (None, "db.example", Err("the connection is to have no TLS")),
        ] {
            let read = runtime.block_on(read(tls, server.clone(), name));
            match says {
                Ok(text) => assert_eq!(read.as_deref(), Ok(text)),
                Err(says) => assert!(
                    read.as_ref().is_err_and(|err| err.contains(says)),
                    "{name}: {read:?}"
                ),
            }
        }
        for nothing in ["", "no certificate"] {
            assert!(Tls::new(Some(nothing.as_bytes())).is_err(), "{nothing}");
        }
    }
}
