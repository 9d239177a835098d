//! Pages of packs: the reading tools that define a page, and calls of these tools through the gate.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tollgate_core::identity::Identity;

use crate::answers::Refusal;

/// Page that shows the reply of a pack's tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackPage {
    /// Tool of the page, which only reads.
    pub tool: String,
    /// Pack of the tool.
    pub pack: String,
    /// Title of the page.
    pub title: String,
    /// True if entries are shown as a tree.
    pub is_tree: bool,
    /// Members of the reply that hold the entries, each with the member of an entry that is its key.
    pub items: Vec<(String, Option<String>)>,
    /// Member of an entry that identifies its tree.
    pub group: Option<String>,
    /// Constant arguments.
    pub arguments: Map<String, Value>,
    /// Arguments taken from the page's address.
    pub asks: Vec<String>,
    /// Arguments for continuing a reply: the address may pass the reply's `next_NAME` as `NAME`.
    pub cursors: Vec<String>,
    /// Arguments that are numbers.
    pub integers: Vec<String>,
    /// Tool of the page that an entry opens, and the source of its arguments.
    pub opens: Option<(String, BTreeMap<String, String>)>,
}

/// Reply of a tool, or its refusal.
pub type Replied = Result<Value, Refusal>;

/// Source of the packs' pages.
pub trait PackPages: Send + Sync + 'static {
    /// Pages of all packs.
    fn pages(&self) -> Vec<PackPage>;
    /// Calls the tool of a page through the gate, on behalf of an identity.
    fn call<'a>(
        &'a self,
        page: &'a PackPage,
        arguments: Map<String, Value>,
        identity: Option<Identity>,
    ) -> BoxFuture<'a, Replied>;
}
