//! Tools whose schemas say more than types: keywords of JSON Schema 2020-12, and arguments that are headers, too.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use super::Said;

/// Arguments as the suite writes their schema.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Vocabulary(Map<String, Value>);

impl JsonSchema for Vocabulary {
    fn schema_name() -> Cow<'static, str> {
        "Vocabulary".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "description": "Take what the suite's schema allows.",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
                },
            },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        })
    }
}

impl Tool for Vocabulary {
    const NAME: &'static str = "json_schema_2020_12_tool";
    const TITLE: &'static str = "Keywords of JSON Schema 2020-12";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Said;

    fn run(self, _cx: &Cx<'_>) -> Result<Said, ToolError> {
        Ok(Said::new(format!("{} arguments", self.0.len())))
    }
}

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
