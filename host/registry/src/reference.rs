//! References to components: `oci://host/name:tag@sha256:…`.

use std::fmt;
use std::str::FromStr;

use crate::digest::Digest;
use crate::error::RegistryError;
use crate::text::plain;

/// Prefix of a source in a registry.
pub const SCHEME: &str = "oci://";
/// Maximum characters of a repository's name.
const NAME_LIMIT: usize = 255;
/// Maximum characters of a tag.
const TAG_LIMIT: usize = 128;

/// A component in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    host: String,
    name: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// Host of the registry, with its port if it has one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Name of the repository.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tag, if the reference has one.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Digest of the manifest, if the reference is pinned.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Host and name, without tag and digest, for comparison with the sources of signers.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.host, self.name)
    }

    /// The same reference, pinned to a manifest.
    #[must_use]
    pub fn pinned(&self, digest: &Digest) -> Reference {
        Reference {
            digest: Some(digest.clone()),
            ..self.clone()
        }
    }

    /// The same repository under another tag, not pinned.
    pub fn tagged(&self, tag: &str) -> Result<Reference, RegistryError> {
        let tag = check_tag(tag).map_err(|why| bad(tag, why))?;
        Ok(Reference {
            tag: Some(tag),
            digest: None,
            ..self.clone()
        })
    }

    /// Tag or digest for requests of the manifest. The digest takes precedence, because tags move.
    pub(crate) fn manifest(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }
}

impl FromStr for Reference {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Reference, RegistryError> {
        parse(text).map_err(|why| bad(text, why))
    }
}

fn bad(text: &str, why: String) -> RegistryError {
    RegistryError::BadReference {
        text: plain(text),
        why,
    }
}

fn parse(text: &str) -> Result<Reference, String> {
    let rest = text.strip_prefix(SCHEME).ok_or("it does not start with oci://")?;
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest.parse()?)),
        None => (rest, None),
    };
    let (host, path) = rest
        .split_once('/')
        .ok_or("the name of the repository is missing")?;
    let (name, tag) = match path.split_once(':') {
        Some((name, tag)) => (name, Some(check_tag(tag)?)),
        None => (path, None),
    };
    if tag.is_none() && digest.is_none() {
        return Err("it has neither a tag nor a digest".to_owned());
    }
    check_host(host)?;
    check_name(name)?;
    Ok(Reference {
        host: host.to_owned(),
        name: name.to_owned(),
        tag,
        digest,
    })
}

/// A DNS name, an IPv4 address or a bracketed IPv6 address, and a port. Upper case is refused, so that one host has one name.
fn check_host(host: &str) -> Result<(), String> {
    let (address, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, after)) => {
            let is_v6 = inside.parse::<std::net::Ipv6Addr>().is_ok();
            let port = after.strip_prefix(':').or(after.is_empty().then_some("443"));
            (is_v6, port.ok_or("the host is malformed")?)
        }
        None => {
            let (name, port) = host.split_once(':').unwrap_or((host, "443"));
            let is_label = |label: &str| {
                let is_edge = label.starts_with('-') || label.ends_with('-');
                let is_plain = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
                !label.is_empty() && !is_edge && label.bytes().all(is_plain)
            };
            (name.len() <= 253 && name.split('.').all(is_label), port)
        }
    };
    let is_port =
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    match (address, is_port) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{} is not a host name in lower case", plain(host))),
        (true, false) => Err(format!("{} is not a port", plain(port))),
    }
}

/// Parts of lower-case letters and digits with single separators between them, so no part is empty or `..`.
fn check_name(name: &str) -> Result<(), String> {
    let is_part = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = part.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        let inside = bytes
            .iter()
            .all(|&byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'));
        let is_doubled =
            part.contains("..") || part.contains("._") || part.contains("_.") || part.contains("___");
        ends.is_some_and(|(&first, &last)| is_plain(first) && is_plain(last)) && inside && !is_doubled
    };
    let is_name = name.len() <= NAME_LIMIT && name.split('/').all(is_part);
    is_name.then_some(()).ok_or_else(|| {
        format!(
            "the name {} must have parts of lower-case letters, digits, `.`, `_` and `-`, separated by `/`",
            plain(name)
        )
    })
}

fn check_tag(tag: &str) -> Result<String, String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = tag.bytes();
    let is_tag = tag.len() <= TAG_LIMIT
        && bytes.next().is_some_and(is_word)
        && bytes.all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    is_tag.then(|| tag.to_owned()).ok_or_else(|| {
        format!(
            "the tag {} must have letters, digits, `_`, `.` and `-`",
            plain(tag)
        )
    })
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.host, self.name)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_reads_back_as_it_is_written() {
        let hex = "a".repeat(64);
        for text in [
            "oci://ghcr.io/team/hello:1.2.0".to_owned(),
            format!("oci://localhost:5443/hello@sha256:{hex}"),
            format!("oci://[::1]:5443/a/b/c-d__e.f:v1_x@sha256:{hex}"),
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nothing_else_is_a_reference() {
        for text in [
            "ghcr.io/team/hello:1",
            "oci://ghcr.io",
            "oci://ghcr.io/hello",
            "oci://ghcr.io/../hello:1",
            "oci://ghcr.io/a//b:1",
            "oci://ghcr.io/a/./b:1",
            "oci://ghcr.io/Hello:1",
            "oci://ghcr.io/hello:1/../../x",
            "oci://ghcr.io/hello:",
            "oci://ghcr.io/hello:-x",
            "oci://ghcr.io/hello:1?x=1",
            "oci://ghcr.io/hello:1#x",
            "oci://ghcr.io/hel%2flo:1",
            "oci://user:secret@ghcr.io/hello:1",
            "oci://GHCR.io/hello:1",
            "oci://ghcr.io:0/hello:1",
            "oci://ghcr.io:x/hello:1",
            "oci://ghcr.io:+80/hello:1",
            "oci://-x.io/hello:1",
            "oci://[::g]/hello:1",
            "oci://ghcr.io/hello:1@md5:0",
            "oci://ghcr.io/hello:1@sha256:00",
            "oci://ghcr.io/hello:1\n",
        ] {
            let err = text.parse::<Reference>().unwrap_err().to_string();
            assert!(err.contains("is not a reference"), "{text}: {err}");
        }
    }
}
