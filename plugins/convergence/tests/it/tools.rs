//! The tool table: names, descriptions, and schemas that every client takes.

use convergence::PACK;
use expect_test::{expect, expect_file};
use tollgate_kit_test::table;
use tollgate_sdk::Effect;

#[test]
fn every_client_takes_the_tools() {
    table(
        &PACK,
        PACK.tools.len(),
        &expect_file!["snapshots/input_schemas.txt"],
    );
}

/// A new tool that writes needs a decision: with the scope, it may only change rows of the workspace that it names, and may
/// not decide on rows of others.
#[test]
fn every_tool_that_writes_has_a_scope_or_sees_no_other_call() {
    let mut log = String::new();
    for tool in PACK.tools {
        let schema = (tool.input_schema)();
        match (tool.effect, schema.get("x-scope")) {
            (Effect::Write, Some(scope)) => log += &format!("{} {scope}\n", tool.name),
            (Effect::Write, None) => log += &format!("{} alone\n", tool.name),
            (_, scope) => assert_eq!(scope, None, "{}", tool.name),
        }
    }
    expect![[r#"
        test_report ["workspace"]
    "#]]
    .assert_eq(&log);
}
