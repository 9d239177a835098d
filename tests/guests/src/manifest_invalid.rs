//! Declares a manifest with several mistakes.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Pack, Tool, ToolError, tools};

#[derive(Deserialize, JsonSchema)]
pub struct Nameless {
    value: serde_json::Value,
}

impl Tool for Nameless {
    const NAME: &'static str = "Invalid Tool";
    const TITLE: &'static str = "";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
        Ok(Done::new(self.value.to_string()))
    }
}

const PACK: Pack = Pack {
    name: "manifest-invalid",
    version: "0.1.0",
    summary: "Describes itself badly.",
    tools: tools![Nameless],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
