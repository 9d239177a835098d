//! Addition of a pack's tools and prompts to a catalog.

use std::sync::Arc;

use serde_json::json;
use tollgate_core::effect::Effect;

use super::Catalog;
use super::entry::{Body, ENVELOPE_ARGUMENT, ToolEntry, validator};
use super::selection::{Selection, globs};
use crate::packs::Pack;
use crate::tools::{TaskMode, ToolSpec, alternate_schema, declared, headers, host_tool, task_mode};

impl Catalog {
    pub(super) fn add(&mut self, pack: Pack, selection: &Selection) {
        let pack = Arc::new(pack);
        let excluded = globs(&pack.exclude);
        for spec in &pack.manifest.tools {
            if !excluded.is_match(&spec.name) {
                self.add_tool(Body::Guest(Arc::clone(&pack)), spec.clone(), selection);
            }
        }
        for spec in &pack.manifest.prompts {
            if !excluded.is_match(&spec.name) {
                self.add_prompt(&pack, spec, selection);
            }
        }
        self.packs.push(pack);
    }

    fn add_prompt(&mut self, pack: &Arc<Pack>, spec: &ToolSpec, selection: &Selection) {
        if !selection.has(spec) {
            return;
        }
        let entry = ToolEntry {
            body: Body::Guest(Arc::clone(pack)),
            spec: spec.clone(),
            arguments: validator(Body::Guest(Arc::clone(pack)), spec),
            meter: Arc::default(),
            correlated: false,
            inherited: Vec::new(),
            charge: None,
            looks: None,
            scope: None,
            is_feed: false,
            workspace: None,
            has_headers: false,
            task: TaskMode::Never,
            view: None,
        };
        self.prompts.insert(spec.name.clone(), Arc::new(entry));
    }

    pub(super) fn add_tool(&mut self, body: Body, mut spec: ToolSpec, selection: &Selection) {
        if !selection.has(&spec) {
            return;
        }
        let arguments = validator(body.clone(), &spec);
        alternate_schema::hide(&mut spec.input_schema);
        let pack = match &body {
            Body::Guest(pack) => pack.manifest.name.as_str(),
            Body::Core(_) => host_tool::PACK,
        };
        // Checked before, together with the pack.
        let declared = declared::take(pack, &mut spec).unwrap_or_default();
        let task = task_mode::take(&mut spec.input_schema, spec.effect).unwrap_or_default();
        self.resources.extend(declared.resources);
        let values = declared.values.into_iter();
        self.values
            .extend(values.map(|(argument, values)| ((pack.to_owned(), argument), values)));
        let correlated = matches!(body, Body::Guest(_)) && offer_envelope(&mut spec);
        for alias in &spec.aliases {
            self.aliases.insert(alias.clone(), spec.name.clone());
        }
        let has_headers = headers::is_annotated(&spec.input_schema);
        let is_believed = matches!(&body, Body::Guest(pack) if pack.granted.charges);
        let entry = ToolEntry {
            body,
            spec,
            arguments,
            meter: Arc::default(),
            correlated,
            inherited: declared.inherited,
            charge: declared.charge.filter(|_| is_believed),
            looks: declared.looks,
            scope: declared.scope,
            is_feed: declared.is_feed,
            workspace: declared.workspace,
            has_headers,
            task,
            view: declared.view,
        };
        self.tools.insert(entry.spec.name.clone(), Arc::new(entry));
    }
}

/// Adds `envelope_id` to the listed arguments of a tool that may change something. Tools that only read accept the
/// argument too, unlisted, to keep their definitions short. Returns whether the argument is the gate's.
fn offer_envelope(spec: &mut ToolSpec) -> bool {
    let effect = spec.effect;
    let Some(properties) = spec
        .input_schema
        .get_mut("properties")
        .and_then(|value| value.as_object_mut())
    else {
        return true;
    };
    if properties.contains_key(ENVELOPE_ARGUMENT) {
        return false;
    }
    if effect != Effect::Read {
        properties.insert(
            ENVELOPE_ARGUMENT.to_owned(),
            json!({"type": "string", "description": "Envelope id from envelope_open."}),
        );
    }
    true
}
