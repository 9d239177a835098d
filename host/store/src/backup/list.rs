//! The list of a backup's files, signed with the ledger's key. Pure.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use tollgate_core::hash::sha256_hex;
use tollgate_sdk::Timestamp;

use crate::ledger::head::BadHead;
use crate::ledger::key::{LedgerKey, PublicKey};

/// Format version of the list.
const FORMAT: u32 = 1;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub sha256: String,
}

/// The files of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    format: u32,
    version: String,
    made_at: String,
    files: BTreeMap<String, Entry>,
}

/// A list with its signature.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    list: List,
    public_key: String,
    signature: String,
}

impl List {
    /// Creates an empty list.
    pub fn new(now_ms: i64) -> List {
        List {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made_at: Timestamp::from_ms(now_ms).to_string(),
            files: BTreeMap::new(),
        }
    }

    /// Adds a file, by its path with `/` between folders.
    pub fn add(&mut self, path: &str, entry: Entry) {
        self.files.insert(path.to_owned(), entry);
    }

    /// Files by path.
    pub fn files(&self) -> &BTreeMap<String, Entry> {
        &self.files
    }

    /// Time of the backup.
    pub fn made_at(&self) -> &str {
        &self.made_at
    }

    /// Total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|entry| entry.bytes).sum()
    }

    /// Signs the list and returns its text.
    pub(super) fn signed(self, key: &LedgerKey) -> io::Result<String> {
        let statement = self.statement()?;
        let signed = Signed {
            list: self,
            public_key: key.public().to_string(),
            signature: key.sign(&statement),
        };
        Ok(serde_json::to_string_pretty(&signed).map_err(io::Error::other)? + "\n")
    }

    /// Reads a signed list. If there are `trusted` keys, one of them must have signed it. Returns the signer's key.
    pub(super) fn read(text: &str, trusted: &[PublicKey]) -> Result<(List, PublicKey), Unlisted> {
        let signed: Signed =
            serde_json::from_str(text).map_err(|err| Unlisted::Unreadable(err.to_string()))?;
        if signed.list.format != FORMAT {
            return Err(Unlisted::Unreadable(format!(
                "its format is {}, but this version reads {FORMAT}; use a newer tollgate",
                signed.list.format
            )));
        }
        let key: PublicKey = signed
            .public_key
            .parse()
            .map_err(|err| Unlisted::Head(BadHead::Key(err)))?;
        if !trusted.is_empty() && !trusted.contains(&key) {
            return Err(Unlisted::Head(BadHead::Foreign(signed.public_key)));
        }
        let statement = signed
            .list
            .statement()
            .map_err(|err| Unlisted::Unreadable(err.to_string()))?;
        if !key.signed(&statement, &signed.signature) {
            return Err(Unlisted::Unreadable(
                "it was changed after it was signed".to_owned(),
            ));
        }
        if let Some(path) = signed.list.files.keys().find(|path| !is_plain(path)) {
            return Err(Unlisted::Unreadable(format!(
                "it lists {path:?}, which is not a valid path in a backup"
            )));
        }
        Ok((signed.list, key))
    }

    /// Text to sign.
    fn statement(&self) -> io::Result<String> {
        let json = serde_json::to_string(self).map_err(io::Error::other)?;
        Ok(format!(
            "tollgate backup {FORMAT}\n{}\n",
            sha256_hex(json.as_bytes())
        ))
    }
}

/// Reason for which a list is not accepted.
#[derive(Debug)]
pub(super) enum Unlisted {
    Unreadable(String),
    Head(BadHead),
}

/// True if a path leads to a file in the backup's folder, or in a folder directly below it.
fn is_plain(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    parts.len() <= 2
        && parts
            .iter()
            .all(|part| !part.is_empty() && *part != "." && *part != ".." && !part.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_changed_or_signed_by_another_is_refused() {
        let (key, other) = (LedgerKey::of_seed(1), LedgerKey::of_seed(2));
        let entry = |bytes| Entry {
            bytes,
            sha256: "00".to_owned(),
        };
        let mut list = List::new(0);
        list.add("tollgate.db", entry(5));
        list.add("artifacts/ab", entry(1));
        let text = list.clone().signed(&key).unwrap();
        assert_eq!(List::read(&text, &[]).unwrap(), (list.clone(), key.public()));
        assert!(List::read(&text, &[other.public(), key.public()]).is_ok());
        assert!(matches!(
            List::read(&text, &[other.public()]),
            Err(Unlisted::Head(BadHead::Foreign(_)))
        ));
        for (from, to) in [
            ("\"bytes\": 5", "\"bytes\": 6"),
            ("artifacts/ab", "artifacts/ac"),
            ("\"format\": 1", "\"format\": 2"),
        ] {
            let changed = text.replace(from, to);
            assert_ne!(changed, text);
            assert!(
                matches!(List::read(&changed, &[]), Err(Unlisted::Unreadable(_))),
                "{from}"
            );
        }
        for path in ["../x", "/etc/passwd", "a/b/c", "a//b", "", "."] {
            let mut list = list.clone();
            list.add(path, entry(1));
            let text = list.signed(&key).unwrap();
            assert!(List::read(&text, &[]).is_err(), "{path:?}");
        }
    }
}
