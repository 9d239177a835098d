//! Components that cannot be packs: a clear message names the file and the remedy, and the other packs start.
#![allow(clippy::disallowed_methods, reason = "the tests damage components")]

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Place, guest};

/// Message of `packs list` about a component under a name. Checks that task-store is still available.
fn refusal(name: &str, file: &Path) -> String {
    let place = Place::with(&format!("[packs.{name}]\nsource = {file:?}\n"));
    let output = place.run(&["packs", "list"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("task-store"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&file.display().to_string()), "{said}");
    let (code, _) = place.call("task_list", &json!({}));
    assert_eq!(code, 0);
    said
}

fn altered(alter: impl FnOnce(&mut Vec<u8>)) -> tempfile::NamedTempFile {
    let mut bytes = std::fs::read(guest("sql-access")).unwrap();
    alter(&mut bytes);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    while let Some(at) = bytes.windows(from.len()).position(|window| window == from) {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
}

#[test]
fn bytes_that_are_no_component() {
    let file = altered(|bytes| *bytes = b"#!/bin/sh\n".to_vec());
    assert!(refusal("sql-access", file.path()).contains("not a WebAssembly component"));
    let file = altered(|bytes| bytes.truncate(bytes.len() / 2));
    assert!(refusal("sql-access", file.path()).contains("was not loaded"));
    let file = altered(|bytes| *bytes = b"\0asm\x01\0\0\0".to_vec());
    assert!(refusal("sql-access", file.path()).contains("wasm32-wasip2"));
    assert!(refusal("sql-access", Path::new("/nowhere/sql_access.wasm")).contains("cannot read the file"));
}

#[test]
fn a_file_too_large_to_be_one_is_not_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(200 << 20).unwrap();
    let said = refusal("sql-access", file.path());
    assert!(
        said.contains("it has 209715200 bytes; at most 67108864 are allowed"),
        "{said}"
    );
}

#[test]
fn flipped_bits_are_refused_or_harmless() {
    let length = std::fs::read(guest("sql-access")).unwrap().len();
    let place = Place::new();
    for step in 1..20 {
        let file = altered(|bytes| bytes[length * step / 20] ^= 0x10);
        std::fs::write(
            place.config(),
            format!("[packs.sql-access]\nsource = {:?}\n", file.path()),
        )
        .unwrap();
        let output = place.run(&["packs", "list"]);
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("task-store"),
            "step {step}"
        );
        assert!(matches!(output.status.code(), Some(0 | 1)), "step {step}");
    }
}

#[test]
fn another_version_of_the_interface() {
    let file = altered(|bytes| replace(bytes, b"@0.1.0", b"@0.9.0"));
    let said = refusal("sql-access", file.path());
    assert!(
        said.contains("needs host API 0.9.0, but this host has 0.1.0"),
        "{said}"
    );
}

#[test]
fn an_import_that_nobody_offers() {
    let file = altered(|bytes| replace(bytes, b"wasi:cli/", b"wasi:xyz/"));
    let said = refusal("sql-access", file.path());
    assert!(
        said.contains("imports interfaces that this host does not provide"),
        "{said}"
    );
}

#[test]
fn a_tool_that_another_pack_has() {
    let said = refusal("name-taken", &guest("name-taken"));
    assert!(
        said.contains("tool `task_get` also belongs to pack `task-store`"),
        "{said}"
    );
}

