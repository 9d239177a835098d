//! The `[cluster]` table: this host among the hosts of other machines.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use url::Url;

/// Shortest lease, in seconds. A host renews its lease every 2 s.
const MIN_LEASE_SEC: u64 = 5;

/// The `[cluster]` table. Applies if the database is on a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterConfig {
    #[serde(deserialize_with = "address")]
    url: Option<String>,
    lease_sec: u64,
}

/// Parses an address that is shown to callers at other hosts.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let refused = |why: &str| {
        de::Error::custom(format!(
            "cluster.url {why}; write an address that clients use, such as https://host-a.example/mcp"
        ))
    };
    let url = Url::parse(&text).map_err(|err| refused(&format!("is not a URL: {err}")))?;
    match (url.scheme(), url.username(), url.password()) {
        ("http" | "https", "", None) if url.has_host() => Ok(Some(url.into())),
        ("http" | "https", ..) => Err(refused(
            "contains a user name or a password, which every caller would see",
        )),
        _ => Err(refused("begins neither with https:// nor with http://")),
    }
}

impl Default for ClusterConfig {
    fn default() -> ClusterConfig {
        ClusterConfig {
            url: None,
            lease_sec: 15,
        }
    }
}

impl ClusterConfig {
    /// Address of this host for clients, or else a known one.
    pub fn url(&self, known: Option<&str>) -> Option<String> {
        self.url.as_deref().or(known).map(str::to_owned)
    }

    /// Time without renewal after which other hosts consider this one gone.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_sec.max(MIN_LEASE_SEC))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_one_that_callers_may_be_told() {
        let read =
            |url: &str| toml::from_str::<ClusterConfig>(&format!("url = {url:?}")).map(|config| config.url);
        let good = read("https://host-a.example/mcp").unwrap();
        assert_eq!(good.as_deref(), Some("https://host-a.example/mcp"));
        for (url, says) in [
            ("host-a.example/mcp", "is not a URL"),
            ("ftp://host-a.example", "begins neither with"),
            ("http://user:secret@evil/", "a user name or a password"),
        ] {
            let refused = read(url).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
        // Characters that could end a line or a word are escaped.
        let odd = read("http://a/\n \"x").unwrap().unwrap();
        assert!(!odd.contains(['\n', ' ', '"']), "{odd}");
    }
}
