//! Declares a migration that never ends.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Migration, Pack, Tool, ToolError, tools};

/// Return at once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {}

impl Tool for Answer {
    const NAME: &'static str = "migration_hang_answer";
    const TITLE: &'static str = "Answer";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
        Ok(Done::new("here"))
    }
}

const PACK: Pack = Pack {
    name: "migration-hang",
    version: "0.1.0",
    summary: "Migrates for ever.",
    tools: tools![Answer],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE migration_hang_rows (id BIGINT PRIMARY KEY);
              INSERT INTO migration_hang_rows (id) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10);
              DELETE FROM migration_hang_rows WHERE id < (SELECT count(*) FROM migration_hang_rows AS a, migration_hang_rows AS b,
                migration_hang_rows AS c, migration_hang_rows AS d, migration_hang_rows AS e, migration_hang_rows AS f, migration_hang_rows AS g,
                migration_hang_rows AS h, migration_hang_rows AS i, migration_hang_rows AS j, migration_hang_rows AS k, migration_hang_rows AS l)",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
