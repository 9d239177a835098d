//! The tool table: names, descriptions, and schemas that every client takes.

use expect_test::expect_file;
use tollgate_kit_test::table;

#[test]
fn every_client_takes_the_tools_and_few_are_core() {
    table(&task_store::PACK, 6, &expect_file!["snapshots/input_schemas.txt"]);
}
