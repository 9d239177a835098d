//! The policies `rego` and `cedar` from a registry: published, signed, added with a verified signature, and evaluating
//! calls. `cargo xtask engines` builds them and runs these tests.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

#[allow(dead_code, reason = "the end-to-end tests use all of it")]
#[path = "../e2e/harness.rs"]
mod harness;
#[allow(dead_code, reason = "the tests of the registry use all of it")]
#[path = "../../host/registry/tests/served/mod.rs"]
mod served;

use std::path::{Path, PathBuf};
use std::process::Output;

use harness::Place;
use serde_json::{Value, json};
use served::Registry;

fn component(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components/engines");
    let path = folder.join(format!("{name}.wasm"));
    assert!(
        path.exists(),
        "{} is missing; run `cargo xtask engines`",
        path.display()
    );
    path
}

fn succeeded(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{problems}");
    said + &problems
}

/// Publishes a policy with a signature, adds it to another data directory that trusts only the key, and returns that.
fn installed(name: &str, settings: &Value) -> (Registry, Place) {
    let registry = Registry::start();
    let plain = format!("[registries.\"{}\"]\nplain_http = true\n", registry.host);
    let author = Place::with(&plain);
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let key = author.path().join("key.pem");
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    let reference = format!("oci://{}/team/{name}:0.1.0", registry.host);
    let file = component(name);
    let publish = ["packs", "publish", file.to_str().unwrap(), &reference];
    succeeded(
        &author.run(
            &[
                &publish[..],
                &["--licence", "MIT", "--sign-key", key.to_str().unwrap()],
            ]
            .concat(),
        ),
    );
    let host = Place::new();
    std::fs::write(host.path().join("team.pub"), pair.public_key_pem()).unwrap();
    let trust = "[trust]\nunsigned = \"refuse\"\n[trust.signers.team]\nkey = \"team.pub\"\n";
    std::fs::write(host.config(), format!("{plain}{trust}")).unwrap();
    let settings = settings.to_string();
    let add = ["policies", "add", &reference, "--settings", &settings];
    let said = succeeded(&host.run(&add));
    assert!(said.contains("signed by team, with its key"), "{said}");
    (registry, host)
}

fn code(place: &Place, tool: &str, arguments: &Value) -> Value {
    place.call(tool, arguments).1["error"]["code"].clone()
}

#[test]
fn rules_in_rego_judge_from_a_registry() {
    let rules = "package tollgate\nimport rego.v1\n\
        deny contains {\"code\": \"NO_LABEL\", \"message\": \"envelopes need a label\"} if {\n\
        input.tool == \"envelope_open\"\nnot input.arguments.label\n}";
    let (_registry, host) = installed("rego", &json!({ "rules": rules }));
    assert_eq!(code(&host, "envelope_open", &json!({})), "NO_LABEL");
    assert_eq!(code(&host, "envelope_open", &json!({"label": "x"})), Value::Null);
    let settings = json!({ "rules": rules }).to_string();
    let file = component("rego");
    succeeded(&host.run(&[
        "policies",
        "check",
        file.to_str().unwrap(),
        "--settings",
        &settings,
    ]));
}

#[test]
fn policies_in_cedar_judge_from_a_registry() {
    let policies = "permit(principal, action, resource);\n\
        @code(\"NOT_BOB\") @message(\"bob opens no envelope\")\n\
        forbid(principal == User::\"bob\", action == Action::\"envelope_open\", resource);";
    let (_registry, host) = installed("cedar", &json!({ "policies": policies }));
    assert_eq!(code(&host, "envelope_open", &json!({"actor": "bob"})), "NOT_BOB");
    assert_eq!(
        code(&host, "envelope_open", &json!({"actor": "ada"})),
        Value::Null
    );
    // A mistake in the settings is told when they are added, not at the first call.
    let bad = json!({ "policies": "permit(" }).to_string();
    let file = component("cedar");
    let output = host.run(&["policies", "check", file.to_str().unwrap(), "--settings", &bad]);
    assert!(!output.status.success());
}
