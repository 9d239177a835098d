//! Pages of packs: which of their tools that read make a page, and calls of these tools through the gate.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tollgate_core::identity::Identity;

use crate::answers::Refusal;

/// Page that shows the reply of a pack's tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackPage {
    /// The tool, which only reads.
    pub tool: String,
    /// Pack of the tool.
    pub pack: String,
    /// Title of the page.
    pub title: String,
    /// True if entries are shown as a tree.
    pub is_tree: bool,
    /// Members of the reply that hold the entries, each with the member of an entry that is its key.
    pub items: Vec<(String, Option<String>)>,
    /// Member of an entry by which trees are told apart.
    pub group: Option<String>,
    /// Arguments that are always the same.
    pub arguments: Map<String, Value>,
    /// Arguments that the page's address gives.
    pub asks: Vec<String>,
    /// Arguments by which a reply goes on: the address may give `next_NAME` of the reply as `NAME`.
    pub cursors: Vec<String>,
    /// Arguments that are numbers.
    pub integers: Vec<String>,
    /// Tool of the page that an entry opens, and where its arguments come from.
    pub opens: Option<(String, BTreeMap<String, String>)>,
}

/// Reply of a tool, or its refusal.
pub type Replied = Result<Value, Refusal>;

/// Packs as the console shows them.
pub trait PackPages: Send + Sync + 'static {
    /// Pages of all packs.
    fn pages(&self) -> Vec<PackPage>;
    /// Calls the tool of a page through the gate, in the name of an identity.
    fn call<'a>(
        &'a self,
        page: &'a PackPage,
        arguments: Map<String, Value>,
        identity: Option<Identity>,
    ) -> BoxFuture<'a, Replied>;
}
