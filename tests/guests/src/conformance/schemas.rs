//! Tools with unusual schemas: an argument that is also a header, and a schema that uses all of JSON Schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
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

/// Arguments whose schema uses all of JSON Schema 2020-12.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Contact {
    name: Option<String>,
    address: Option<Address>,
    contact_method: Option<Method>,
    phone: Option<String>,
    email: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Address {
    street: Option<String>,
    city: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Method {
    Phone,
    Email,
}

/// The schema that the suite asks for. `schemars` derives no conditions and no anchors.
impl JsonSchema for Contact {
    fn schema_name() -> Cow<'static, str> {
        "Contact".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "description": "Take the address of somebody, with a phone number or an e-mail address.",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                "additionalProperties": false,
            }},
            "properties": {
                "name": {"type": "string", "description": "Name of the person, for example Ada."},
                "address": {"$ref": "#/$defs/address", "description": "Address of the person."},
                "contactMethod": {
                    "type": "string", "enum": ["phone", "email"],
                    "description": "Means by which the person is reached. `phone` needs a phone number.",
                },
                "phone": {"type": "string", "description": "Phone number, for example +1 555 0100."},
                "email": {"type": "string", "description": "E-mail address, for example ada@example.org."},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        })
    }
}

impl Tool for Contact {
    const NAME: &'static str = "json_schema_2020_12_tool";
    const TITLE: &'static str = "All of JSON Schema";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Said;

    fn run(self, _cx: &Cx<'_>) -> Result<Said, ToolError> {
        let by = match self.contact_method {
            Some(Method::Phone) => self.phone.unwrap_or_default(),
            Some(Method::Email) | None => self.email.unwrap_or_default(),
        };
        let place = self
            .address
            .map(|at| [at.street, at.city].into_iter().flatten().collect::<Vec<_>>());
        let place = place.unwrap_or_default().join(", ");
        Ok(Said::new(format!(
            "{} {place} {by}",
            self.name.unwrap_or_default()
        )))
    }

    fn text(output: &Said) -> Option<String> {
        Some(output.said.clone())
    }
}
