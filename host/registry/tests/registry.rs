//! Pulling from, and publishing to, a registry that this test serves itself, and that can lie.

mod served;

use std::collections::BTreeMap;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use served::Registry;
use tollgate_registry::{
    Client, Credentials, Digest, HostSettings, Publication, RegistryError, Signer, SigningKey, Trust,
    Unsigned, Verdict,
};

fn client(registry: &Registry) -> Client {
    let settings = HostSettings {
        plain_http: true,
        ..HostSettings::default()
    };
    let hosts = BTreeMap::from([(registry.host.clone(), settings)]);
    Client::new(Credentials::new(hosts, None, Box::new(|_| None)))
}

fn publication(version: &str) -> Publication {
    Publication {
        kind: "pack".to_owned(),
        name: "hello".to_owned(),
        version: version.to_owned(),
        description: "Greetings.".to_owned(),
        grants: vec!["grants.ledger = true".to_owned()],
        settings: Some(serde_json::json!({ "greeting": "hello" })),
        licence: Some("MIT".to_owned()),
        source: Some("https://example.org/hello".to_owned()),
        created: "2026-01-01T00:00:00Z".to_owned(),
        ..Publication::default()
    }
}

/// A key pair in PEM: private, public.
fn pair() -> (SigningKey, String) {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    // The key is one that ring reads, as the host does.
    EcdsaKeyPair::from_pkcs8(
        &ECDSA_P256_SHA256_ASN1_SIGNING,
        &pair.serialize_der(),
        &SystemRandom::new(),
    )
    .unwrap();
    (
        SigningKey::from_pem("key", &pair.serialize_pem()).unwrap(),
        pair.public_key_pem(),
    )
}

fn trust(pem: &str, sources: &[String]) -> Trust {
    Trust {
        unsigned: Unsigned::Refuse,
        signers: vec![Signer::key("team", sources, pem, None).unwrap()],
    }
}

#[test]
fn what_is_published_is_pulled_with_its_signature() {
    let registry = Registry::start();
    let client = client(&registry);
    let to = registry.reference("team/hello:1.0.0");
    let (key, public) = pair();
    let published = client
        .publish(&to, b"component", &publication("1.0.0"), Some(&key))
        .unwrap();
    assert!(!published.is_same);
    let pulled = client.resolve(&to).unwrap();
    assert_eq!(pulled.reference, published.reference);
    assert_eq!(client.component(&pulled, 100).unwrap(), b"component");
    let said = pulled.said();
    assert_eq!(
        (said.licence.as_deref(), said.version.as_deref()),
        (Some("MIT"), Some("1.0.0"))
    );
    assert_eq!(said.settings.unwrap()["greeting"], "hello");

    let evidence = client.evidence(&pulled).unwrap();
    let sha256 = Digest::of(b"component").hex().to_owned();
    let judge = |trust: &Trust, sha256: &str| trust.judge(&pulled.reference, sha256, &evidence);
    let own = [format!("{}/team/*", registry.host)];
    assert_eq!(
        judge(&trust(&public, &own), &sha256).unwrap(),
        Verdict::Signed("team, with its key".to_owned())
    );
    assert_eq!(judge(&Trust::default(), &sha256).unwrap(), Verdict::Unknown(1));
    // Another key, another component, and a repository that no signer is named for.
    assert!(
        judge(&trust(&pair().1, &[]), &sha256)
            .unwrap_err()
            .to_string()
            .contains("it was signed with another key")
    );
    assert!(judge(&trust(&public, &own), Digest::of(b"x").hex()).is_err());
    assert!(
        judge(&trust(&public, &["ghcr.io/*".to_owned()]), &sha256)
            .unwrap_err()
            .to_string()
            .contains("no signer is configured")
    );
    // The manifest is part of what is signed.
    let mut other = evidence.clone();
    other.manifest.push(' ');
    assert!(matches!(
        trust(&public, &own).judge(&pulled.reference, &sha256, &other),
        Err(RegistryError::OtherDigest { .. })
    ));
    assert!(
        trust(&public, &own)
            .judge(&to, &sha256, &other)
            .unwrap_err()
            .to_string()
            .contains("another component")
    );
}

#[test]
fn a_key_signs_a_manifest_once() {
    let registry = Registry::start();
    let client = client(&registry);
    let to = registry.reference("hello:1.0.0");
    let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let ed25519 = SigningKey::from_pem("key", &ed25519.serialize_pem()).unwrap();
    let (first, _) = pair();
    let (second, _) = pair();
    // A build that runs again publishes again.
    for key in [&first, &first, &ed25519, &second, &ed25519, &first] {
        let publication = publication("1.0.0");
        let published = client
            .publish(&to, b"component", &publication, Some(key))
            .unwrap();
        assert!(published.is_signed);
    }
    let pulled = client.resolve(&to).unwrap();
    assert_eq!(client.evidence(&pulled).unwrap().signatures.len(), 3);
}

#[test]
fn a_tag_is_not_moved_by_accident() {
    let registry = Registry::start();
    let client = client(&registry);
    let to = registry.reference("hello:1.0.0");
    client.publish(&to, b"one", &publication("1.0.0"), None).unwrap();
    assert!(
        client
            .publish(&to, b"one", &publication("1.0.0"), None)
            .unwrap()
            .is_same
    );
    let pinned = client.resolve(&to).unwrap().reference;
    let taken = client.publish(&to, b"two", &publication("1.0.0"), None);
    assert!(matches!(taken, Err(RegistryError::Taken { .. })));
    let moved = Publication {
        overwrite: true,
        ..publication("1.0.0")
    };
    client.publish(&to, b"two", &moved, None).unwrap();
    // A pin goes before the tag.
    let pulled = client.resolve(&pinned).unwrap();
    assert_eq!(client.component(&pulled, 100).unwrap(), b"one");
    assert_ne!(client.resolve(&to).unwrap().reference, pinned);
}

