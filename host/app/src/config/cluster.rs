//! The `[cluster]` table: this host among those of other machines.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use url::Url;

/// Shortest lease, in seconds. A host says every 2 s that it is alive.
const LEAST: u64 = 5;

/// The `[cluster]` table. It counts where the database is on a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterConfig {
    #[serde(deserialize_with = "address")]
    url: Option<String>,
    lease_sec: u64,
}

/// Reads an address that callers at other hosts are told.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let refused = |why: &str| {
        de::Error::custom(format!(
            "cluster.url {why}; write an address that clients use, such as https://host-a.example/mcp"
        ))
    };
    let url = Url::parse(&text).map_err(|err| refused(&format!("is no address: {err}")))?;
    match (url.scheme(), url.username(), url.password()) {
        ("http" | "https", "", None) if url.has_host() => Ok(Some(url.into())),
        ("http" | "https", ..) => Err(refused(
            "has a name or a password in it, which every caller would be told",
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
    /// Address of this host for clients, or another one that is known.
    pub fn url(&self, known: Option<&str>) -> Option<String> {
        self.url.as_deref().or(known).map(str::to_owned)
    }

    /// Time without news after which other hosts take this one for gone.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_sec.max(LEAST))
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
            ("host-a.example/mcp", "is no address"),
            ("ftp://host-a.example", "begins neither with"),
            ("http://user:secret@evil/", "a name or a password"),
        ] {
            let refused = read(url).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
        // What could end a line, or a word, is escaped.
        let odd = read("http://a/\n \"x").unwrap().unwrap();
        assert!(!odd.contains(['\n', ' ', '"']), "{odd}");
    }
}