#[test]
fn wants_that_were_not_granted() {
    let said = refusal("grant-missing", &guest("grant-missing"));
    assert!(
        said.contains(r#"set `grants.process = ["cargo"]` in [packs.grant-missing]"#),
        "{said}"
    );
    assert!(
        said.contains("set `grants.ledger = true` in [packs.grant-missing]"),
        "{said}"
    );
    assert!(
        said.contains("set `grants.artifacts = true` in [packs.grant-missing]"),
        "{said}"
    );
}

#[test]
fn one_that_traps_at_its_start() {
    let said = refusal("start-trap", &guest("start-trap"));
    assert!(said.contains("it does not describe itself"), "{said}");
}

#[test]
fn a_manifest_that_clients_would_choke_on() {
    let said = refusal("manifest-invalid", &guest("manifest-invalid"));
    for problem in [
        "does not match",
        "no title",
        "no description",
        "input.value has no type",
    ] {
        assert!(said.contains(problem), "{problem}: {said}");
    }
}

#[test]
fn a_migration_that_reaches_out_of_its_tables() {
    let said = refusal("migration-foreign", &guest("migration-foreign"));
    for part in [
        "cannot run its migrations: step 0001_init, statement 2",
        "CREATE TRIGGER migration_foreign_quiet",
        "table `core_operations`",
        "append_only = true",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let place = Place::with_guests(&["migration-foreign"]);
    place.run(&["packs", "list"]);
    let tables = place.sql("SELECT name FROM sqlite_master WHERE name LIKE 'migration_foreign%'");
    assert!(tables.is_empty(), "{tables:?}");
}

#[test]
fn a_name_that_is_not_its_own() {
    let said = refusal("mine", &guest("sql-access"));
    assert!(
        said.contains("configure the pack as [packs.sql-access]"),
        "{said}"
    );
}

#[test]
fn a_hash_that_is_not_the_pinned_one() {
    let file = guest("sql-access");
    let pin = "0".repeat(64);
    let place = Place::with(&format!(
        "[packs.sql-access]\nsource = {file:?}\nsha256 = {pin:?}\n"
    ));
    let output = place.run(&["packs", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("its SHA-256 is"), "{said}");
}

#[test]
fn configuration_for_a_pack_that_takes_none() {
    let place = Place::with(&format!(
        "[packs.sql-access]\nsource = {:?}\n[packs.sql-access.config]\ncolour = 1\n",
        guest("sql-access")
    ));
    let output = place.run(&["packs", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("it does not accept a configuration"), "{said}");
}

#[test]
fn a_migration_that_was_changed_after_it_was_applied() {
    let place = Place::with_guests(&["sql-access"]);
    assert!(place.run(&["packs", "list"]).status.success());
    place.sql("UPDATE core_migrations SET hash = 'other' WHERE pack = 'sql-access' RETURNING hash");
    let output = place.run(&["packs", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("was changed after it was applied"), "{said}");
}

#[tokio::test]
async fn schemas_that_use_all_of_json_schema_need_the_word_of_the_operator() {
    const TOOL: &str = "json_schema_2020_12_tool";
    let granted = |more: &str| {
        let place = Place::with(&format!(
            "[packs.conformance]\nsource = {:?}\n{more}grants.workspaces = [\"conformance\"]\n\
             grants.client = [\"model\", \"roots\"]\n[workspaces.conformance]\npath = \"work\"\n",
            guest("conformance")
        ));
        std::fs::create_dir(place.path().join("work")).unwrap();
        place
    };
    let output = granted("").run(&["packs", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let remedy = "if yours do not, set `full_schemas = true` in [packs.conformance]";
    assert!(said.contains(TOOL) && said.contains(remedy), "{said}");

    let place = granted("full_schemas = true\n");
    let session = place.serve(&[]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    let listed = &tools.iter().find(|tool| tool.name == TOOL).unwrap().input_schema;
    let listed = Value::Object((**listed).clone());
    assert_eq!(listed["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(listed["$defs"]["address"]["$anchor"], "addressDef", "{listed:#}");
    assert_eq!(listed["properties"]["address"]["$ref"], "#/$defs/address");
    assert_eq!(listed["allOf"][0]["anyOf"][1]["required"][0], "email");
    for key in ["if", "then", "else"] {
        assert!(listed[key].is_object(), "{listed:#}");
    }
    assert_eq!(listed["additionalProperties"], false);
    // The host keeps what it lists.
    let by_phone =
        json!({"name": "Ada", "contactMethod": "phone", "phone": "1", "address": {"city": "London"}});
    let said = session.ok(TOOL, by_phone).await;
    assert_eq!(said["said"], "Ada London 1");
    for bad in [
        json!({"contactMethod": "phone", "email": "a@example.org"}),
        json!({"contactMethod": "email", "phone": "1"}),
        json!({"email": "a@example.org", "address": {"city": 1}}),
        json!({"email": "a@example.org", "fax": "1"}),
    ] {
        let refused = session.refused(TOOL, bad.clone()).await;
        assert_eq!(refused["code"], "INVALID_ARGUMENTS", "{bad}: {refused:#}");
    }
    session.close().await;
}
