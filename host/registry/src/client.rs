//! Pulling: manifests by tag or digest, components, lists of tags, and manifests that refer to another.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use url::Url;

use crate::annotations::Said;
use crate::auth::{self, Challenge};
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::RegistryError;
use crate::http::{Answer, Ask, Transport, is_loopback};
use crate::manifest::{Descriptor, INDEX, Index, MANIFEST_LIMIT, Manifest, malformed};
use crate::reference::Reference;
use crate::text::plain;

/// Docker Hub: the name that people use, and the name of its server.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");
/// Accepted media types of a manifest.
const ACCEPTED_MEDIA_TYPES: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";
/// Number of tags on one page of a list.
const PAGE_TAGS: usize = 1000;
/// Maximum number of pages of a list.
const PAGES_LIMIT: usize = 10;

/// Access that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading.
    Pull,
    /// Reading and writing.
    Push,
}

impl Access {
    const fn actions(self) -> &'static str {
        match self {
            Access::Pull => "pull",
            Access::Push => "pull,push",
        }
    }
}

/// A pulled manifest, with the digest of its bytes.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// Reference, pinned to the digest.
    pub reference: Reference,
    /// Digest of the manifest.
    pub digest: Digest,
    /// Bytes of the manifest.
    pub bytes: Vec<u8>,
    /// Manifest.
    pub manifest: Manifest,
}

impl Pulled {
    /// The component among the layers.
    pub fn component(&self) -> Result<&Descriptor, RegistryError> {
        self.manifest.component(&self.reference.to_string())
    }

    /// Annotations of its publisher.
    pub fn said(&self) -> Said {
        Said::of(&self.manifest.annotations)
    }
}

/// Client of registries.
pub struct Client {
    transport: Transport,
    credentials: Credentials,
    /// `Authorization` headers by origin, repository and access.
    tokens: Mutex<BTreeMap<String, String>>,
}

impl Client {
    /// Creates a client with these credentials.
    pub fn new(credentials: Credentials) -> Client {
        Client {
            transport: Transport::new(),
            credentials,
            tokens: Mutex::default(),
        }
    }

    /// Resolves a reference to a manifest. A pinned manifest must have the digest, whatever its tag points to now.
    pub fn resolve(&self, reference: &Reference) -> Result<Pulled, RegistryError> {
        let what = reference.to_string();
        let url = self.url(reference, &format!("manifests/{}", reference.manifest()))?;
        let answer = self.get(reference, url, ACCEPTED_MEDIA_TYPES)?;
        let answer = found(answer, &what, reference)?;
        let bytes = answer.bytes(&format!("the manifest of {what}"), MANIFEST_LIMIT)?;
        if let Some(digest) = reference.digest() {
            digest.check(&what, &bytes)?;
        }
        let digest = Digest::of(&bytes);
        let manifest = Manifest::parse(&what, &bytes)?;
        Ok(Pulled {
            reference: reference.pinned(&digest),
            digest,
            bytes,
            manifest,
        })
    }

    /// Downloads a component. Its bytes must have the size and the digest in the manifest.
    pub fn component(&self, pulled: &Pulled, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let layer = pulled.component()?;
        self.blob(&pulled.reference, layer, limit)
    }

    pub(crate) fn blob(
        &self,
        reference: &Reference,
        layer: &Descriptor,
        limit: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let digest = layer.digest()?;
        let what = format!("{}, layer {digest}", reference.repository());
        if layer.size > limit {
            return Err(RegistryError::TooLarge { what, limit });
        }
        let url = self.url(reference, &format!("blobs/{digest}"))?;
        let answer = found(self.get(reference, url, "*/*")?, &what, reference)?;
        let bytes = answer.bytes(&what, layer.size)?;
        if bytes.len() as u64 != layer.size {
            let why = format!(
                "it has {} bytes, but its manifest says {}",
                bytes.len(),
                layer.size
            );
            return Err(malformed(&what, why));
        }
        digest.check(&what, &bytes)?;
        Ok(bytes)
    }

