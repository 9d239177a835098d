//! Requests capabilities that are not granted.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Pack, Tool, ToolError, Want, tools};

/// Say hello.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {}

impl Tool for Hello {
    const NAME: &'static str = "grant_missing_hello";
    const TITLE: &'static str = "Hello";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
        Ok(Done::new("hello"))
    }
}

const PACK: Pack = Pack {
    name: "grant-missing",
    version: "0.1.0",
    summary: "Wants too much.",
    wants: &[Want::Process("cargo"), Want::LedgerQuery, Want::Artifacts],
    tools: tools![Hello],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
