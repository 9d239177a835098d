//! Components from a registry: publishing, adding, updating, and everything that is refused.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

#[path = "../../../host/registry/tests/served/mod.rs"]
mod served;

use std::process::Output;

use serde_json::json;
use served::Registry;
use tollgate_registry::Digest;

use crate::harness::{Place, guest};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A component, and the same with another description of a tool.
fn versions() -> (Vec<u8>, Vec<u8>) {
    let old = std::fs::read(guest("sql-access")).unwrap();
    let mut new = old.clone();
    let (was, is): (&[u8], &[u8]) = (b"Run a query in a read call.", b"Run a query in a READ call.");
    let places: Vec<usize> = (0..=old.len() - was.len())
        .filter(|&at| old[at..].starts_with(was))
        .collect();
    assert!(!places.is_empty());
    places
        .iter()
        .for_each(|&at| new[at..at + is.len()].copy_from_slice(is));
    (old, new)
}

/// A place whose configuration reaches the registry, and trusts what the key of the other file signs.
fn place(registry: &Registry, public: Option<&str>) -> Place {
    let place = Place::new();
    let mut config = format!("[registries.\"{}\"]\nplain_http = true\n", registry.host);
    if let Some(public) = public {
        std::fs::write(place.path().join("team.pub"), public).unwrap();
        config += "[trust]\nunsigned = \"refuse\"\n[trust.signers.team]\nkey = \"team.pub\"\n";
    }
    std::fs::write(place.config(), config).unwrap();
    place
}

fn config(place: &Place) -> String {
    std::fs::read_to_string(place.config()).unwrap()
}

fn refused(place: &Place, output: &Output, why: &str) {
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains(why), "{said}");
    assert!(!config(place).contains("[packs."), "{}", config(place));
    let kept = std::fs::read_dir(place.data().join("components")).map_or(0, Iterator::count);
    assert_eq!(kept, 0);
}

#[test]
fn a_signed_component_is_added_pinned_and_updated() {
    let registry = Registry::start();
    let (old, new) = versions();
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let other = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let author = place(&registry, None);
    let at = |name: &str| author.path().join(name).display().to_string();
    std::fs::write(at("key.pem"), pair.serialize_pem()).unwrap();
    std::fs::write(at("other.pem"), other.serialize_pem()).unwrap();
    std::fs::write(at("old.wasm"), &old).unwrap();
    std::fs::write(at("new.wasm"), &new).unwrap();
    let publish = |file: &str, tag: &str, key: &str| {
        let to = format!("oci://{}/team/sql-access:{tag}", registry.host);
        let output = author.run(&[
            "packs",
            "publish",
            &at(file),
            &to,
            "--licence",
            "MIT",
            "--sign-key",
            &at(key),
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        to
    };
    let first = publish("old.wasm", "1.0.0", "key.pem");
    let forged = publish("old.wasm", "0.9.0-forged", "other.pem");

    let host = place(&registry, Some(&pair.public_key_pem()));
    let manifest = registry.content.lock().unwrap()["/v2/team/sql-access/manifests/1.0.0"]
        .1
        .clone();
    let blob = format!("/v2/team/sql-access/blobs/{}", Digest::of(&old));
    registry.lie(&blob, 200, "", &new);
    refused(&host, &host.run(&["packs", "add", &first]), "has the digest");
    registry.honest_again();
    // Everybody can publish, and sign with some key.
    refused(
        &host,
        &host.run(&["packs", "add", &forged]),
        "it was signed with another key",
    );
    assert!(!host.run(&["packs", "inspect", &forged]).status.success());
    let stranger = place(&registry, Some(&other.public_key_pem()));
    refused(
        &stranger,
        &stranger.run(&["packs", "add", &first]),
        "it was signed with another key",
    );

    let added = host.run(&["packs", "add", &first]);
    let said = text(&added.stderr);
    assert!(
        added.status.success() && said.contains("signed by team, with its key"),
        "{said}"
    );
    let pinned = format!("source = \"{first}@{}\"", Digest::of(&manifest));
    assert!(config(&host).contains(&pinned), "{}", config(&host));
    assert!(config(&host).contains(Digest::of(&old).hex()));

    publish("new.wasm", "1.1.0", "key.pem");
    let outdated = text(&host.run(&["packs", "outdated"]).stdout);
    assert!(
        outdated.contains("outdated") && outdated.contains("1.1.0"),
        "{outdated}"
    );
    let before = config(&host);
    assert!(!host.run(&["packs", "update", "sql-access"]).status.success());
    assert_eq!(config(&host), before);
    let updated = host.run(&["packs", "update", "sql-access", "--yes"]);
    let said = text(&updated.stdout);
    assert!(updated.status.success(), "{said}{}", text(&updated.stderr));
    assert!(said.contains("tool sql_access_query: description"), "{said}");
    assert!(
        config(&host).contains("sql-access:1.1.0@sha256:"),
        "{}",
        config(&host)
    );

    // A component that is removed leaves nothing behind.
    let author_adds = author.run(&["packs", "add", &first]);
    assert!(author_adds.status.success(), "{}", text(&author_adds.stderr));
    assert!(author.run(&["packs", "remove", "sql-access"]).status.success());
    assert_eq!(
        std::fs::read_dir(author.data().join("components"))
            .unwrap()
            .count(),
        0
    );

    // The registry is away: the component and its signature are here.
    registry.stop();
    assert_eq!(host.call("sql_access_query", &json!({ "sql": "SELECT 1" })).0, 0);
    // Whoever is no longer trusted is not believed about what is here either.
    std::fs::write(host.path().join("team.pub"), other.public_key_pem()).unwrap();
    let listed = host.run(&["packs", "list"]);
    assert!(
        text(&listed.stderr).contains("is not trusted"),
        "{}",
        text(&listed.stderr)
    );
}

#[test]
fn an_unsigned_component_is_said_or_refused() {
    let registry = Registry::start();
    let author = place(&registry, None);
    let to = format!("oci://{}/sql-access:1.0.0", registry.host);
    let file = guest("sql-access").display().to_string();
    assert!(author.run(&["packs", "publish", &file, &to]).status.success());
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let strict = place(&registry, Some(&key.public_key_pem()));
    refused(
        &strict,
        &strict.run(&["packs", "add", &to]),
        "it is not signed, but must be signed by team",
    );
    let added = author.run(&["packs", "add", &to]);
    assert!(
        added.status.success() && text(&added.stderr).contains("is not signed"),
        "{}",
        text(&added.stderr)
    );
    // A reference without its pin is no source.
    std::fs::write(strict.config(), format!("[packs.sql-access]\nsource = {to:?}\n")).unwrap();
    let listed = strict.run(&["packs", "list"]);
    assert!(
        text(&listed.stderr).contains("needs the digest of its manifest"),
        "{}",
        text(&listed.stderr)
    );
}
