//! Life cycle of a pack: published, inspected, added, outdated, updated, and loaded after its tag was moved.

use serde_json::{Value, json};
use tollgate_registry::Digest;

use super::docker::Docker;
use super::{MANIFEST, Party, keys, pack, reworded};

#[test]
fn a_signed_pack_is_published_added_and_updated() {
    let registry = Docker::start();
    let (private, public) = keys();
    let author = Party::with(&registry, "");
    let key = author.file("key.pem", private.as_bytes());
    let to = |tag: &str| format!("oci://{}/team/packs/sql-access:{tag}", registry.host);
    let flags = [
        "--licence",
        "MIT OR Apache-2.0",
        "--source",
        "https://example.org/sql-access",
        "--settings",
        r#"{"greeting": "hello"}"#,
        "--sign-key",
        &key,
    ];
    let old = pack();
    let first = author.publish(&old, &to("1.0.0"), &flags);
    assert!(first.starts_with(&format!("{}@sha256:", to("1.0.0"))), "{first}");
    // Content that is there is not sent again, and a tag that is there is not moved.
    let again = ["packs", "publish", &author.file("same.wasm", &old), &to("1.0.0")];
    assert_eq!(author.json(&[&again[..], &flags].concat())["was_there"], true);
    let (_, digest) = first.split_once("@sha256:").unwrap();
    let signatures = registry.get(
        &format!("team/packs/sql-access/manifests/sha256-{digest}.sig"),
        MANIFEST,
    );
    let signatures: Value = serde_json::from_slice(&signatures.1).unwrap();
    assert_eq!(
        signatures["layers"].as_array().unwrap().len(),
        1,
        "{signatures:#}"
    );
    let new = reworded(&old, "Run a query in a read call.", "Run a query in a READ call.");
    let file = author.file("new.wasm", &new);
    let taken = author.refused(&["packs", "publish", &file, &to("1.0.0")]);
    assert!(taken.contains("already exists"), "{taken}");

    let host = Party::trusting(&registry, &public);
    let inspected = host.ok(&["packs", "inspect", &to("1.0.0")]);
    for part in [
        "signed by team, with its key",
        "MIT OR Apache-2.0",
        "https://example.org/sql-access",
    ] {
        assert!(inspected.contains(part), "{inspected}");
    }
    let checked = host.json(&["packs", "check", &first]);
    assert_eq!(checked["problems"], json!([]), "{checked:#}");
    let added = host.ok(&["packs", "add", &to("1.0.0")]);
    assert!(added.contains("signed by team, with its key"), "{added}");
    assert!(
        host.config().contains(&format!("source = {first:?}")),
        "{}",
        host.config()
    );
    assert!(
        host.config().contains(Digest::of(&old).hex()),
        "{}",
        host.config()
    );
    assert_eq!(
        host.place.call("sql_access_query", &json!({"sql": "SELECT 1"})).0,
        0
    );

    let outdated = || host.json(&["packs", "outdated"])["components"][0]["state"].clone();
    assert_eq!(outdated(), json!({"moved": false, "later": []}));
    let second = author.publish(&new, &to("1.1.0"), &flags);
    // The names of signatures are tags as well, and no versions.
    assert_eq!(outdated(), json!({"moved": false, "later": ["1.1.0"]}));
    let updated = host.ok(&["packs", "update", "sql-access", "--yes"]);
    assert!(
        updated.contains("tool sql_access_query: description"),
        "{updated}"
    );
    assert!(
        host.config().contains(&format!("source = {second:?}")),
        "{}",
        host.config()
    );
    assert_eq!(
        host.place.call("sql_access_query", &json!({"sql": "SELECT 1"})).0,
        0
    );
    let back = ["packs", "update", "sql-access", "--to", "1.0.0", "--yes"];
    host.ok(&back);
    assert!(
        host.config().contains(&format!("source = {first:?}")),
        "{}",
        host.config()
    );
}

#[test]
fn a_pin_goes_before_a_tag_that_was_moved() {
    let registry = Docker::start();
    let author = Party::with(&registry, "");
    let to = format!("oci://{}/sql-access:latest", registry.host);
    let old = pack();
    let first = author.publish(&old, &to, &[]);
    let host = Party::with(&registry, "");
    let added = host.ok(&["packs", "add", &to]);
    assert!(added.contains("is not signed"), "{added}");
    let new = reworded(&old, "Run a query in a read call.", "Run a query in a READ call.");
    let second = author.publish(&new, &to, &["--overwrite"]);
    assert_ne!(first, second);
    let outdated = host.ok(&["packs", "outdated"]);
    assert!(outdated.contains("the tag has moved"), "{outdated}");
    // A host that lost its copy, or never had one, asks for what was added.
    std::fs::remove_dir_all(host.place.data().join("components")).unwrap();
    let listed = host.json(&["packs", "list"]);
    let packs = listed["packs"].as_array().unwrap();
    let loaded = packs.iter().find(|pack| pack["name"] == "sql-access").unwrap();
    assert_eq!(loaded["sha256"], Digest::of(&old).hex());
    // A reference by the digest alone.
    let (repository, digest) = first.split_once(":latest@").unwrap();
    let pinned = Party::with(&registry, "");
    pinned.ok(&["packs", "add", &format!("{repository}@{digest}")]);
    let outdated = pinned.ok(&["packs", "outdated"]);
    assert!(outdated.contains("pinned without a tag"), "{outdated}");
    // Nothing has another content under a digest.
    let missing = format!("{repository}@{}", Digest::of(b"nothing"));
    let refused = host.refused(&["packs", "add", &missing, "--replace"]);
    assert!(refused.contains("is not in the registry"), "{refused}");
    host.ok(&["packs", "update", "sql-access", "--yes"]);
    assert!(
        host.config().contains(&format!("source = {second:?}")),
        "{}",
        host.config()
    );
}
