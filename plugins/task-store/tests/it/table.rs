//! The tool table: names, descriptions, and schemas that every client takes.

use expect_test::{expect, expect_file};
use tollgate_kit_test::{scopes, table};
use tollgate_sdk::Pack;

const PACK: Pack = task_store::PACK;

#[test]
fn every_client_takes_the_tools_and_few_are_core() {
    table(&PACK, 6, &expect_file!["snapshots/input_schemas.txt"]);
}

/// Declaring a scope is a decision: calls about different tasks run side by side on a server, so neither may look at rows that the
/// other one changes. A read whose pages follow a number that all tasks share is a feed.
#[test]
fn calls_about_different_tasks_share_no_rows() {
    expect![[r#"
        task_create []
        task_update_spec ["task_id"]
        task_get -
        task_list -
        task_list_ready -
        task_list_approvals feed
        task_recover -
        task_events feed
        task_transition ["task_id"]
        task_open_circuit ["task_id"]
        task_start_attempt ["task_id"]
        task_finish_attempt -
        task_record_checkpoint ["task_id"]
        task_record_artifact ["task_id"]
        task_append_review ["task_id"]
        task_request_approval -
        task_resolve_approval ["task_id"]
    "#]]
    .assert_eq(&scopes(&PACK));
}
