//! Checks of the Host and Origin headers: the names under which requests are answered, whatever their path, and the web
//! pages that may send requests. They prevent DNS rebinding, in which another web page uses this server under a name
//! that resolves to it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use tollgate_sdk::ToolError;

use super::answer;
use super::seats::Seat;

/// Longest part of a host or an origin that a refusal shows, in bytes.
const MAX_SHOWN: usize = 255;

/// Allowed hosts and origins.
#[derive(Debug)]
pub(super) struct Hosts {
    names: Vec<Named>,
    origins: Vec<Origin>,
}

/// A host, with its port if given.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// IP address, in any notation.
    Address(IpAddr),
    /// Name in lower case.
    Name(String),
}

/// Origin of a web page. Without a port, any port matches.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    scheme: String,
    at: Named,
}

/// Reason why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// There is not exactly one readable host.
    Unclear,
    /// The request names an unknown host.
    Host,
    /// The request comes from a page with an unknown origin.
    Origin,
}

impl Hosts {
    /// Parses hosts and origins as the operator writes them.
    pub(super) fn new(hosts: &[String], origins: &[String]) -> Hosts {
        Hosts {
            names: hosts.iter().filter_map(|host| Named::allowed(host)).collect(),
            origins: origins
                .iter()
                .filter_map(|origin| Origin::parse(origin.trim()))
                .collect(),
        }
    }

    /// Checks a request. `local` is the address that the connection arrived at, which DNS rebinding cannot forge.
    fn check(&self, uri: &Uri, headers: &HeaderMap, local: Option<IpAddr>) -> Result<(), Refused> {
        let mut values = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (values.next(), values.next()) else {
            return Err(Refused::Unclear);
        };
        let host = host
            .to_str()
            .ok()
            .and_then(Named::parse)
            .ok_or(Refused::Unclear)?;
        // A request may name its host twice, and software behind this check would read only one of them.
        let target = match uri.authority() {
            None => None,
            Some(target) => Some(Named::parse(target.as_str()).ok_or(Refused::Unclear)?),
        };
        if !std::iter::once(&host)
            .chain(&target)
            .all(|named| self.has(named, local))
        {
            return Err(Refused::Host);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None) => {
                let origin = origin.to_str().ok().and_then(Origin::parse);
                let is_known =
                    origin.is_some_and(|origin| self.origins.iter().any(|known| known.allows(&origin)));
                is_known.then_some(()).ok_or(Refused::Origin)
            }
            _ => Err(Refused::Origin),
        }
    }

    fn has(&self, named: &Named, local: Option<IpAddr>) -> bool {
        let is_local = matches!(named.host, Host::Address(address) if Some(address) == local);
        is_local || self.names.iter().any(|known| known.allows(named))
    }
}

impl Named {
    /// Parses `HOST` or `HOST:PORT`.
    fn parse(text: &str) -> Option<Named> {
        let authority: Authority = text.parse().ok().filter(|_| !text.contains('@'))?;
        let host = authority.host();
        let port = text.strip_prefix(host)?;
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            _ => return None,
        };
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        Some(Named {
            host: match bracketed {
                Some(address) => Host::Address(IpAddr::V6(address.parse().ok()?)),
                None if host.is_empty() => return None,
                None => Host::of(host),
            },
            port,
        })
    }

    /// Parses a host that an operator allows. IPv6 addresses may have brackets.
    fn allowed(text: &str) -> Option<Named> {
        let text = text.trim();
        match text.parse() {
            Ok(address) => Some(Named {
                host: Host::Address(address),
                port: None,
            }),
            Err(_) => Named::parse(text),
        }
    }

    fn allows(&self, other: &Named) -> bool {
        self.host == other.host && self.port.is_none_or(|port| other.port == Some(port))
    }
}

impl Host {
    fn of(text: &str) -> Host {
        match text.parse() {
            Ok(address) => Host::Address(address),
            Err(_) => Host::Name(text.to_ascii_lowercase()),
        }
    }
}

impl Origin {
    /// Parses `SCHEME://HOST[:PORT]`. The port of an allowed origin may be `*`.
    fn parse(text: &str) -> Option<Origin> {
        let (scheme, at) = text.split_once("://")?;
        let at = at.strip_suffix(":*").unwrap_or(at);
        Some(Origin {
            scheme: scheme.to_ascii_lowercase(),
            at: Named::parse(at)?,
        })
    }

    fn allows(&self, other: &Origin) -> bool {
        let port = match (other.at.port, other.scheme.as_str()) {
            // Browsers omit the default port.
            (None, "http") => Some(80),
            (None, "https") => Some(443),
            (port, _) => port,
        };
        let other_at = Named {
            host: other.at.host.clone(),
            port,
        };
        self.scheme == other.scheme && self.at.allows(&other_at)
    }
}

/// Passes on a request that names a host of this server, and refuses any other.
pub(super) async fn check(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let local = request.extensions().get::<Arc<Seat>>().map(|seat| seat.local);
    match hosts.check(request.uri(), request.headers(), local) {
        Ok(()) => next.run(request).await,
        Err(refused) => refusal(refused, request.headers()),
    }
}

