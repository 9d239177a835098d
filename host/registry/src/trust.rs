//! Trust: signers that the operator names, and the verdict on a component.

use std::fmt;

use serde::Deserialize;
use sigstore_verify::crypto::VerificationKey;
use sigstore_verify::trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot};
use sigstore_verify::types::DerPublicKey;

use crate::error::RegistryError;
use crate::manifest::Manifest;
use crate::reference::Reference;
use crate::signature::{Evidence, Signature, bundle, cosign, provider};
use crate::text::{fits, plain};

/// Treatment of components without a signature of a named signer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsigned {
    /// Accept them with a notice.
    #[default]
    Say,
    /// Refuse them.
    Refuse,
}

/// A signer whose signatures are accepted.
pub struct Signer {
    /// The operator's name for the signer.
    name: String,
    /// Patterns of repositories that it signs.
    sources: Vec<String>,
    who: Who,
    root: TrustedRoot,
}

enum Who {
    Key(DerPublicKey),
    Identity { issuer: String, identity: String },
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({}, {:?})", self.name, self.sources)
    }
}

impl Signer {
    /// A signer by a public key in PEM.
    pub fn key(
        name: &str,
        sources: &[String],
        pem: &str,
        root: Option<&str>,
    ) -> Result<Signer, RegistryError> {
        provider::install();
        let key = DerPublicKey::from_pem(pem).and_then(|key| {
            // An unusable key is refused here, and not at each load.
            VerificationKey::from_spki(&key)
                .map(|_| key.clone())
                .map_err(|err| sigstore_verify::types::Error::InvalidEncoding(err.to_string()))
        });
        let key = key.map_err(|err| RegistryError::Key {
            what: format!("trust.signers.{name}.key"),
            kind: "a public key",
            why: plain(&err.to_string()),
        })?;
        Signer::new(name, sources, Who::Key(key), root)
    }

    /// A signer by an identity of an issuer. `*` in the identity matches any characters.
    pub fn identity(
        name: &str,
        sources: &[String],
        (issuer, identity): (&str, &str),
        root: Option<&str>,
    ) -> Result<Signer, RegistryError> {
        let letters = identity.chars().filter(|c| c.is_alphanumeric()).count();
        if issuer.is_empty() || letters < 3 {
            return Err(RegistryError::Key {
                what: format!("trust.signers.{name}"),
                kind: "an identity",
                why: format!("{} of {} matches everyone", plain(identity), plain(issuer)),
            });
        }
        let who = Who::Identity {
            issuer: issuer.to_owned(),
            identity: identity.to_owned(),
        };
        Signer::new(name, sources, who, root)
    }

    fn new(name: &str, sources: &[String], who: Who, root: Option<&str>) -> Result<Signer, RegistryError> {
        let root = TrustedRoot::from_json(root.unwrap_or(SIGSTORE_PRODUCTION_TRUSTED_ROOT));
        let root = root.map_err(|err| RegistryError::Key {
            what: format!("trust.signers.{name}.root"),
            kind: "a root of trust",
            why: plain(&err.to_string()),
        })?;
        let sources = if sources.is_empty() {
            vec!["*".to_owned()]
        } else {
            sources.to_vec()
        };
        Ok(Signer {
            name: name.to_owned(),
            sources,
            who,
            root,
        })
    }

    /// Returns whether the signer signs components of a repository.
    fn covers(&self, reference: &Reference) -> bool {
        let repository = reference.repository();
        self.sources.iter().any(|pattern| {
            let pattern = pattern.strip_prefix(crate::SCHEME).unwrap_or(pattern);
            fits(pattern, &repository)
        })
    }

    /// Checks one signature. Returns a description of the signer.
    fn check(&self, evidence: &Evidence, signature: &Signature) -> Result<String, String> {
        let digest = evidence.digest();
        match (&self.who, signature) {
            (Who::Key(key), Signature::Simple { payload, signature }) => {
                cosign::check(key, &digest, payload, signature)?;
                Ok(format!("{}, with its key", self.name))
            }
            (Who::Key(key), Signature::Bundle(json)) => {
                bundle::check_key(&self.root, key, &digest, json)?;
                Ok(format!("{}, with its key", self.name))
            }
            (Who::Identity { issuer, identity }, Signature::Bundle(json)) => {
                let signer = bundle::check_identity(&self.root, issuer, identity, &digest, json)?;
                Ok(format!("{}, as {}", self.name, plain(&signer)))
            }
            (Who::Identity { .. }, Signature::Simple { .. }) => Err(
                "a signature without a bundle does not contain an identity; sign with cosign 3".to_owned(),
            ),
        }
    }
}

/// Accepted signers, and the treatment of unsigned components.
#[derive(Debug, Default)]
pub struct Trust {
    /// Treatment of components without a signature of a named signer.
    pub unsigned: Unsigned,
    /// Accepted signers.
    pub signers: Vec<Signer>,
}

/// Verdict on an accepted component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A named signer has signed.
    Signed(String),
    /// No signer is named for the repository. Contains the number of signatures found.
    Unknown(usize),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Signed(by) => write!(f, "signed by {by}"),
            Verdict::Unknown(0) => {
                f.write_str("not signed, and no signer is configured for it under [trust.signers]")
            }
            Verdict::Unknown(_) => f.write_str(
                "signed, but no signer is configured for it under [trust.signers], so nothing was checked",
            ),
        }
    }
}

impl Trust {
    /// Decides whether to accept a component. Its evidence must be about the reference and the component's SHA-256, and
    /// a signer that is named for the repository must have signed.
    pub fn judge(
        &self,
        reference: &Reference,
        sha256: &str,
        evidence: &Evidence,
    ) -> Result<Verdict, RegistryError> {
        let refused = |reasons| RegistryError::Untrusted {
            reference: reference.to_string(),
            reasons,
        };
        let what = reference.to_string();
        if let Some(digest) = reference.digest() {
            digest.check(&format!("the manifest of {what}"), evidence.manifest.as_bytes())?;
        }
        let manifest = Manifest::parse(&what, evidence.manifest.as_bytes())?;
        let layer = manifest.component(&what)?.digest()?;
        if !layer.hex().eq_ignore_ascii_case(sha256) {
            return Err(refused(vec![format!(
                "its manifest lists the component {}, not {sha256}",
                layer.hex()
            )]));
        }
        let signers: Vec<&Signer> = self
            .signers
            .iter()
            .filter(|signer| signer.covers(reference))
            .collect();
        if signers.is_empty() {
            return match self.unsigned {
                Unsigned::Say => Ok(Verdict::Unknown(evidence.signatures.len())),
                Unsigned::Refuse => Err(refused(vec![
                    "no signer is configured for it, and trust.unsigned is \"refuse\"; add a signer under \
                     [trust.signers]"
                        .to_owned(),
                ])),
            };
        }
        let mut reasons = Vec::new();
        for signer in &signers {
            for signature in &evidence.signatures {
                match signer.check(evidence, signature) {
                    Ok(by) => return Ok(Verdict::Signed(by)),
                    Err(why) => reasons.push(format!(
                        "a signature does not match the signer {}: {why}",
                        signer.name
                    )),
                }
            }
        }
        if reasons.is_empty() {
            let names: Vec<&str> = signers.iter().map(|signer| signer.name.as_str()).collect();
            reasons.push(format!(
                "it is not signed, but must be signed by {}",
                names.join(" or ")
            ));
        }
        reasons.dedup();
        Err(refused(reasons))
    }
}
