//! The tool table: names, descriptions, and schemas that every client takes.

use expect_test::expect_file;
use tollgate_sdk::native::table;
use tollgate_sdk::{Pack, Tier};

const PACK: Pack = task_store::PACK;

#[test]
fn every_tool_is_described_and_what_every_client_takes() {
    assert_eq!(table::faults(&PACK), Vec::<String>::new());
}

#[test]
fn few_tools_are_core() {
    let core = PACK.tools.iter().filter(|tool| tool.tier == Tier::Core).count();
    assert!(core <= 6, "{core} tools are core");
}

#[test]
fn the_schemas_as_clients_see_them() {
    expect_file!["snapshots/input_schemas.txt"].assert_eq(&table::text(&PACK));
}