fn refusal(refused: Refused, headers: &HeaderMap) -> Response {
    let said = |name| {
        let said = headers
            .get(name)
            .and_then(|said| said.to_str().ok())
            .unwrap_or_default();
        tollgate_core::text::clean(tollgate_core::text::cut(said, MAX_SHOWN))
    };
    let (status, code, message, remediation) = match refused {
        Refused::Unclear => (
            StatusCode::BAD_REQUEST,
            "HOST_UNCLEAR",
            "the request does not name exactly one host",
            "Send one Host header: HOST or HOST:PORT.".to_owned(),
        ),
        Refused::Host => (
            StatusCode::FORBIDDEN,
            "HOST_NOT_ALLOWED",
            "the request names a host that this server does not answer for",
            format!(
                "Use localhost, the server's own address, or a name that the configuration allows: server.allowed_hosts = [{:?}]",
                name_of(&said(header::HOST))
            ),
        ),
        Refused::Origin => (
            StatusCode::FORBIDDEN,
            "ORIGIN_NOT_ALLOWED",
            "a web page of another origin sent the request",
            format!(
                "Use a page of this machine, or one that the configuration allows: server.allowed_origins = [{:?}]",
                said(header::ORIGIN)
            ),
        ),
    };
    tracing::debug!(code, "a request was refused");
    answer::refusal(status, &ToolError::new(code, message).remediation(remediation))
}

/// Host in the form that the configuration uses, which applies to any port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        let own = [
            "localhost",
            "127.0.0.1",
            "::1",
            "tollgate.example",
            "with.example:8443",
        ];
        let origins = [
            "http://localhost:8765",
            "https://app.example:443",
            "https://any.example:*",
            "http://[::1]:1",
        ];
        Hosts::new(&own.map(str::to_owned), &origins.map(str::to_owned))
    }

    fn check(uri: &str, headers: &[(&str, &str)]) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        hosts().check(&uri.parse().unwrap(), &map, Some("10.0.0.5".parse().unwrap()))
    }

    #[test]
    fn a_request_names_one_host_that_is_known() {
        for host in [
            "localhost",
            "LOCALHOST:8765",
            "127.0.0.1:1",
            "[::1]:8765",
            "[0:0:0:0:0:0:0:1]",
            "tollgate.example",
            "Tollgate.Example:443",
            "with.example:8443",
            "10.0.0.5:8765",
        ] {
            assert_eq!(check("/x", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "evil.example:8765",
            "localhost.",
            "with.example",
            "10.0.0.6",
            "127.0.0.1.evil.example",
            "[::2]",
            "[::ffff:127.0.0.1]",
            "127.1",
            "2130706433",
            "0.0.0.0",
        ] {
            assert_eq!(check("/x", &[("host", host)]), Err(Refused::Host), "{host}");
        }
        for host in [
            "",
            "localhost@evil.example",
            "evil.example@localhost",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "localhost/x",
            "http://localhost",
            "localhost evil.example",
            "localhost,evil.example",
            "[::1",
            "::1",
            "[evil]",
        ] {
            let checked = check("/x", &[("host", host)]);
            assert!(checked.is_err(), "{host}: {checked:?}");
        }
        assert_eq!(check("/x", &[]), Err(Refused::Unclear));
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(check("/x", &twice), Err(Refused::Unclear));
    }

    #[tokio::test]
    async fn a_refusal_names_the_key_and_the_value_that_allow_it() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "tollgate:8765".parse().unwrap());
        headers.insert(header::ORIGIN, "https://app.example".parse().unwrap());
        for (refused, key) in [
            (Refused::Host, "server.allowed_hosts = [\\\"tollgate\\\"]"),
            (
                Refused::Origin,
                "server.allowed_origins = [\\\"https://app.example\\\"]",
            ),
        ] {
            let body = refusal(refused, &headers).into_body();
            let body = axum::body::to_bytes(body, 1 << 16).await.unwrap();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert!(body.contains("jsonrpc") && body.contains(key), "{body}");
        }
        assert_eq!(name_of("[::1]:8765"), "[::1]");
        assert_eq!(name_of("tollgate"), "tollgate");
    }

    #[test]
    fn the_target_counts_like_the_host() {
        let host = [("host", "localhost")];
        assert_eq!(check("http://localhost:1/x", &host), Ok(()));
        assert_eq!(check("http://evil.example/x", &host), Err(Refused::Host));
        assert_eq!(check("http://u@localhost/x", &host), Err(Refused::Unclear));
        assert_eq!(check("evil.example:443", &host), Err(Refused::Host));
        assert_eq!(
            check("http://localhost/x", &[("host", "evil.example")]),
            Err(Refused::Host)
        );
    }

    #[test]
    fn pages_come_from_known_origins() {
        let check = |origin: &str| check("/x", &[("host", "localhost"), ("origin", origin)]);
        for origin in [
            "http://localhost:8765",
            "HTTP://LOCALHOST:8765",
            "https://app.example",
            "https://any.example:7",
            "http://[::1]:1",
        ] {
            assert_eq!(check(origin), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:8766",
            "https://localhost:8765",
            "http://evil.example",
            "https://app.example:444",
            "https://app.example.evil.example",
            "https://u@app.example",
            "file://",
            "localhost:8765",
        ] {
            assert_eq!(check(origin), Err(Refused::Origin), "{origin}");
        }
        let twice = [
            ("host", "localhost"),
            ("origin", "https://app.example"),
            ("origin", "https://app.example"),
        ];
        assert_eq!(
            Hosts::check(
                &hosts(),
                &"/x".parse().unwrap(),
                &{
                    let mut map = HeaderMap::new();
                    for (name, value) in twice {
                        map.append(name, value.parse().unwrap());
                    }
                    map
                },
                None
            ),
            Err(Refused::Origin)
        );
    }
}
