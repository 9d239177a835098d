//! A registry on this machine, over plain HTTP, that can be told to lie.
#![allow(dead_code, unreachable_pub, reason = "several tests use it, each its part")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use tollgate_registry::{Digest, Reference};

/// Status, headers and content.
type Reply = (u16, String, Vec<u8>);

/// Content by path, with its media type.
type Content = BTreeMap<String, (String, Vec<u8>)>;

/// A registry on this machine, over plain HTTP.
#[derive(Clone)]
pub struct Registry {
    pub host: String,
    pub content: Arc<Mutex<Content>>,
    /// Answers that replace the registry's, by path: status, headers and content.
    lies: Arc<Mutex<BTreeMap<String, Reply>>>,
    /// True once it answers nothing.
    is_gone: Arc<Mutex<bool>>,
    /// `Authorization` headers that came.
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    /// Starts a registry that lives as long as the process.
    pub fn start() -> Registry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let registry = Registry {
            host: format!("127.0.0.1:{}", listener.local_addr().unwrap().port()),
            content: Arc::default(),
            lies: Arc::default(),
            is_gone: Arc::default(),
            seen: Arc::default(),
        };
        let served = registry.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                served.answer(stream);
            }
        });
        registry
    }

    /// A reference to something in it.
    pub fn reference(&self, rest: &str) -> Reference {
        format!("oci://{}/{rest}", self.host).parse().unwrap()
    }

    /// Replaces the answers for a path.
    pub fn lie(&self, path: &str, status: u16, headers: &str, body: &[u8]) {
        self.lies
            .lock()
            .unwrap()
            .insert(path.to_owned(), (status, headers.to_owned(), body.to_vec()));
    }

    /// Ends all lies.
    pub fn honest_again(&self) {
        self.lies.lock().unwrap().clear();
    }

    /// Answers nothing any more.
    pub fn stop(&self) {
        *self.is_gone.lock().unwrap() = true;
    }

    /// Reads one request and answers it. Connections are not kept.
    fn answer(&self, stream: TcpStream) {
        if *self.is_gone.lock().unwrap() {
            return;
        }
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let header = |name: &str| {
            let found = head.iter().skip(1).filter_map(|line| line.split_once(": "));
            found
                .clone()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_owned())
        };
        let length = header("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        self.seen.lock().unwrap().extend(header("authorization"));
        let Some((method, rest)) = head.first().and_then(|line| line.split_once(' ')) else {
            return;
        };
        let target = rest.split(' ').next().unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (status, headers, body) = match self.lies.lock().unwrap().get(path) {
            Some(lie) => lie.clone(),
            None => self.honest(method, path, query, header("content-type"), body),
        };
        let mut stream = stream;
        let length = if headers.contains("content-length") {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let _ = write!(
            stream,
            "HTTP/1.1 {status} X\r\n{headers}{length}connection: close\r\n\r\n"
        );
        if method != "HEAD" {
            let _ = stream.write_all(&body);
        }
    }

    fn honest(
        &self,
        method: &str,
        path: &str,
        query: &str,
        kind: Option<String>,
        body: Vec<u8>,
    ) -> (u16, String, Vec<u8>) {
        let mut content = self.content.lock().unwrap();
        let kind = kind.unwrap_or_default();
        match method {
            "POST" => (202, format!("location: {path}1?state=x\r\n"), Vec::new()),
            "PUT" if path.contains("/manifests/") => {
                let digest = Digest::of(&body).to_string();
                let (repository, _) = path.rsplit_once('/').unwrap();
                content.insert(format!("{repository}/{digest}"), (kind.clone(), body.clone()));
                content.insert(path.to_owned(), (kind, body));
                (201, String::new(), Vec::new())
            }
            "PUT" => {
                let digest = query.rsplit_once("digest=").unwrap().1.replace("%3A", ":");
                let (blobs, _) = path.split_once("uploads/").unwrap();
                content.insert(format!("{blobs}{digest}"), (kind, body));
                (201, String::new(), Vec::new())
            }
            _ if path.ends_with("/tags/list") => {
                let manifests = path.replace("tags/list", "manifests/");
                let tags = content.keys().filter_map(|path| path.strip_prefix(&manifests));
                let tags: Vec<&str> = tags.filter(|tag| !tag.contains(':')).collect();
                (
                    200,
                    String::new(),
                    serde_json::json!({ "tags": tags }).to_string().into_bytes(),
                )
            }
            _ => match content.get(path) {
                Some((kind, body)) => (200, format!("content-type: {kind}\r\n"), body.clone()),
                None => (404, String::new(), Vec::new()),
            },
        }
    }
}
