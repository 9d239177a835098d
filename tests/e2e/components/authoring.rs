//! Support for authors of components: crate templates, and checks of what they build.
#![allow(clippy::disallowed_methods, reason = "the tests make files and start Cargo")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::{Place, field_of_each, guest, succeeded};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The root folder of this checkout.
fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Runs Cargo in a generated crate, with this checkout's crates as dependencies. Builds of these are kept between runs.
fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    for (name, _) in std::env::vars_os() {
        // What Cargo tells tests of this workspace is not for another one.
        if name.to_string_lossy().starts_with("CARGO_") && name != "CARGO_HOME" {
            command.env_remove(name);
        }
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authors");
    command
        .current_dir(folder)
        .args(arguments)
        .arg("--offline")
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap()
}

/// Makes a crate of a kind with the SDK that the program has, tests it natively, and builds its component.
fn built(place: &Place, kind: &str, name: &str) -> PathBuf {
    let folder = place.path().join(name);
    let made = place.run(&["new", kind, name, "--path", path(&folder)]);
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    assert!(!manifest.contains(path(&checkout())), "{manifest}");
    let said = succeeded(&made);
    let check = if kind == "pack" {
        "packs check"
    } else {
        "policies check"
    };
    assert!(said.contains("cargo test") && said.contains(check), "{said}");
    let tested = cargo(&folder, &["test"]);
    let said = succeeded(&tested);
    assert!(said.contains("2 passed"), "{said}");
    succeeded(&cargo(
        &folder,
        &["build", "--release", "--target", "wasm32-wasip2"],
    ));
    let file = format!("wasm32-wasip2/release/{}.wasm", name.replace('-', "_"));
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("authors").join(file)
}

fn check(place: &Place, file: &Path, more: &[&str]) -> (i32, Value) {
    let arguments = [&["--json", "packs", "check", path(file)], more].concat();
    let output = place.run(&arguments);
    let report =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (output.status.code().unwrap(), report)
}

#[test]
fn a_new_pack_builds_passes_its_tests_and_works_in_the_host() {
    let place = Place::new();
    let component = built(&place, "pack", "field-notes");
    let (code, report) = check(&place, &component, &[]);
    assert_eq!(
        (code, &report["problems"], &report["notes"]),
        (0, &json!([]), &json!([])),
        "{report:#}"
    );
    assert_eq!(report["name"], "field-notes");
    let outcomes = field_of_each(&report["calls"], "outcome");
    assert!(
        outcomes.len() >= 2 && outcomes.iter().all(|outcome| *outcome == "ok"),
        "{report:#}"
    );

    succeeded(&place.run(&["packs", "add", path(&component)]));
    let (code, note) = place.call("field_notes_add", &json!({"text": "the build needs protoc"}));
    assert_eq!((code, &note["text"]), (0, &json!("the build needs protoc")));
    let (_, listed) = place.call("field_notes_list", &json!({}));
    assert_eq!(listed["notes"], json!([note]));
}

