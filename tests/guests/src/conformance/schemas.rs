//! A tool with an argument that is a header, too.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use super::Said;

/// Take an argument that clients over HTTP repeat in a header.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Routed {
    /// Region that a proxy may route by, such as `eu-west`.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

impl Tool for Routed {
    const NAME: &'static str = "test_x_mcp_header";
    const TITLE: &'static str = "Argument in a header";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Said;

    fn run(self, _cx: &Cx<'_>) -> Result<Said, ToolError> {
        Ok(Said::new(self.region))
    }

    fn text(output: &Said) -> Option<String> {
        Some(output.said.clone())
    }
}
