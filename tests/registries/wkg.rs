//! Interoperability with `wkg`: components that one program pushes and the other pulls.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::json;
use tollgate_registry::Digest;

use super::docker::{Docker, PASSWORD, USER};
use super::{Party, keys, pack, said};

/// `wkg oci` with a login, by whoever trusts the registry's CA.
fn wkg(registry: &Docker, password: &str, arguments: &[&str]) -> Output {
    let program = std::env::var_os("WKG").map_or_else(|| "wkg".into(), PathBuf::from);
    let mut command = Command::new(&program);
    command
        .env("SSL_CERT_FILE", registry.ca())
        .env("WKG_OCI_USERNAME", USER)
        .env("WKG_OCI_PASSWORD", password)
        .arg("oci")
        .args(arguments);
    command.output().unwrap_or_else(|err| {
        let program = program.display();
        panic!("{program} cannot be started ({err}); run `cargo xtask registries`");
    })
}

#[test]
fn tollgate_takes_what_wkg_publishes() {
    let registry = Docker::start();
    let host = Party::with(&registry, "");
    let file = host.file("component.wasm", &pack());
    let reference = format!("{}/team/sql-access:1.0.0", registry.host);
    let push = |reference: &str| {
        wkg(
            &registry,
            PASSWORD,
            &[
                "push",
                reference,
                &file,
                "--annotation",
                "org.opencontainers.image.licenses=MIT",
            ],
        )
    };
    let pushed = push(&reference);
    assert!(pushed.status.success(), "{}", said(&pushed));
    let to = format!("oci://{reference}");
    let inspected = host.ok(&["packs", "inspect", &to]);
    assert!(inspected.contains("MIT"), "{inspected}");
    host.ok(&["packs", "check", &to]);
    let added = host.ok(&["packs", "add", &to]);
    assert!(added.contains("is not signed"), "{added}");
    // Both name the same manifest.
    let pushed = said(&pushed);
    let digest = pushed.split("digest: ").nth(1).unwrap().trim();
    assert!(
        host.config().contains(&format!("{to}@{digest}")),
        "{}{pushed}",
        host.config()
    );
    assert_eq!(
        host.place.call("sql_access_query", &json!({"sql": "SELECT 1"})).0,
        0
    );
    let next = format!("{}/team/sql-access:1.0.1", registry.host);
    let pushed = push(&next);
    assert!(pushed.status.success(), "{}", said(&pushed));
    host.ok(&["packs", "update", "sql-access", "--yes"]);
    assert!(
        host.config().contains("sql-access:1.0.1@sha256:"),
        "{}",
        host.config()
    );
    // Nobody signed it.
    let strict = Party::trusting(&registry, &keys().1);
    let refused = strict.refused(&["packs", "add", &to]);
    assert!(refused.contains("it is not signed"), "{refused}");
}

#[test]
fn wkg_takes_what_tollgate_publishes() {
    let registry = Docker::start();
    let author = Party::with(&registry, "");
    let key = author.file("key.pem", keys().0.as_bytes());
    let reference = format!("{}/team/sql-access:1.0.0", registry.host);
    author.publish(&pack(), &format!("oci://{reference}"), &["--sign-key", &key]);
    let to = author.place.path().join("pulled.wasm");
    let pull = ["pull", &reference, "--output", to.to_str().unwrap()];
    let refused = wkg(&registry, "wrong", &pull);
    assert!(!refused.status.success() && !to.exists(), "{}", said(&refused));
    let pulled = wkg(&registry, PASSWORD, &pull);
    assert!(pulled.status.success(), "{}", said(&pulled));
    assert_eq!(Digest::of(&std::fs::read(&to).unwrap()), Digest::of(&pack()));
}
