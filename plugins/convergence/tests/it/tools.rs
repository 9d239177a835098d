//! The tool table: names, descriptions, and schemas that every client takes.

use convergence::PACK;
use expect_test::expect_file;
use tollgate_sdk::native::table;

#[test]
fn every_tool_is_described_and_what_every_client_takes() {
    assert_eq!(table::faults(&PACK), Vec::<String>::new());
}

#[test]
fn the_schemas_as_clients_see_them() {
    expect_file!["snapshots/input_schemas.txt"].assert_eq(&table::text(&PACK));
}
