//! Signatures in a registry without the referrers API, and components without a signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use tollgate_registry::Digest;

use super::docker::Docker;
use super::{MANIFEST, Party, keys, pack};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const STATEMENT: &str = "application/vnd.in-toto+json";

/// A bundle as `cosign sign --key --tlog-upload=false` of cosign 3 makes it: no log has it.
fn bundle(private: &rcgen::KeyPair, digest: &str) -> Value {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "name": "sql-access", "digest": { "sha256": digest } }],
        "predicateType": "https://sigstore.dev/cosign/sign/v1",
        "predicate": {},
    });
    let statement = statement.to_string();
    let signed = format!(
        "DSSEv1 {} {STATEMENT} {} {statement}",
        STATEMENT.len(),
        statement.len()
    );
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &private.serialize_der(), &random);
    let signature = key.unwrap().sign(&random, signed.as_bytes()).unwrap();
    json!({
        "mediaType": BUNDLE,
        "verificationMaterial": { "publicKey": { "hint": "team" }, "tlogEntries": [] },
        "dsseEnvelope": {
            "payload": STANDARD.encode(&statement),
            "payloadType": STATEMENT,
            "signatures": [{ "sig": STANDARD.encode(signature.as_ref()) }],
        },
    })
}

/// Stores a bundle as clients do where a registry has no interface for it: a list under a tag of the digest.
fn attach(registry: &Docker, repository: &str, digest: &str, bundle: &Value) {
    let descriptor = |media_type: &str, bytes: &[u8]| json!({ "mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len() });
    let (_, subject) = registry.get(&format!("{repository}/manifests/sha256:{digest}"), MANIFEST);
    let bundle = bundle.to_string();
    registry.put_blob(repository, bundle.as_bytes());
    registry.put_blob(repository, b"{}");
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": BUNDLE,
        "config": descriptor("application/vnd.oci.empty.v1+json", b"{}"),
        "layers": [descriptor(BUNDLE, bundle.as_bytes())],
        "subject": descriptor(MANIFEST, &subject),
    });
    let manifest = manifest.to_string();
    let own = Digest::of(manifest.as_bytes());
    registry.put_manifest(
        &format!("{repository}/manifests/{own}"),
        MANIFEST,
        manifest.as_bytes(),
    );
    let mut listed = descriptor(MANIFEST, manifest.as_bytes());
    listed["artifactType"] = json!(BUNDLE);
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [listed] });
    registry.put_manifest(
        &format!("{repository}/manifests/sha256-{digest}"),
        INDEX,
        index.to_string().as_bytes(),
    );
}

#[test]
fn a_bundle_is_found_without_an_interface_for_referrers() {
    let registry = Docker::start();
    let author = Party::with(&registry, "");
    let to = format!("oci://{}/team/sql-access:1.0.0", registry.host);
    let pinned = author.publish(&pack(), &to, &[]);
    let (_, digest) = pinned.split_once("@sha256:").unwrap();
    let (status, _) = registry.get(&format!("team/sql-access/referrers/sha256:{digest}"), INDEX);
    assert_eq!(
        status, 404,
        "the registry has the interface, so this test shows nothing"
    );
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let host = Party::trusting(&registry, &key.public_key_pem());
    let unsigned = host.refused(&["packs", "add", &to]);
    assert!(unsigned.contains("it is not signed"), "{unsigned}");
    // One for something else is no signature of this.
    let other = Digest::of(b"another manifest");
    attach(&registry, "team/sql-access", digest, &bundle(&key, other.hex()));
    host.refused(&["packs", "add", &to]);
    attach(&registry, "team/sql-access", digest, &bundle(&key, digest));
    // Found and read, and refused for what it lacks.
    let refused = host.refused(&["packs", "add", &to]);
    assert!(
        refused.contains("at least one tlog entry or timestamp"),
        "{refused}"
    );
}

#[test]
fn unsigned_and_foreign_components_are_refused_where_signatures_are_required() {
    let registry = Docker::start();
    let (private, public) = keys();
    let author = Party::with(&registry, "");
    let to = |tag: &str| format!("oci://{}/sql-access:{tag}", registry.host);
    author.publish(&pack(), &to("1.0.0"), &[]);
    let strict = Party::trusting(&registry, &public);
    let refused = strict.refused(&["packs", "add", &to("1.0.0")]);
    assert!(
        refused.contains("it is not signed, but must be signed by team"),
        "{refused}"
    );
    // Looking is allowed, and says so.
    let looked = strict
        .command(&["--json", "packs", "inspect", &to("1.0.0")])
        .output();
    let inspected: Value = serde_json::from_slice(&looked.unwrap().stdout).unwrap();
    assert_eq!(
        inspected["registry"]["signature"]["accepted"], false,
        "{inspected:#}"
    );
    let foreign = author.file("foreign.pem", keys().0.as_bytes());
    author.publish(&pack(), &to("1.0.0"), &["--sign-key", &foreign]);
    let refused = strict.refused(&["packs", "add", &to("1.0.0")]);
    assert!(refused.contains("it was signed with another key"), "{refused}");
    // A signature is added beside those of others.
    let own = author.file("own.pem", private.as_bytes());
    author.publish(&pack(), &to("1.0.0"), &["--sign-key", &own]);
    let added = strict.ok(&["packs", "add", &to("1.0.0")]);
    assert!(added.contains("signed by team, with its key"), "{added}");
}
