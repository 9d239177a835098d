//! Sigstore bundles: signatures by an issuer's identity or by a key. Checked offline.

use serde::Deserialize;
use sigstore_verify::trust_root::TrustedRoot;
use sigstore_verify::types::{Bundle, DerPublicKey, Sha256Hash, SignatureContent};
use sigstore_verify::{PublicKeyVerificationPolicy, VerificationPolicy, Verifier};

use super::provider;
use crate::digest::Digest;
use crate::text::{fits, plain};

/// Prefix of the media types of bundles.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle";
/// Statements that mean "I published this". Honest people also sign others, such as vulnerability reports.
const PREDICATES: &[&str] = &[
    "https://sigstore.dev/cosign/sign/v1",
    "https://slsa.dev/provenance/v0.2",
    "https://slsa.dev/provenance/v1",
];

/// Checks a bundle by an identity. The error says why it is not accepted.
pub(crate) fn check_identity(
    root: &TrustedRoot,
    issuer: &str,
    identity: &str,
    digest: &Digest,
    json: &str,
) -> Result<String, String> {
    let bundle = read(json)?;
    check_predicate(&bundle)?;
    by_identity(root, issuer, identity, digest, &bundle)
}

/// Checks a bundle by a key. A log entry is not required, because the operator named the key.
pub(crate) fn check_key(
    root: &TrustedRoot,
    key: &DerPublicKey,
    digest: &Digest,
    json: &str,
) -> Result<(), String> {
    let bundle = read(json)?;
    check_predicate(&bundle)?;
    let verifier = Verifier::new(root).map_err(|err| err.to_string())?;
    let policy = PublicKeyVerificationPolicy::new(key.clone()).skip_tlog_unsafe();
    verifier
        .verify(hash(digest)?, &bundle, &policy)
        .map_err(|err| plain(&err.to_string()))?;
    Ok(())
}

fn read(json: &str) -> Result<Bundle, String> {
    provider::install();
    Bundle::from_json(json).map_err(|err| format!("cannot read the bundle: {}", plain(&err.to_string())))
}

fn hash(digest: &Digest) -> Result<Sha256Hash, String> {
    Sha256Hash::from_hex(digest.hex()).map_err(|err| err.to_string())
}

/// Checks certificate, log, time and signature, then the identity in the certificate.
fn by_identity(
    root: &TrustedRoot,
    issuer: &str,
    identity: &str,
    digest: &Digest,
    bundle: &Bundle,
) -> Result<String, String> {
    let verifier = Verifier::new(root).map_err(|err| err.to_string())?;
    let policy = VerificationPolicy::any_identity().require_issuer(issuer);
    let result = verifier
        .verify(hash(digest)?, bundle, &policy)
        .map_err(|err| plain(&err.to_string()))?;
    let signer = result
        .identity()
        .map(|name| name.as_str().to_owned())
        .unwrap_or_default();
    if !result.certificate_verified() || !result.tlog_verified() || !fits(identity, &signer) {
        return Err(format!("it is by {}, not by {identity}", plain(&signer)));
    }
    Ok(signer)
}

fn check_predicate(bundle: &Bundle) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Statement {
        predicate_type: String,
    }
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        return Err("the bundle signs raw bytes instead of a statement; sign with `cosign sign`".to_owned());
    };
    let statement: Statement = serde_json::from_slice(envelope.payload.as_bytes())
        .map_err(|_| "the statement of the bundle cannot be read".to_owned())?;
    if !PREDICATES.contains(&statement.predicate_type.as_str()) {
        return Err(format!(
            "the type of its statement is {}, which does not attest publication; sign with `cosign sign`",
            plain(&statement.predicate_type)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sigstore_verify::trust_root::SIGSTORE_PRODUCTION_TRUSTED_ROOT;
    use sigstore_verify::types::DsseEnvelope;

    use super::*;

    /// An attestation of a package that GitHub's identities signed, from the tests of sigstore-rust (Apache-2.0).
    const ATTESTATION: &str = include_str!("../../tests/attestation.sigstore.json");
    const ISSUER: &str = "https://token.actions.githubusercontent.com";

    fn root() -> TrustedRoot {
        TrustedRoot::from_json(SIGSTORE_PRODUCTION_TRUSTED_ROOT).unwrap()
    }

    fn subject(bundle: &Bundle) -> Digest {
        let SignatureContent::DsseEnvelope(DsseEnvelope { payload, .. }) = &bundle.content else {
            panic!("the bundle has no statement");
        };
        let statement: serde_json::Value = serde_json::from_slice(payload.as_bytes()).unwrap();
        let hex = statement["subject"][0]["digest"]["sha256"].as_str().unwrap();
        format!("sha256:{hex}").parse().unwrap()
    }

    #[test]
    fn an_identity_is_checked_without_a_connection() {
        let bundle = read(ATTESTATION).unwrap();
        let digest = subject(&bundle);
        let signer = by_identity(&root(), ISSUER, "https://github.com/*", &digest, &bundle).unwrap();
        assert!(signer.starts_with("https://github.com/"), "{signer}");
        for (issuer, identity, digest) in [
            ("https://accounts.google.com", "https://github.com/*", &digest),
            (ISSUER, "https://github.com/evil/*", &digest),
            (ISSUER, "https://github.com/*", &Digest::of(b"another")),
        ] {
            assert!(
                by_identity(&root(), issuer, identity, digest, &bundle).is_err(),
                "{issuer} {identity}"
            );
        }
    }

    #[test]
    fn a_bundle_of_another_root_or_with_a_change_does_not_count() {
        let bundle = read(ATTESTATION).unwrap();
        let digest = subject(&bundle);
        let staging =
            TrustedRoot::from_json(sigstore_verify::trust_root::SIGSTORE_STAGING_TRUSTED_ROOT).unwrap();
        assert!(by_identity(&staging, ISSUER, "*", &digest, &bundle).is_err());
        let outcome = read(&strip()).and_then(|bundle| by_identity(&root(), ISSUER, "*", &digest, &bundle));
        assert!(outcome.is_err());
    }

    /// The bundle without its entry in the log.
    fn strip() -> String {
        let mut bundle: serde_json::Value = serde_json::from_str(ATTESTATION).unwrap();
        bundle["verificationMaterial"]["tlogEntries"]
            .as_array_mut()
            .unwrap()
            .clear();
        bundle.to_string()
    }

    #[test]
    fn a_statement_about_something_else_does_not_count() {
        let digest = subject(&read(ATTESTATION).unwrap());
        let err = check_identity(&root(), ISSUER, "https://github.com/*", &digest, ATTESTATION).unwrap_err();
        assert!(err.contains("does not attest publication"), "{err}");
    }
}
