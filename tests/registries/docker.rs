//! Debian's `docker-registry` on a free port of this machine, over TLS, for one user with a password.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tollgate_registry::Digest;
use ureq::Agent;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// User of the registry, and the password.
pub(crate) const USER: &str = "ada";
pub(crate) const PASSWORD: &str = "correct horse";
/// The same as the registry reads it. The registry takes no other hash than bcrypt's.
const HTPASSWD: &str = "ada:$2y$05$Gd19ECJLYxdLXtF9FFrtgOecBs3eDlJ/Y/TeoJxpTx2EtOJ93KW4O\n";

/// A registry that ends with the test.
pub(crate) struct Docker {
    /// Name and port.
    pub(crate) host: String,
    child: Child,
    place: TempDir,
}

impl Docker {
    /// Starts a registry with a certificate of a CA that nobody else knows.
    pub(crate) fn start() -> Docker {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        certify(&at("ca.pem"), &at("certificate.pem"), &at("key.pem"));
        std::fs::write(at("htpasswd"), HTPASSWD).unwrap();
        let config = serde_json::json!({
            "version": "0.1",
            "log": { "accesslog": { "disabled": true } },
            "storage": { "filesystem": { "rootdirectory": at("storage") } },
            "http": {
                "addr": "127.0.0.1:0",
                "secret": "of a test",
                "tls": { "certificate": at("certificate.pem"), "key": at("key.pem") },
            },
            "auth": { "htpasswd": { "realm": "tests", "path": at("htpasswd") } },
        });
        // JSON is YAML.
        std::fs::write(at("config.yml"), config.to_string()).unwrap();
        let program =
            std::env::var_os("DOCKER_REGISTRY").map_or_else(|| "docker-registry".into(), PathBuf::from);
        let child = Command::new(&program)
            .arg("serve")
            .arg(at("config.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap_or_else(|err| {
            let program = program.display();
            panic!("{program} cannot be started ({err}); run `cargo xtask registries`");
        });
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let port = loop {
            let line = log
                .next()
                .unwrap_or_else(|| panic!("the registry ended: {said:#?}"));
            let line = line.unwrap();
            if let Some((_, rest)) = line.split_once("listening on 127.0.0.1:") {
                break rest.chars().take_while(char::is_ascii_digit).collect::<String>();
            }
            said.push(line);
        };
        // A registry whose log nobody reads would stall.
        std::thread::spawn(move || log.for_each(drop));
        Docker {
            host: format!("localhost:{port}"),
            child,
            place,
        }
    }

    /// File of the CA that clients must trust.
    pub(crate) fn ca(&self) -> PathBuf {
        self.place.path().join("ca.pem")
    }

    /// Status of an answer to a plain request, and its body.
    pub(crate) fn get(&self, path: &str, accept: &str) -> (u16, Vec<u8>) {
        self.send("GET", &self.url(path), ("accept", accept), b"")
    }

    /// Stores content as every client of a registry does, in one piece.
    pub(crate) fn put_blob(&self, repository: &str, bytes: &[u8]) {
        let octets = ("content-type", "application/octet-stream");
        let start = self.url(&format!("{repository}/blobs/uploads/"));
        let response = self.ask("POST", &start, octets, b"");
        let upload = response.headers()["location"].to_str().unwrap().to_owned();
        let upload = format!("{upload}&digest={}", Digest::of(bytes));
        assert_eq!(self.send("PUT", &upload, octets, bytes).0, 201);
    }

    /// Stores a manifest, or a list of manifests, under a tag or a digest.
    pub(crate) fn put_manifest(&self, path: &str, media_type: &str, bytes: &[u8]) {
        let (status, said) = self.send("PUT", &self.url(path), ("content-type", media_type), bytes);
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&said));
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}/v2/{path}", self.host)
    }

    fn send(&self, method: &str, url: &str, header: (&str, &str), body: &[u8]) -> (u16, Vec<u8>) {
        let mut response = self.ask(method, url, header, body);
        let bytes = response.body_mut().read_to_vec().unwrap();
        (response.status().as_u16(), bytes)
    }

    fn ask(
        &self,
        method: &str,
        url: &str,
        (name, value): (&str, &str),
        body: &[u8],
    ) -> ureq::http::Response<ureq::Body> {
        // Fails if the process has it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = Certificate::from_pem(&std::fs::read(self.ca()).unwrap()).unwrap();
        let roots = RootCerts::Specific(Arc::new(vec![ca]));
        let agent: Agent = Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build()
            .new_agent();
        let login = STANDARD.encode(format!("{USER}:{PASSWORD}"));
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(name, value)
            .header("authorization", format!("Basic {login}"));
        match method {
            "GET" => agent.run(request.body(()).unwrap()).unwrap(),
            _ => agent.run(request.body(body).unwrap()).unwrap(),
        }
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a CA, and a certificate of it for this machine.
fn certify(ca: &Path, certificate: &Path, key: &Path) {
    let ca_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(ca, params.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, ca_key);
    let own_key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let own = own.signed_by(&own_key, &issuer).unwrap();
    std::fs::write(certificate, own.pem()).unwrap();
    std::fs::write(key, own_key.serialize_pem()).unwrap();
}