#[test]
fn content_that_is_not_what_was_asked_for_is_refused() {
    let registry = Registry::start();
    let client = client(&registry);
    let to = registry.reference("hello:1.0.0");
    client
        .publish(&to, b"component", &publication("1.0.0"), None)
        .unwrap();
    let pulled = client.resolve(&to).unwrap();
    let blob = format!("/v2/hello/blobs/{}", Digest::of(b"component"));
    let component = || client.component(&pulled, 100).unwrap_err();
    registry.lie(&blob, 200, "", b"componenT");
    assert!(matches!(component(), RegistryError::OtherDigest { .. }));
    registry.lie(&blob, 200, "", b"comp");
    assert!(
        component()
            .to_string()
            .contains("it has 4 bytes, but its manifest says 9")
    );
    registry.lie(&blob, 200, "", &[b'x'; 1000]);
    assert!(matches!(component(), RegistryError::TooLarge { limit: 9, .. }));
    registry.lie(
        &blob,
        200,
        "transfer-encoding: chunked\r\ncontent-length: 0\r\n",
        b"ffffff\r\n",
    );
    assert!(matches!(
        component(),
        RegistryError::Unreachable { .. } | RegistryError::Malformed { .. } | RegistryError::TooLarge { .. }
    ));
    assert!(matches!(
        client.component(&pulled, 8),
        Err(RegistryError::TooLarge { limit: 8, .. })
    ));
    registry.lie(&blob, 307, "location: http://example.org/blob\r\n", b"");
    assert!(matches!(component(), RegistryError::Redirect { .. }));
    registry.lie(&blob, 307, "location: /v2/loop\r\n", b"");
    registry.lie("/v2/loop", 307, "location: /v2/loop\r\n", b"");
    assert!(component().to_string().contains("too many redirects"));

    let manifest = format!("/v2/hello/manifests/{}", pulled.digest);
    registry.lie(&manifest, 200, "", &pulled.bytes[1..]);
    assert!(matches!(
        client.resolve(&pulled.reference),
        Err(RegistryError::OtherDigest { .. })
    ));
    registry.lie(&manifest, 500, "", br#"{"errors": [{"message": "no\u001b[2J"}]}"#);
    let err = client.resolve(&pulled.reference).unwrap_err().to_string();
    assert!(err.ends_with("returned 500: no\u{fffd}[2J"), "{err}");
    registry.lie("/v2/hello/manifests/1.0.0", 200, "", br#"{"manifests": []}"#);
    assert!(
        client
            .resolve(&to)
            .unwrap_err()
            .to_string()
            .contains("list of manifests")
    );
    assert!(matches!(
        client.resolve(&registry.reference("other:1")),
        Err(RegistryError::Missing { .. })
    ));
}

#[test]
fn a_failure_is_not_taken_for_a_missing_signature() {
    let registry = Registry::start();
    let client = client(&registry);
    let to = registry.reference("hello:1.0.0");
    client
        .publish(&to, b"component", &publication("1.0.0"), Some(&pair().0))
        .unwrap();
    let pulled = client.resolve(&to).unwrap();
    let beside = format!("/v2/hello/manifests/sha256-{}.sig", pulled.digest.hex());
    registry.lie(&beside, 503, "", b"");
    assert!(matches!(
        client.evidence(&pulled),
        Err(RegistryError::Status { status: 503, .. })
    ));
}

#[test]
fn a_login_does_not_follow_a_redirect_or_a_foreign_token_service() {
    let (registry, other) = (Registry::start(), Registry::start());
    let settings = HostSettings {
        plain_http: true,
        password_env: Some("SECRET".to_owned()),
        ..HostSettings::default()
    };
    let hosts = BTreeMap::from([(registry.host.clone(), settings)]);
    let client = Client::new(Credentials::new(
        hosts,
        None,
        Box::new(|_| Some("hunter2".to_owned())),
    ));
    let path = "/v2/hello/manifests/1.0.0";
    let to = registry.reference("hello:1.0.0");
    let foreign = format!(
        "www-authenticate: Bearer realm=\"http://{}/token\"\r\n",
        other.host
    );
    registry.lie(path, 401, &foreign, b"");
    assert!(matches!(
        client.resolve(&to),
        Err(RegistryError::TokenHost { .. })
    ));
    registry.lie(path, 401, "www-authenticate: Basic\r\n", b"");
    let err = client.resolve(&to).unwrap_err();
    assert!(
        matches!(err, RegistryError::Denied { .. }) && !err.to_string().contains("hunter2"),
        "{err}"
    );
    assert_eq!(registry.seen.lock().unwrap().len(), 1);
    // The other host asks for a login as well, and does not get it.
    registry.lie(
        path,
        307,
        &format!("location: http://{}{path}\r\n", other.host),
        b"",
    );
    other.lie(path, 401, "www-authenticate: Basic\r\n", b"");
    assert!(client.resolve(&to).is_err());
    assert_eq!(*other.seen.lock().unwrap(), Vec::<String>::new());
}
