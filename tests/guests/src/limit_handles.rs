//! Creates handles and never drops one.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Pack, Tool, ToolError, tools};

/// Create a million handles.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Take {}

impl Tool for Take {
    const NAME: &'static str = "limit_handles_take";
    const TITLE: &'static str = "Take";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
        for _ in 0..1_000_000 {
            std::mem::forget(wasip2::cli::stdout::get_stdout());
        }
        Ok(Done::new("a million handles"))
    }
}

const PACK: Pack = Pack {
    name: "limit-handles",
    version: "0.1.0",
    summary: "Takes handles.",
    tools: tools![Take],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
