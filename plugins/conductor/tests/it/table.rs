//! The tool table: names, descriptions, and schemas that every client takes.

use expect_test::expect_file;
use tollgate_kit_test::table;
use tollgate_sdk::Pack;

const PACK: Pack = conductor::PACK;

#[test]
fn every_client_takes_the_tools_and_few_are_core() {
    table(&PACK, 8, &expect_file!["snapshots/input_schemas.txt"]);
}

#[test]
fn ids_of_any_case_are_one_scope() {
    for tool in PACK.tools {
        let schema = (tool.input_schema)();
        let folds = schema["x-scope-folds"] == true;
        assert_eq!(schema.get("x-scope").is_some(), folds, "{}", tool.name);
    }
}
