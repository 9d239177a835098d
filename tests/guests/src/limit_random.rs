//! Requests more random bytes than memory permits.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Pack, Tool, ToolError, tools};

/// Request random bytes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draw {
    /// Number of bytes to request.
    bytes: u64,
}

impl Tool for Draw {
    const NAME: &'static str = "limit_random_draw";
    const TITLE: &'static str = "Draw";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
        let drawn = wasip2::random::random::get_random_bytes(self.bytes);
        Ok(Done::new(format!("{} bytes", drawn.len())))
    }
}

const PACK: Pack = Pack {
    name: "limit-random",
    version: "0.1.0",
    summary: "Wants randomness.",
    tools: tools![Draw],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
