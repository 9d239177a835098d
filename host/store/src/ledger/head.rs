//! Exported heads: signed statements of the ledger's position at a time. A head that is kept elsewhere shows later
//! whether any row before it was changed.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::key::{LedgerKey, NoPublicKey, PublicKey};
use crate::storage::Head;

/// Head in the format of `ledger export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedHead {
    /// End of the chain.
    #[serde(flatten)]
    pub head: Head,
    /// Signature, if the head was signed.
    #[serde(flatten)]
    pub seal: Option<Seal>,
}

/// Signature data of a head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Number of rows that were pruned by then.
    pub pruned: i64,
    /// Time of the export.
    pub exported_at: String,
    /// Public key of the ledger.
    pub public_key: String,
    /// Signature over all other fields.
    pub signature: String,
}

/// Reason for which an exported head proves nothing.
#[derive(Debug, Error)]
pub enum BadHead {
    /// The head contains no valid key.
    #[error(transparent)]
    Key(#[from] NoPublicKey),
    /// An untrusted key signed it.
    #[error("the head names the public key {0}, which is not one of the accepted keys")]
    Foreign(String),
    /// The head was changed after it was signed.
    #[error("the head was changed after it was signed")]
    Changed,
    /// The head is not signed although it must be.
    #[error("the head is not signed; export it with --sign")]
    Unsigned,
}

impl ExportedHead {
    /// Signs a head.
    pub fn sign(head: Head, pruned: i64, exported_at: String, key: &LedgerKey) -> ExportedHead {
        let mut seal = Seal {
            pruned,
            exported_at,
            public_key: key.public().to_string(),
            signature: String::new(),
        };
        seal.signature = key.sign(&statement(&head, &seal));
        ExportedHead {
            head,
            seal: Some(seal),
        }
    }

    /// Verifies the signature and returns its key. If there are `trusted` keys, it must be one of them.
    pub fn check(&self, trusted: &[PublicKey]) -> Result<Option<PublicKey>, BadHead> {
        let Some(seal) = &self.seal else {
            return if trusted.is_empty() {
                Ok(None)
            } else {
                Err(BadHead::Unsigned)
            };
        };
        let key: PublicKey = seal.public_key.parse()?;
        if !trusted.is_empty() && !trusted.contains(&key) {
            return Err(BadHead::Foreign(seal.public_key.clone()));
        }
        if key.signed(&statement(&self.head, seal), &seal.signature) {
            Ok(Some(key))
        } else {
            Err(BadHead::Changed)
        }
    }
}

fn statement(head: &Head, seal: &Seal) -> String {
    format!(
        "tollgate ledger head 1\n{} {}\n{} {}\n",
        head.seq, head.hash, seal.pruned, seal.exported_at
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed() -> ExportedHead {
        let head = Head {
            seq: 7,
            hash: "ab".to_owned(),
        };
        ExportedHead::sign(
            head,
            2,
            "2026-01-01T00:00:00.000Z".to_owned(),
            &LedgerKey::of_seed(1),
        )
    }

    #[test]
    fn a_head_survives_its_file() {
        let text = serde_json::to_string(&signed()).unwrap();
        let read: ExportedHead = serde_json::from_str(&text).unwrap();
        assert_eq!(read, signed());
        assert!(read.check(&[]).is_ok());
        assert!(read.check(&[LedgerKey::of_seed(1).public()]).is_ok());
        let unsigned: ExportedHead = serde_json::from_str(r#"{"seq":7,"hash":"ab"}"#).unwrap();
        assert!(unsigned.check(&[]).is_ok());
    }

    #[test]
    fn a_changed_or_foreign_head_is_refused() {
        let change = |change: fn(&mut ExportedHead)| {
            let mut head = signed();
            change(&mut head);
            head.check(&[LedgerKey::of_seed(1).public()]).unwrap_err()
        };
        assert!(matches!(change(|head| head.head.seq = 8), BadHead::Changed));
        assert!(matches!(
            change(|head| head.head.hash.push('c')),
            BadHead::Changed
        ));
        assert!(matches!(
            change(|head| head.seal.as_mut().unwrap().pruned = 0),
            BadHead::Changed
        ));
        assert!(matches!(change(|head| head.seal = None), BadHead::Unsigned));
        let other = LedgerKey::of_seed(2).public();
        assert!(matches!(signed().check(&[other]), Err(BadHead::Foreign(_))));
    }
}
