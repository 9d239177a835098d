//! The tool table: names, descriptions, and schemas that every client takes.

use convergence::PACK;
use expect_test::expect_file;
use tollgate_kit_test::table;

#[test]
fn every_client_takes_the_tools() {
    table(
        &PACK,
        PACK.tools.len(),
        &expect_file!["snapshots/input_schemas.txt"],
    );
}
