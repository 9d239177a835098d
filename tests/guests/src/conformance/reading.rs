//! Tools whose replies have addresses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use super::Said;

/// Read the text that is always the same.
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

/// Read the text that people watch.
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

/// Bytes as text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Bytes {
    /// base64.
    encoding: String,
    /// The bytes.
    content: String,
}

/// Read the picture that is always the same.
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
    /// The id.
    id: String,
    /// That it came from a template.
    #[serde(rename = "templateTest")]
    template_test: bool,
    /// The data.
    data: String,
}

/// Read data about an id.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "test://template/{id}/data", "name": "template-data",
    "title": "Data about an id", "description": "Data for testing.", "mime_type": "application/json"}]))]
pub(crate) struct TemplateData {
    /// Which.
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

/// Ids that there is data about.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ids {
    /// Each of them.
    ids: Vec<Id>,
}

/// One id.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Id {
    /// It.
    id: String,
}

/// List the ids that there is data about.
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
