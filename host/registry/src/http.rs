//! Requests to registries: over TLS, with limits, and with redirects that carry no credentials.

use std::time::Duration;

use ureq::http::{Request, Response, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};
use url::Url;

use crate::error::RegistryError;
use crate::text::plain;

/// Time limit of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of one request with its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of redirects of one request.
const REDIRECTS_LIMIT: usize = 5;
/// Maximum bytes of an error that are shown.
const ERROR_LIMIT: u64 = 8 << 10;

/// One request.
#[derive(Clone)]
pub(crate) struct Ask<'a> {
    pub method: &'static str,
    pub url: Url,
    pub accept: &'a str,
    /// `Authorization` header, only for the host of `url`.
    pub authorization: Option<&'a str>,
    /// Content, with its media type.
    pub body: Option<(&'a str, &'a [u8])>,
}

/// Answer to a request.
pub(crate) struct Answer {
    pub url: Url,
    pub status: u16,
    response: Response<Body>,
}

/// HTTP client.
pub(crate) struct Transport {
    agent: Agent,
}

impl Transport {
    pub(crate) fn new() -> Transport {
        // Fails if the same provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let trust = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(trust.build())
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Transport { agent }
    }

    /// Sends a request. Redirects of a `GET` are followed without the credential, unless they stay on the origin.
    pub(crate) fn send(&self, ask: &Ask<'_>) -> Result<Answer, RegistryError> {
        let mut url = ask.url.clone();
        let mut authorization = ask.authorization;
        for _ in 0..=REDIRECTS_LIMIT {
            let answer = self.once(ask, &url, authorization)?;
            let target = answer.header(header::LOCATION.as_str());
            let (301 | 302 | 303 | 307 | 308, "GET", Some(target)) = (answer.status, ask.method, target)
            else {
                return Ok(answer);
            };
            let next = redirect(&url, target)?;
            if next.origin() != url.origin() {
                authorization = None;
            }
            url = next;
        }
        Err(refused(&ask.url, &url, "there are too many redirects"))
    }

    fn once(&self, ask: &Ask<'_>, url: &Url, authorization: Option<&str>) -> Result<Answer, RegistryError> {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(url.as_str())
            .header(header::ACCEPT, ask.accept);
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let sent = match ask.body {
            Some((media_type, bytes)) => {
                let request = request.header(header::CONTENT_TYPE, media_type).body(bytes);
                request
                    .map_err(ureq::Error::from)
                    .and_then(|request| self.agent.run(request))
            }
            None => {
                let request = request.body(());
                request
                    .map_err(ureq::Error::from)
                    .and_then(|request| self.agent.run(request))
            }
        };
        let response = sent.map_err(|source| unreachable(url, source))?;
        Ok(Answer {
            url: url.clone(),
            status: response.status().as_u16(),
            response,
        })
    }
}

/// Target of a redirect: it must use TLS, or be on this machine if the request was.
fn redirect(from: &Url, target: &str) -> Result<Url, RegistryError> {
    let next = from.join(target);
    let next = next.map_err(|_| RegistryError::Redirect {
        from: shown(from),
        to: plain(target),
        why: "the address is malformed",
    })?;
    if next.scheme() != "https" && !(from.scheme() == "http" && next.scheme() == "http" && is_loopback(&next))
    {
        return Err(refused(from, &next, "it is not over TLS"));
    }
    if !next.username().is_empty() || next.password().is_some() {
        return Err(refused(from, &next, "its address contains a user name"));
    }
    Ok(next)
}

fn refused(from: &Url, to: &Url, why: &'static str) -> RegistryError {
    RegistryError::Redirect {
        from: shown(from),
        to: shown(to),
        why,
    }
}

/// True if an address is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// An address without its query, because the query may contain a signature that grants access.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail only for addresses without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    plain(url.as_str())
}

fn unreachable(url: &Url, source: ureq::Error) -> RegistryError {
    RegistryError::Unreachable {
        url: shown(url),
        source: Box::new(source),
    }
}

impl Answer {
    /// Value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Values of a header that may be repeated.
    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        let values = self.response.headers().get_all(name).iter();
        values
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect()
    }

    /// Content, up to a limit. Longer content is refused before reading, if the registry reports its length.
    pub(crate) fn bytes(mut self, what: &str, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let too_large = || RegistryError::TooLarge {
            what: what.to_owned(),
            limit,
        };
        if self
            .response
            .body()
            .content_length()
            .is_some_and(|length| length > limit)
        {
            return Err(too_large());
        }
        // ureq already refuses a body whose length equals its limit.
        let read = self
            .response
            .body_mut()
            .with_config()
            .limit(limit + 1)
            .read_to_vec();
        match read {
            Ok(bytes) if bytes.len() as u64 <= limit => Ok(bytes),
            Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => Err(too_large()),
            Err(source) => Err(unreachable(&self.url, source)),
        }
    }

    /// Converts an error response to a refusal.
    pub(crate) fn refusal(self) -> RegistryError {
        let (url, status) = (shown(&self.url), self.status);
        let said = self
            .bytes("the error", ERROR_LIMIT)
            .ok()
            .and_then(|bytes| message(&bytes));
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        RegistryError::Status { url, status, said }
    }
}

/// First message of a registry's error.
fn message(bytes: &[u8]) -> Option<String> {
    let whole: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let first = whole.get("errors")?.get(0)?;
    let text = |key: &str| first.get(key).and_then(serde_json::Value::as_str);
    text("message").or(text("code")).map(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_tls() {
        let https: Url = "https://registry.example/v2/x".parse().unwrap();
        let local: Url = "http://127.0.0.1:5000/v2/x".parse().unwrap();
        assert!(redirect(&https, "https://cdn.example/blob?sig=1").is_ok());
        assert!(redirect(&https, "/v2/y").is_ok());
        assert!(redirect(&local, "http://localhost:6000/x").is_ok());
        for (from, to) in [
            (&https, "http://registry.example/v2/x"),
            (&https, "http://127.0.0.1/x"),
            (&https, "file:///etc/passwd"),
            (&https, "https://user:secret@cdn.example/"),
            (&local, "http://registry.example/x"),
            (&https, "//"),
        ] {
            assert!(redirect(from, to).is_err(), "{from} {to}");
        }
    }
}
