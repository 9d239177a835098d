//! Workspaces in grants: those that exist are suggested, others are refused. And a backtest without a ledger.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use serde_json::{Value, json};

use crate::harness::{Place, guest};

fn said(place: &Place, arguments: &[&str]) -> (bool, String) {
    let output = place.run(arguments);
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said.into_owned())
}

#[test]
fn workspaces_that_exist_are_suggested_and_others_refused() {
    let place = Place::with("[workspaces.main]\npath = \"main\"\n[workspaces.docs]\npath = \"main\"\n");
    std::fs::create_dir(place.path().join("main")).unwrap();
    let file = guest("workspace-access");
    let file = file.to_str().unwrap();
    let (ok, told) = said(&place, &["packs", "add", file]);
    assert!(!ok && told.contains("--grant workspaces=docs,main"), "{told}");
    assert!(!told.contains("default"), "{told}");
    let (_, told) = said(&place, &["packs", "inspect", file]);
    assert!(
        told.contains("grants.workspaces = [\"docs\", \"main\"]"),
        "{told}"
    );
    let (ok, told) = said(&place, &["packs", "add", file, "--grant", "workspaces=mian"]);
    assert!(
        !ok && told.contains("there is no workspace mian; did you mean main?"),
        "{told}"
    );
    assert!(
        !std::fs::read_to_string(place.config())
            .unwrap()
            .contains("[packs.")
    );
    // A server can be started with it, so it can be granted.
    let other = format!("other={}", place.path().join("main").display());
    let grants = [
        "--grant",
        "all",
        "--grant",
        "workspaces=other",
        "--workspace",
        &other,
    ];
    let (ok, told) = said(&place, &[&["packs", "add", file][..], &grants].concat());
    assert!(ok, "{told}");
}

#[test]
fn a_backtest_without_calls_says_so_at_once() {
    let place = Place::in_file("");
    let backtest = ["policies", "backtest", "secret-scan", "--since", "7d"];
    let (ok, told) = said(&place, &backtest);
    assert!(
        !ok && told.contains("has no ledger") && told.contains("--data-dir"),
        "{told}"
    );
    // A data directory without calls.
    place.run(&["packs", "list"]);
    let (ok, told) = said(&place, &backtest);
    assert!(
        ok && told.contains("the ledger has no calls since") && told.contains("arguments = true"),
        "{told}"
    );
    assert!(!told.contains("compil"), "nothing was compiled: {told}");
    let output = place.run(&[&["--json"], &backtest[..]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["backtest"]["tools"], json!([]));
    place.call("envelope_list", &json!({}));
    let (ok, told) = said(&place, &backtest);
    assert!(ok && told.contains("calls since"), "{told}");
}
