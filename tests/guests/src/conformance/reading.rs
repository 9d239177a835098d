//! Tools whose replies are resources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use super::Said;

/// Return a fixed text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "test://static-text", "name": "static-text",
    "title": "Static text", "description": "A text for testing.", "mime_type": "text/plain", "listed": true}]))]
pub(crate) struct StaticText {}

impl Tool for StaticText {
    const NAME: &'static str = "test_static_text";
    const TITLE: &'static str = "Static text";
    const EFFECT: Effect = Effect::Read;
    type Output = Said;

    fn run(self, _cx: &Cx<'_>) -> Result<Said, ToolError> {
        Ok(Said::new("This is the content of the static text resource."))
    }

    fn text(output: &Said) -> Option<String> {
        Some(output.said.clone())
    }
}

/// Return a text that clients can subscribe to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "test://watched-resource", "name": "watched-resource",
    "title": "Watched text", "description": "A text to subscribe to.", "mime_type": "text/plain", "listed": true}]))]
pub(crate) struct Watched {}

impl Tool for Watched {
    const NAME: &'static str = "test_watched_resource";
    const TITLE: &'static str = "Watched text";
    const EFFECT: Effect = Effect::Read;
    type Output = Said;

    fn run(self, _cx: &Cx<'_>) -> Result<Said, ToolError> {
        Ok(Said::new("Nothing new."))
    }

    fn text(output: &Said) -> Option<String> {
        Some(output.said.clone())
    }
}

/// Bytes encoded as text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Bytes {
    /// Encoding, base64.
    encoding: String,
    /// Encoded bytes.
    content: String,
}

/// Return a fixed image.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "test://static-binary", "name": "static-binary", "title": "Static picture",
    "description": "A picture for testing.", "mime_type": "image/png", "content": "content", "listed": true}]))]
pub(crate) struct StaticBinary {}

impl Tool for StaticBinary {
    const NAME: &'static str = "test_static_binary";
    const TITLE: &'static str = "Static picture";
    const EFFECT: Effect = Effect::Read;
    type Output = Bytes;

    fn run(self, _cx: &Cx<'_>) -> Result<Bytes, ToolError> {
        // PNG, above.
        let content =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";
        Ok(Bytes {
            encoding: "base64".to_owned(),
            content: content.to_owned(),
        })
    }
}

/// Data about an id.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Data {
    /// Requested id.
    id: String,
    /// True for a resource made from a template.
    #[serde(rename = "templateTest")]
    template_test: bool,
    /// Data about the id.
    data: String,
}

/// Return data about an id.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "test://template/{id}/data", "name": "template-data",
    "title": "Data about an id", "description": "Data for testing.", "mime_type": "application/json"}]))]
pub(crate) struct TemplateData {
    /// Id of the data, from test_ids.
    #[schemars(extend("x-values" = {"tool": "test_ids", "items": "ids", "value": "id"}))]
    id: String,
}

impl Tool for TemplateData {
    const NAME: &'static str = "test_template_data";
    const TITLE: &'static str = "Data about an id";
    const EFFECT: Effect = Effect::Read;
    type Output = Data;

    fn run(self, _cx: &Cx<'_>) -> Result<Data, ToolError> {
        Ok(Data {
            template_test: true,
            data: format!("Data for ID: {}", self.id),
            id: self.id,
        })
    }
}

/// Ids with data.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ids {
    /// All ids.
    ids: Vec<Id>,
}

/// An id with data.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Id {
    /// Text of the id.
    id: String,
}

/// List the ids with data.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListIds {}

impl Tool for ListIds {
    const NAME: &'static str = "test_ids";
    const TITLE: &'static str = "Ids";
    const EFFECT: Effect = Effect::Read;
    type Output = Ids;

    fn run(self, _cx: &Cx<'_>) -> Result<Ids, ToolError> {
        let ids = ["123", "456"].map(|id| Id { id: id.to_owned() });
        Ok(Ids { ids: ids.into() })
    }
}
