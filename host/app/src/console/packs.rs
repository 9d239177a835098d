//! Pages of packs on the console, as calls of their tools through the gate.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tollgate_components::catalog::ToolEntry;
use tollgate_components::tools::{Form, View};
use tollgate_console::{PackPage, PackPages, Refusal, Replied};
use tollgate_core::effect::Effect;
use tollgate_core::identity::Identity;
use tollgate_core::share::Share;
use tollgate_gate::{Call, Caller, Gate};

use super::CLIENT_NAME;

/// Packs behind a gate.
pub(super) struct Packs {
    gate: Arc<Gate>,
}

impl Packs {
    pub(super) fn new(gate: &Arc<Gate>) -> Packs {
        Packs {
            gate: Arc::clone(gate),
        }
    }

    async fn reply(
        &self,
        page: &PackPage,
        arguments: Map<String, Value>,
        identity: Option<Identity>,
    ) -> Replied {
        let catalog = self.gate.catalog();
        let tool = catalog.find(&page.tool);
        // The catalog can have changed after the page was chosen.
        if !tool.is_some_and(|tool| tool.view.is_some() && tool.spec.effect == Effect::Read) {
            return Err(unknown(page));
        }
        let caller = Caller {
            share: Share::of(identity.as_ref(), None),
            identity,
            client: Some(CLIENT_NAME.to_owned()),
            connection: self.gate.new_connection(),
            ..Caller::default()
        };
        let call = Call::new(&page.tool, arguments, caller);
        let outcome = self.gate.call(call).await.map_err(|_| unknown(page))?;
        match outcome.result {
            Ok(reply) => Ok(Value::Object(reply.structured())),
            Err(err) => Err(Refusal {
                code: err.code,
                message: err.message,
                remediation: err.remediation,
            }),
        }
    }
}

impl PackPages for Packs {
    fn pages(&self) -> Vec<PackPage> {
        let catalog = self.gate.catalog();
        let tools = catalog.all();
        tools
            .filter_map(|tool| Some(page(tool, tool.view.as_ref()?)))
            .collect()
    }

    fn call<'a>(
        &'a self,
        page: &'a PackPage,
        arguments: Map<String, Value>,
        identity: Option<Identity>,
    ) -> BoxFuture<'a, Replied> {
        Box::pin(self.reply(page, arguments, identity))
    }
}

fn page(tool: &ToolEntry, view: &View) -> PackPage {
    let cursors = cursors(tool, view);
    let items = view.items.iter();
    let opens = view.opens.as_ref();
    PackPage {
        tool: view.tool.clone(),
        pack: view.pack.clone(),
        title: view.title.clone(),
        is_tree: view.form == Form::Tree,
        items: items
            .map(|items| (items.list.clone(), items.key.clone()))
            .collect(),
        group: view.group.clone(),
        arguments: view.arguments.clone(),
        asks: view.asks.clone(),
        integers: view
            .asks
            .iter()
            .chain(&cursors)
            .filter(|name| is_integer(tool, name))
            .cloned()
            .collect(),
        cursors,
        opens: opens.map(|opens| (opens.tool.clone(), opens.arguments.clone())),
    }
}

/// Arguments for the next call that a reply contains as `next_NAME`.
fn cursors(tool: &ToolEntry, view: &View) -> Vec<String> {
    let output = properties(&tool.spec.output_schema);
    let input = properties(&tool.spec.input_schema).into_iter().flatten();
    let names = input.map(|(name, _)| name.clone());
    names
        .filter(|name| output.is_some_and(|output| output.contains_key(&format!("next_{name}"))))
        .filter(|name| !view.asks.contains(name))
        .collect()
}

fn is_integer(tool: &ToolEntry, name: &str) -> bool {
    let kind = properties(&tool.spec.input_schema)
        .and_then(|known| known.get(name))
        .and_then(|property| property.get("type"));
    let is_one = |kind: &Value| kind.as_str() == Some("integer");
    kind.is_some_and(|kind| is_one(kind) || kind.as_array().is_some_and(|all| all.iter().any(is_one)))
}

fn properties(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn unknown(page: &PackPage) -> Refusal {
    Refusal {
        code: "UNKNOWN_TOOL".to_owned(),
        message: format!("there is no tool {} with a page", page.tool),
        remediation: "Open the console again: the packs have changed.".to_owned(),
    }
}
