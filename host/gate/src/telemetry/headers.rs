//! Headers that authorise telemetry. The configuration never contains a value. It names an environment variable, or a
//! file that only its owner can read.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;
use ureq::http::{HeaderName, HeaderValue};

/// Longest value, in bytes.
const MAX_VALUE_BYTES: u64 = 16 << 10;
/// Headers that each message sets itself.
const RESERVED_HEADERS: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
];

/// Source of a secret header value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretIn {
    /// An environment variable.
    Variable(String),
    /// A file.
    File(PathBuf),
}

impl SecretIn {
    /// Parses `env:NAME` or `file:PATH`.
    pub fn parse(text: &str) -> Option<SecretIn> {
        match text.split_once(':')? {
            (_, "") => None,
            ("env", name) => Some(SecretIn::Variable(name.to_owned())),
            ("file", path) => Some(SecretIn::File(path.into())),
            _ => None,
        }
    }

    /// Reads the value. The error does not contain it.
    pub fn read(&self, environment: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
        match self {
            SecretIn::Variable(name) => {
                environment(name).ok_or_else(|| format!("the variable {name} is not set"))
            }
            SecretIn::File(path) => read_file(path).map_err(|err| format!("{}: {err}", path.display())),
        }
    }
}

/// All problems of headers. Never contains a value.
#[derive(Debug, Error)]
#[error("{}", .0.join("\n"))]
pub struct HeaderError(Vec<String>);

/// Names and values of headers.
#[derive(Clone, Default)]
pub struct Headers(Vec<(HeaderName, HeaderValue)>);

impl Headers {
    /// Reads every value from its source.
    pub fn read(
        wanted: &BTreeMap<String, SecretIn>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Headers, HeaderError> {
        let (mut headers, mut problems) = (Vec::new(), Vec::new());
        for (name, place) in wanted {
            let value = place.read(&environment).and_then(|value| {
                let value = value.trim();
                let is_something = !value.is_empty();
                let value = HeaderValue::from_str(value).ok().filter(|_| is_something);
                value.ok_or_else(|| "its value is empty or not a valid header value".to_owned())
            });
            match (header_name(name), value) {
                (Some(name), Ok(mut value)) => {
                    value.set_sensitive(true);
                    headers.push((name, value));
                }
                (None, _) => problems.push(format!(
                    "telemetry.headers.{name}: this is not a valid header name"
                )),
                (_, Err(problem)) => problems.push(format!("telemetry.headers.{name}: {problem}")),
            }
        }
        if problems.is_empty() {
            Ok(Headers(headers))
        } else {
            Err(HeaderError(problems))
        }
    }

    /// All headers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        self.0.iter()
    }

    /// True if there are no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Name of a header that may be added.
pub fn header_name(name: &str) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    (!RESERVED_HEADERS.contains(&name.as_str())).then_some(name)
}

fn read_file(path: &Path) -> std::io::Result<String> {
    #[allow(clippy::disallowed_methods, reason = "the operator names the file")]
    let file = File::open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        return Err(std::io::Error::other("others can read it; run `chmod 600` on it"));
    }
    let mut text = String::new();
    file.take(MAX_VALUE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the test makes files")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn values_come_from_elsewhere_and_are_not_shown() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("token");
        std::fs::write(&file, "hidden\n").unwrap();
        let environment = |name: &str| (name == "TOKEN").then(|| "Bearer secret".to_owned());
        let wanted = |pairs: &[(&str, &str)]| -> BTreeMap<String, SecretIn> {
            let pairs = pairs.iter();
            let pairs = pairs.map(|(name, place)| (name.to_string(), SecretIn::parse(place).unwrap()));
            pairs.collect()
        };
        let from_file = format!("file:{}", file.display());
        let both = wanted(&[("authorization", "env:TOKEN"), ("X-Tenant", &from_file)]);
        let open = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, open(0o644)).unwrap();
        let err = Headers::read(&both, environment).unwrap_err().to_string();
        assert!(
            err.ends_with("others can read it; run `chmod 600` on it"),
            "{err}"
        );
        std::fs::set_permissions(&file, open(0o600)).unwrap();
        let headers = Headers::read(&both, environment).unwrap();
        assert_eq!(format!("{headers:?}"), r#"["x-tenant", "authorization"]"#);
        let sent: Vec<&[u8]> = headers.iter().map(|(_, value)| value.as_bytes()).collect();
        assert_eq!(sent, [&b"hidden"[..], b"Bearer secret"]);
        let bad = wanted(&[("a", "env:NONE"), ("host", "env:TOKEN"), ("b c", "env:TOKEN")]);
        expect![[r#"
            telemetry.headers.a: the variable NONE is not set
            telemetry.headers.b c: this is not a valid header name
            telemetry.headers.host: this is not a valid header name"#]]
        .assert_eq(&Headers::read(&bad, environment).unwrap_err().to_string());
        let broken = |_: &str| Some("secret\nx: y".to_owned());
        let err = Headers::read(&wanted(&[("a", "env:A")]), broken).unwrap_err();
        assert_eq!(
            err.to_string(),
            "telemetry.headers.a: its value is empty or not a valid header value"
        );
    }

    #[test]
    fn a_value_itself_is_no_place_of_one() {
        for text in ["secret", "Bearer secret", "env:", "file:", "https://example.org"] {
            assert_eq!(SecretIn::parse(text), None, "{text}");
        }
    }
}
