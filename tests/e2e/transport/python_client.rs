//! The Python client, in both eras of the protocol.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::harness::{Place, terminate};

/// Runs a script of the client. The result is what it printed.
fn run(script: &str, arguments: &[&OsStr]) -> String {
    let python =
        std::env::var_os("TOLLGATE_TEST_PYTHON").expect("`cargo xtask test` sets TOLLGATE_TEST_PYTHON");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python");
    let output = Command::new(python)
        .arg(folder.join(script))
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the client's script.
fn drive(mode: &str, server: &[&OsStr]) {
    run("client.py", &[&[OsStr::new(mode)], server].concat());
}

/// Checks the client's rows in the ledger.
fn check(place: &Place) {
    assert_eq!(
        place.ledger(),
        [
            "task_create write ok",
            "task_get read ok",
            "task_get read NOT_FOUND"
        ]
    );
}

fn over_stdio(mode: &str) {
    let place = Place::in_file("");
    let data = place.data();
    drive(mode, &[env!("CARGO_BIN_EXE_tollgate").as_ref(), data.as_os_str()]);
    check(&place);
}

fn over_http(mode: &str) {
    let place = Place::in_file("");
    let mut server = place.serve_http(&["--tier", "full"]);
    drive(mode, &[server.url.as_ref()]);
    // Rows of reads wait for company, at most until the end.
    terminate(server.pid());
    assert!(server.wait().success());
    check(&place);
}

#[test]
fn the_handshake_era() {
    over_stdio("legacy");
}

#[test]
fn the_stateless_era() {
    over_stdio("2026-07-28");
}

#[test]
fn the_handshake_era_over_http() {
    over_http("legacy");
}

#[test]
fn the_stateless_era_over_http() {
    over_http("2026-07-28");
}

#[test]
fn a_call_that_becomes_a_task_is_followed_to_its_end() {
    let place = Place::in_file(&format!(
        "[packs.limit-sleep]\nsource = {:?}\n",
        crate::harness::guest("limit-sleep")
    ));
    let server = place.serve_http(&["--tier", "full"]);
    let (data, config) = (place.data(), place.config());
    let stdio = [
        env!("CARGO_BIN_EXE_tollgate").as_ref(),
        data.as_os_str(),
        config.as_os_str(),
    ];
    for target in [&[OsStr::new(&server.url)][..], &stdio[..]] {
        let call = ["limit_sleep_run", r#"{"how": "thread", "ms": 1500}"#].map(OsStr::new);
        let said = run("tasks.py", &[&call[..], target].concat());
        assert_eq!(said.trim(), r#"{"result": "awake"}"#);
    }
    let ended = "SELECT count(*) || ' ' || state FROM core_tasks GROUP BY state";
    assert_eq!(place.sql(ended), ["2 completed"]);
}
