//! Registry tokens: parsing the challenge, and requesting a token from the token service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use url::Url;

use crate::credentials::{HostSettings, Login};
use crate::error::RegistryError;
use crate::http::{Ask, Transport, is_loopback};
use crate::manifest::malformed;
use crate::text::plain;

/// Maximum bytes of a token service's answer.
const TOKEN_LIMIT: u64 = 64 << 10;
/// Registries whose token service is known to be on another host.
const TOKEN_HOSTS: &[(&str, &str)] = &[
    ("registry-1.docker.io", "auth.docker.io"),
    ("registry.gitlab.com", "gitlab.com"),
];

/// Authentication challenge of a registry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// Credentials with each request.
    Basic,
    /// A token from a token service.
    Bearer { realm: String, service: Option<String> },
}

impl Challenge {
    /// First supported challenge.
    pub(crate) fn read(headers: &[String]) -> Option<Challenge> {
        headers.iter().find_map(|header| {
            let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
            if scheme.eq_ignore_ascii_case("basic") {
                return Some(Challenge::Basic);
            }
            if !scheme.eq_ignore_ascii_case("bearer") {
                return None;
            }
            let parameters = parameters(rest);
            let find = |name: &str| {
                let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.clone())
            };
            Some(Challenge::Bearer {
                realm: find("realm")?,
                service: find("service"),
            })
        })
    }
}

/// Parses `key="value", …`, with commas allowed inside quotes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches([' ', ',']);
    while let Some((key, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((key.trim().to_owned(), value.trim().to_owned()));
        rest = after.trim_start_matches([' ', ',']);
    }
    found
}

/// `Authorization` header of a login.
pub(crate) fn basic(login: &Login) -> String {
    format!(
        "Basic {}",
        STANDARD.encode(format!("{}:{}", login.user, login.secret))
    )
}

/// Gets the `Authorization` header that answers a challenge.
pub(crate) fn answer(
    transport: &Transport,
    registry: &Url,
    challenge: Challenge,
    scope: &str,
    login: Option<&Login>,
    settings: &HostSettings,
) -> Result<Option<String>, RegistryError> {
    let (realm, service) = match challenge {
        Challenge::Basic => return Ok(login.map(basic)),
        Challenge::Bearer { realm, service } => (realm, service),
    };
    let url = token_url(
        registry,
        &realm,
        service.as_deref(),
        scope,
        login.is_some(),
        settings,
    )?;
    let authorization = login.map(basic);
    let ask = Ask {
        method: "GET",
        url,
        accept: "application/json",
        authorization: authorization.as_deref(),
        body: None,
    };
    let answer = transport.send(&ask)?;
    match answer.status {
        200 => {}
        401 | 403 => return Ok(None),
        _ => return Err(answer.refusal()),
    }
    #[derive(Deserialize)]
    struct Token {
        token: Option<String>,
        access_token: Option<String>,
    }
    let what = format!("the token of {}", plain(&realm));
    let bytes = answer.bytes(&what, TOKEN_LIMIT)?;
    let token: Token = serde_json::from_slice(&bytes).map_err(|err| malformed(&what, err.to_string()))?;
    let token = token.token.or(token.access_token);
    let token = token.filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
    token
        .map(|token| Some(format!("Bearer {token}")))
        .ok_or_else(|| malformed(&what, "it contains no token".to_owned()))
}

/// Address of the token service. Credentials are sent only to the registry's own host, or to a host that is configured
/// or known.
fn token_url(
    registry: &Url,
    realm: &str,
    service: Option<&str>,
    scope: &str,
    has_login: bool,
    settings: &HostSettings,
) -> Result<Url, RegistryError> {
    let what = "the address of the token service";
    let mut url: Url = realm
        .parse()
        .map_err(|_| malformed(what, format!("{} is not a URL", plain(realm))))?;
    let is_local = url.scheme() == "http" && registry.scheme() == "http" && is_loopback(&url);
    if url.scheme() != "https" && !is_local {
        return Err(malformed(what, format!("{} does not use TLS", plain(realm))));
    }
    let host = |url: &Url| match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let (own, other) = (host(registry), host(&url));
    let is_known = TOKEN_HOSTS.contains(&(own.as_str(), other.as_str()));
    let is_configured = settings.token_host.as_deref() == Some(other.as_str());
    if has_login && own != other && !is_known && !is_configured {
        return Err(RegistryError::TokenHost {
            host: own,
            realm: other,
        });
    }
    {
        let mut query = url.query_pairs_mut();
        if let Some(service) = service {
            query.append_pair("service", service);
        }
        query.append_pair("scope", scope);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let header = r#"Bearer realm="https://auth.example/token",service="a,b",scope="repository:x:pull""#;
        assert_eq!(
            Challenge::read(&["Negotiate".to_owned(), header.to_owned()]),
            Some(Challenge::Bearer {
                realm: "https://auth.example/token".to_owned(),
                service: Some("a,b".to_owned())
            })
        );
        assert_eq!(
            Challenge::read(&["Basic realm=x".to_owned()]),
            Some(Challenge::Basic)
        );
        assert_eq!(Challenge::read(&["Bearer".to_owned()]), None);
        assert_eq!(Challenge::read(&["Bearer realm".to_owned()]), None);
    }

    #[test]
    fn credentials_leave_for_no_other_host() {
        let registry: Url = "https://registry.example/v2/".parse().unwrap();
        let none = HostSettings::default();
        let of = |realm: &str, has_login, settings: &HostSettings| {
            token_url(&registry, realm, None, "repository:x:pull", has_login, settings)
        };
        assert!(of("https://registry.example/token", true, &none).is_ok());
        assert!(of("https://evil.example/token", false, &none).is_ok());
        for realm in [
            "https://evil.example/token",
            "https://registry.example:444/token",
            "https://registry.example.evil/",
        ] {
            assert!(
                matches!(of(realm, true, &none), Err(RegistryError::TokenHost { .. })),
                "{realm}"
            );
        }
        assert!(of("http://registry.example/token", false, &none).is_err());
        let settings = HostSettings {
            token_host: Some("auth.example".to_owned()),
            ..none
        };
        assert!(of("https://auth.example/token", true, &settings).is_ok());
        assert!(of("https://evil.example/token", true, &settings).is_err());
    }
}