#[test]
fn a_new_policy_builds_passes_its_tests_and_judges_in_the_host() {
    let place = Place::new();
    let component = built(&place, "policy", "release-freeze");
    let (code, report) = check(
        &place,
        &component,
        &["--settings", r#"{"reason": "release day"}"#],
    );
    assert_eq!((code, &report["problems"]), (0, &json!([])), "{report:#}");
    let outcomes = field_of_each(&report["calls"], "outcome");
    assert_eq!(outcomes, ["let through", "denied FROZEN"]);
    let cases = place.path().join("release-freeze/cases.toml");
    let tried = succeeded(&place.run(&["policy", "test", path(&component), "--case", path(&cases)]));
    assert!(tried.contains("6 of 6 cases as expected"), "{tried}");
    succeeded(&place.run(&[
        "policy",
        "backtest",
        path(&component),
        "--since",
        "7d",
        "--settings",
        r#"{"reason": "x"}"#,
    ]));

    let judged = Place::with(&format!(
        "[policies.release-freeze]\nsource = {component:?}\nconfig = {{ reason = \"release day\", except = [\"ada\"] }}\n"
    ));
    let (code, refusal) = judged.call("envelope_open", &json!({}));
    assert_eq!((code, &refusal["error"]["code"]), (1, &json!("FROZEN")));
    assert_eq!(judged.call("envelope_list", &json!({})).0, 0);

    // Tables need a database, which the first build of a policy does without.
    let source = place.path().join("release-freeze/src/lib.rs");
    let written = std::fs::read_to_string(&source).unwrap();
    let table = "CREATE TABLE policy_release_freeze_seen (id INTEGER PRIMARY KEY);";
    let migrations = format!(
        "const MIGRATIONS: &'static [tollgate_sdk::Migration] =\n        \
         &[tollgate_sdk::Migration {{ name: \"0001_init\", sql: \"{table}\" }}];\n    const PHASE"
    );
    std::fs::write(&source, written.replacen("const PHASE", &migrations, 1)).unwrap();
    let refused = cargo(&place.path().join("release-freeze"), &["test"]);
    let said = text(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("enable the feature `storage` of tollgate-sdk"),
        "{said}"
    );
}

#[test]
fn a_crate_is_made_whole_or_not_at_all() {
    let place = Place::new();
    let sdk = checkout();
    let there = place.path().join("there");
    std::fs::create_dir(&there).unwrap();
    std::fs::write(there.join("mine"), "mine").unwrap();
    let nowhere = place.path().join("nowhere");
    let refused = place.run(&[
        "new",
        "pack",
        "fn",
        "--path",
        path(&there),
        "--sdk",
        path(&nowhere),
    ]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    for problem in [
        "\"fn\" is not a valid name",
        "already exists",
        "there is no Tollgate SDK in that folder, and it is not a version",
        "nothing was created",
    ] {
        assert!(said.contains(problem), "{problem}: {said}");
    }
    let read_only = place.path().join("locked");
    std::fs::create_dir(&read_only).unwrap();
    let inside_a_file = there.join("mine/crate");
    let new_freeze = |folder: &Path| {
        let arguments = ["new", "policy", "freeze", "--path", path(folder), "--sdk"];
        place.run(&[&arguments[..], &[path(&sdk)]].concat())
    };
    for folder in [&there, &inside_a_file] {
        let output = new_freeze(folder);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
    let left = std::fs::read_dir(&there)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["mine"]);

    // The folder `sdk` names its checkout too.
    let made = place.path().join("made");
    let arguments = [
        "--json",
        "new",
        "policy",
        "freeze",
        "--path",
        path(&made),
        "--sdk",
    ];
    let output = place.run(&[&arguments[..], &[path(&sdk.join("sdk"))]].concat());
    let told: Value = serde_json::from_str(&succeeded(&output)).unwrap();
    assert_eq!(told["sdk"], path(&sdk));
    let manifest = std::fs::read_to_string(made.join("Cargo.toml")).unwrap();
    assert!(manifest.contains(path(&sdk.join("sdk"))), "{manifest}");
    for file in told["files"].as_array().unwrap() {
        assert!(made.join(file.as_str().unwrap()).is_file(), "{file}");
    }
    let again = new_freeze(&made);
    assert!(text(&again.stderr).contains("already exists"));
}

#[test]
fn new_folders_in_other_languages_are_whole_and_python_passes_its_tests() {
    let place = Place::new();
    let python =
        std::env::var_os("TOLLGATE_TEST_PYTHON").expect("`cargo xtask test` sets TOLLGATE_TEST_PYTHON");
    for kind in ["pack", "policy"] {
        for language in ["python", "javascript"] {
            let name = format!("{language}-{kind}");
            let folder = place.path().join(&name);
            let new = [
                "new",
                kind,
                &name,
                "--language",
                language,
                "--path",
                path(&folder),
            ];
            let said = succeeded(&place.run(&new));
            let component = format!("{}.wasm", name.replace('-', "_"));
            let check = format!(
                "tollgate {} check {component}",
                if kind == "pack" { "packs" } else { "policies" }
            );
            assert!(said.contains(&check), "{said}");
            let interfaces = match language {
                "python" => "vendor/tollgate-sdk/tollgate_sdk/wit",
                _ => "vendor/tollgate-sdk/wit",
            };
            assert!(folder.join(interfaces).join("pack.wit").is_file());
        }
        let folder = place.path().join(format!("python-{kind}"));
        let tested = Command::new(&python)
            .args(["-m", "pytest", "-q"])
            .current_dir(&folder)
            .env("PYTHONPATH", folder.join("vendor/tollgate-sdk"))
            .output()
            .unwrap();
        assert!(succeeded(&tested).contains("passed"));
    }
}

#[test]
fn every_built_in_pack_holds_its_own_check() {
    let place = Place::new();
    let components = checkout().join("target/components");
    for pack in tollgate_components::builtin::names() {
        let (code, report) = check(&place, &components.join(format!("{pack}.wasm")), &[]);
        assert_eq!((code, &report["problems"]), (0, &json!([])), "{pack}: {report:#}");
        let tools: std::collections::BTreeSet<&str> = report["calls"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|call| call["tool"].as_str())
            .collect();
        let inspected = place.run(&[
            "--json",
            "packs",
            "inspect",
            path(&components.join(format!("{pack}.wasm"))),
        ]);
        let inspected: Value = serde_json::from_slice(&inspected.stdout).unwrap();
        let named = ["tools", "prompts"].map(|kind| inspected["manifest"][kind].as_array().unwrap().len());
        assert_eq!(
            tools.len(),
            named.iter().sum::<usize>(),
            "{pack}: everything was called"
        );
    }
}

#[test]
fn what_misbehaves_is_told_at_once() {
    let place = Place::new();
    let problems = |name: &str, more: &[&str]| {
        let (code, report) = check(&place, &guest(name), more);
        assert_eq!(code, 1, "{name}: {report:#}");
        let problems = report["problems"].as_array().unwrap().iter();
        let lines = problems.map(|finding| {
            format!(
                "{}: {}",
                finding["about"].as_str().unwrap(),
                finding["found"].as_str().unwrap()
            )
        });
        lines.collect::<Vec<String>>().join("\n")
    };
    let manifest_invalid = problems("manifest-invalid", &[]);
    assert!(
        manifest_invalid.contains("no title") && manifest_invalid.contains("no description"),
        "{manifest_invalid}"
    );
    let reply_invalid = problems("reply-invalid", &[]);
    for lie in [
        "reply_invalid_list: a call failed with BAD_REPLY",
        "reply_invalid_surrogate: a call failed with BAD_REPLY",
        "reply_invalid_bytes: a call failed with GUEST_TRAPPED",
        "reply_invalid_refuse: error FINE does not say what the caller can do",
        "reply_invalid_refuse: output.result has no description",
    ] {
        assert!(reply_invalid.contains(lie), "{lie}\n{reply_invalid}");
    }
    for (deed, cause) in [("trap", "crashed"), ("loop", "ran out of time")] {
        let settings = json!({ "before": deed }).to_string();
        let policy_faults = problems("policy-faults", &["--settings", &settings]);
        assert!(
            policy_faults.contains("the policy did not evaluate envelope_list")
                && policy_faults.contains(cause),
            "{policy_faults}"
        );
    }
    let policy_faults = problems("policy-faults", &["--settings", r#"{"dislikes": ["a", "b"]}"#]);
    assert!(
        policy_faults.contains("config].a: is not to its liking") && policy_faults.contains("config].b"),
        "{policy_faults}"
    );
    let broken = place.path().join("broken.wasm");
    std::fs::write(&broken, b"\0asm\x01\0\0\0").unwrap();
    let (code, report) = check(&place, &broken, &[]);
    assert_eq!(code, 1);
    assert!(
        report["problems"][0]["found"]
            .as_str()
            .unwrap()
            .contains("core module"),
        "{report:#}"
    );
    // Nothing of it was done to the user's own data.
    assert!(!place.data().join("tollgate.db").exists());
}