    /// Tags of a repository.
    pub fn tags(&self, reference: &Reference) -> Result<Vec<String>, RegistryError> {
        #[derive(Deserialize)]
        struct Tags {
            tags: Option<Vec<String>>,
        }
        let what = format!("the list of tags of {}", reference.repository());
        let mut url = self.url(reference, "tags/list")?;
        url.set_query(Some(&format!("n={PAGE_TAGS}")));
        let mut tags = Vec::new();
        for _ in 0..PAGES_LIMIT {
            let answer = found(
                self.get(reference, url.clone(), "application/json")?,
                &what,
                reference,
            )?;
            let next = answer.header("link").and_then(|link| next_page(&url, link));
            let bytes = answer.bytes(&what, MANIFEST_LIMIT)?;
            let page: Tags =
                serde_json::from_slice(&bytes).map_err(|err| malformed(&what, err.to_string()))?;
            tags.extend(page.tags.unwrap_or_default());
            match next {
                Some(next) => url = next,
                None => return Ok(tags),
            }
        }
        Ok(tags)
    }

    /// A manifest in the same repository, if there is one.
    pub(crate) fn beside(&self, reference: &Reference) -> Result<Option<Pulled>, RegistryError> {
        match self.resolve(reference) {
            Ok(pulled) => Ok(Some(pulled)),
            Err(RegistryError::Missing { .. }) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Descriptors of manifests that refer to another one, from the referrers API or from the fallback tag.
    pub(crate) fn referrers(
        &self,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<Vec<Descriptor>, RegistryError> {
        let what = format!("the list of signatures of {reference}");
        let places = [
            format!("referrers/{digest}"),
            format!("manifests/sha256-{}", digest.hex()),
        ];
        for place in places {
            let answer = self.get(reference, self.url(reference, &place)?, INDEX)?;
            match answer.status {
                200 => {}
                // Registries without the API answer with one of these.
                400 | 404 | 405 => continue,
                _ => {
                    return Err(found(answer, &what, reference)
                        .err()
                        .unwrap_or_else(|| malformed(&what, place)));
                }
            }
            let bytes = answer.bytes(&what, MANIFEST_LIMIT)?;
            let index: Index =
                serde_json::from_slice(&bytes).map_err(|err| malformed(&what, err.to_string()))?;
            return Ok(index.manifests);
        }
        Ok(Vec::new())
    }

    /// Address of a resource in a repository.
    pub(crate) fn url(&self, reference: &Reference, rest: &str) -> Result<Url, RegistryError> {
        let host = host(reference);
        let is_plain = self.credentials.settings(host).plain_http;
        let scheme = if is_plain { "http" } else { "https" };
        let text = format!("{scheme}://{host}/v2/{}/{rest}", reference.name());
        let url: Url = text.parse().map_err(|_| malformed("the address", plain(&text)))?;
        if is_plain && !is_loopback(&url) {
            return Err(RegistryError::PlainHttp {
                host: host.to_owned(),
            });
        }
        Ok(url)
    }

    fn get(&self, reference: &Reference, url: Url, accept: &str) -> Result<Answer, RegistryError> {
        let ask = Ask {
            method: "GET",
            url,
            accept,
            authorization: None,
            body: None,
        };
        self.send(reference, Access::Pull, ask)
    }

    /// Sends a request to the registry of a reference, and answers its challenge once.
    pub(crate) fn send(
        &self,
        reference: &Reference,
        access: Access,
        ask: Ask<'_>,
    ) -> Result<Answer, RegistryError> {
        let key = format!(
            "{} {} {}",
            ask.url.origin().ascii_serialization(),
            reference.name(),
            access.actions()
        );
        let known = self
            .tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        let answer = self.transport.send(&Ask {
            authorization: known.as_deref(),
            ..ask.clone()
        })?;
        if answer.status != 401 {
            return Ok(answer);
        }
        let host = host(reference);
        // A challenge from the target of a redirect is not the registry's.
        let challenge = Challenge::read(&answer.headers("www-authenticate"));
        let challenge = challenge.filter(|_| answer.url.origin() == ask.url.origin());
        let login = self.credentials.find(host)?;
        let with = match &login {
            Some(login) => format!("as {}, from {}", plain(&login.user), login.origin),
            None => "without credentials".to_owned(),
        };
        let denied = || RegistryError::Denied {
            host: host.to_owned(),
            what: reference.to_string(),
            with,
        };
        let Some(challenge) = challenge else {
            return Err(denied());
        };
        let scope = format!("repository:{}:{}", reference.name(), access.actions());
        let settings = self.credentials.settings(host);
        let token = auth::answer(
            &self.transport,
            &ask.url,
            challenge,
            &scope,
            login.as_ref(),
            &settings,
        )?;
        let Some(token) = token else {
            return Err(denied());
        };
        let answer = self.transport.send(&Ask {
            authorization: Some(&token),
            ..ask
        })?;
        if matches!(answer.status, 401 | 403) {
            return Err(denied());
        }
        self.tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, token);
        Ok(answer)
    }
}

/// Host to ask.
fn host(reference: &Reference) -> &str {
    match reference.host() {
        host if host == DOCKER_HUB.0 => DOCKER_HUB.1,
        host => host,
    }
}

/// Returns a successful answer. Any other answer is a refusal.
pub(crate) fn found(answer: Answer, what: &str, reference: &Reference) -> Result<Answer, RegistryError> {
    match answer.status {
        200 => Ok(answer),
        404 => Err(RegistryError::Missing {
            what: what.to_owned(),
            host: reference.host().to_owned(),
        }),
        403 => Err(RegistryError::Denied {
            host: reference.host().to_owned(),
            what: what.to_owned(),
            with: "with these credentials".to_owned(),
        }),
        _ => Err(answer.refusal()),
    }
}

/// Address of the next page, if it is on the same origin.
fn next_page(from: &Url, link: &str) -> Option<Url> {
    let (target, relation) = link.strip_prefix('<')?.split_once('>')?;
    let next = from.join(target).ok()?;
    let is_next = relation.contains("rel=\"next\"") || relation.contains("rel=next");
    (is_next && next.origin() == from.origin()).then_some(next)
}

/// Tags that are later versions than a tag, latest first. Pre-releases are left out, unless the tag is one itself.
pub fn versions_after(tag: &str, tags: &[String]) -> Vec<String> {
    let version = |tag: &str| {
        let text = tag.strip_prefix('v').unwrap_or(tag).replace('_', "+");
        semver::Version::parse(&text).ok()
    };
    let Some(now) = version(tag) else {
        return Vec::new();
    };
    let later = tags.iter().filter_map(|tag| Some((version(tag)?, tag)));
    let mut later: Vec<_> = later
        .filter(|(other, _)| *other > now && (other.pre.is_empty() || !now.pre.is_empty()))
        .collect();
    later.sort_by(|(one, _), (other, _)| other.cmp(one));
    later.into_iter().map(|(_, tag)| tag.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_versions_come_first() {
        let tags = [
            "1.0.0",
            "1.10.0",
            "1.9.0",
            "v2.0.0",
            "2.1.0-rc.1",
            "latest",
            "0.9.0",
            "sha256-ab.sig",
        ];
        let tags = tags.map(str::to_owned);
        assert_eq!(versions_after("1.0.0", &tags), ["v2.0.0", "1.10.0", "1.9.0"]);
        assert_eq!(versions_after("2.1.0-beta.1", &tags), ["2.1.0-rc.1"]);
        assert!(versions_after("latest", &tags).is_empty());
    }

    #[test]
    fn pages_stay_on_their_origin() {
        let from: Url = "https://registry.example/v2/x/tags/list?n=2".parse().unwrap();
        assert!(next_page(&from, "</v2/x/tags/list?n=2&last=b>; rel=\"next\"").is_some());
        assert!(next_page(&from, "<https://evil.example/>; rel=\"next\"").is_none());
        assert!(next_page(&from, "nonsense").is_none());
    }

    #[test]
    fn plain_http_stays_on_this_machine() {
        let plain = |host: &str| {
            let settings = crate::HostSettings {
                plain_http: true,
                ..Default::default()
            };
            let credentials = Credentials::new(
                BTreeMap::from([(host.to_owned(), settings)]),
                None,
                Box::new(|_| None),
            );
            let reference: Reference = format!("oci://{host}/x:1").parse().unwrap();
            Client::new(credentials)
                .url(&reference, "tags/list")
                .map(|url| url.to_string())
        };
        assert_eq!(
            plain("localhost:5000").unwrap(),
            "http://localhost:5000/v2/x/tags/list"
        );
        assert!(matches!(
            plain("registry.example"),
            Err(RegistryError::PlainHttp { .. })
        ));
        assert!(matches!(
            plain("localhost.evil.example:80"),
            Err(RegistryError::PlainHttp { .. })
        ));
    }
}
