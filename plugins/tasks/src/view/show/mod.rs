//! Everything recorded about one plan, task, step or node, as a list of parts that pages divide.

mod page;
mod parts;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};

pub(crate) use self::page::{Cursor, page};
pub(crate) use self::parts::{of_node, of_root, of_step};

/// A part of a record, such as its title, a criterion, a note or a piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Part {
    /// Kind of the part, for example title, test, note or evidence.
    pub kind: &'static str,
    /// Id of the part, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Short facts by name, such as status or exit_code.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Json>,
    /// Text of the part, or the piece of it that fits the page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Number of characters of the text on earlier pages.
    #[serde(skip_serializing_if = "is_zero")]
    pub from: usize,
    /// Location of the text, if it is too large to be loaded with the other parts.
    #[serde(skip)]
    #[schemars(skip)]
    pub body: Option<Body>,
}

/// A body of evidence in storage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Body {
    pub root: String,
    pub evidence: String,
}

impl Part {
    /// A part with text.
    pub(crate) fn text(kind: &'static str, text: &str) -> Part {
        Part {
            kind,
            id: None,
            facts: Map::new(),
            text: text.to_owned(),
            from: 0,
            body: None,
        }
    }

    /// A part with facts. Facts that are null are left out.
    pub(crate) fn facts(kind: &'static str, facts: Json) -> Part {
        let mut part = Part::text(kind, "");
        if let Json::Object(facts) = facts {
            part.facts = facts;
            part.facts.retain(|_, fact| !fact.is_null());
        }
        part
    }

    pub(crate) fn with_id(mut self, id: &str) -> Part {
        self.id = Some(id.to_owned());
        self
    }

    pub(crate) fn with_text(mut self, text: &str) -> Part {
        text.clone_into(&mut self.text);
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}
