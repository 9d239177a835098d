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
    const NAME: &'static str = "migrant_answer";
    const TITLE: &'static str = "Answer";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
        Ok(Done::new("here"))
    }
}

const PACK: Pack = Pack {
    name: "migrant",
    version: "0.1.0",
    summary: "Migrates for ever.",
    tools: tools![Answer],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE migrant_rows (id BIGINT PRIMARY KEY);
              INSERT INTO migrant_rows (id) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10);
              DELETE FROM migrant_rows WHERE id < (SELECT count(*) FROM migrant_rows AS a, migrant_rows AS b,
                migrant_rows AS c, migrant_rows AS d, migrant_rows AS e, migrant_rows AS f, migrant_rows AS g,
                migrant_rows AS h, migrant_rows AS i, migrant_rows AS j, migrant_rows AS k, migrant_rows AS l)",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
