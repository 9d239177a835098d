//! Declares a resource with the tool of another pack, which listing and completion must not call.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Pack, Tool, ToolError, tools};

/// Show an item. Its resource lists items with a tool of another pack.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "ones/{id}", "name": "one", "title": "One", "description": "One.",
    "listed": true}]))]
pub struct Look {
    /// Id of an item, completed with a tool of another pack.
    #[schemars(extend("x-values" = {"tool": "envelope_open", "arguments": {"label": "for a foreign resource"},
        "items": "envelopes", "value": "id"}))]
    id: String,
}

impl Tool for Look {
    const NAME: &'static str = "resource_foreign_look";
    const TITLE: &'static str = "Look";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
        Ok(Done::new(self.id))
    }
}

const PACK: Pack = Pack {
    name: "resource-foreign",
    version: "0.1.0",
    summary: "Has others call what it may not.",
    tools: tools![Look],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
