//! The Python client, in both eras of the protocol.

use std::path::Path;
use std::process::Command;

use crate::harness::Place;

fn drive(mode: &str) {
    let python =
        std::env::var_os("TOLLGATE_TEST_PYTHON").expect("`cargo xtask test` sets TOLLGATE_TEST_PYTHON");
    let place = Place::new();
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/python/client.py"))
        .arg(env!("CARGO_BIN_EXE_tollgate"))
        .arg(place.data())
        .arg(mode)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let ledger = place.ledger();
    assert_eq!(
        ledger,
        [
            "task_create write ok",
            "task_get read ok",
            "task_get read TASK_NOT_FOUND"
        ]
    );
}

#[test]
fn the_handshake_era() {
    drive("legacy");
}

#[test]
fn the_stateless_era() {
    drive("2026-07-28");
}
