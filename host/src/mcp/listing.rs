//! Tools as clients see them, made once.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{Prompt, PromptArgument, Tool, ToolAnnotations};
use serde_json::Value;

use crate::core_tools::RELAY;
use crate::packs::{Catalog, Effect, ToolSpec};

/// Tools of one page.
const PAGE: usize = 50;
/// Longest instructions, in bytes.
const MAX_INSTRUCTIONS: usize = 8 << 10;

/// The listed tools, by name, and what a client is told at the start.
#[derive(PartialEq)]
pub struct Listing {
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    instructions: String,
}

/// A cursor that this listing did not give.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownCursor;

impl Listing {
    /// What a catalog lists.
    pub fn new(catalog: &Catalog) -> Listing {
        Listing {
            tools: catalog
                .listed()
                .map(|tool| match tool.spec.name.as_str() {
                    RELAY => relay_definition(&tool.spec, catalog),
                    _ => definition(&tool.spec),
                })
                .collect(),
            prompts: catalog
                .prompts()
                .map(|prompt| prompt_definition(&prompt.spec))
                .collect(),
            instructions: instructions(catalog),
        }
    }

    /// All listed tools.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// All prompts.
    pub fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    /// What a client is told at the start.
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// A page after a cursor, and the cursor of the next.
    pub fn page(&self, cursor: Option<&str>) -> Result<(Vec<Tool>, Option<String>), UnknownCursor> {
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let last = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| UnknownCursor)?;
                let at = self.tools.iter().position(|tool| tool.name.as_bytes() == last);
                at.ok_or(UnknownCursor)? + 1
            }
        };
        let rest = &self.tools[start..];
        let page = &rest[..rest.len().min(PAGE)];
        let next = (rest.len() > PAGE)
            .then(|| {
                page.last()
                    .map(|tool| URL_SAFE_NO_PAD.encode(tool.name.as_bytes()))
            })
            .flatten();
        Ok((page.to_vec(), next))
    }
}

/// A tool's definition on the wire.
fn definition(spec: &ToolSpec) -> Tool {
    let annotations = ToolAnnotations::from_raw(
        Some(spec.title.clone()),
        Some(spec.effect == Effect::Read),
        Some(spec.destructive),
        Some(spec.idempotent),
        Some(spec.open_world),
    );
    Tool::new(
        spec.name.clone(),
        spec.description.clone(),
        Arc::new(spec.input_schema.clone()),
    )
    .with_title(spec.title.clone())
    .with_raw_output_schema(Arc::new(spec.output_schema.clone()))
    .with_annotations(annotations)
}

/// The definition of the tool that calls others: it may do whatever one of them may.
fn relay_definition(spec: &ToolSpec, catalog: &Catalog) -> Tool {
    let any = |may: fn(&ToolSpec) -> bool| catalog.all().any(|tool| may(&tool.spec));
    let annotations = ToolAnnotations::from_raw(
        Some(spec.title.clone()),
        Some(!any(|spec| spec.effect != Effect::Read)),
        Some(any(|spec| spec.destructive)),
        Some(!any(|spec| !spec.idempotent)),
        Some(any(|spec| spec.open_world)),
    );
    definition(spec).with_annotations(annotations)
}

/// A prompt's definition on the wire.
fn prompt_definition(spec: &ToolSpec) -> Prompt {
    let required = spec.input_schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let properties = spec.input_schema.get("properties").and_then(Value::as_object);
    let arguments = properties.into_iter().flatten().map(|(name, property)| {
        let description = property.get("description").and_then(Value::as_str);
        PromptArgument::new(name)
            .with_description(description.unwrap_or_default())
            .with_required(is_required(name))
    });
    Prompt::new(&spec.name, Some(&spec.description), Some(arguments.collect())).with_title(&spec.title)
}

fn instructions(catalog: &Catalog) -> String {
    let mut text = String::from(
        "Tollgate runs each call as one transaction with a ledger row. A refusal is a result with an `error`: \
         `blockers` lists every reason at once, `next_call` is ready to run, and nothing was changed.",
    );
    let unlisted = catalog.all().count() - catalog.listed().count();
    if catalog.is_compact() {
        text.push_str(&format!(
            " The {unlisted} tools named below and in refusals are not listed: find them with tool_search, see their \
             arguments with tool_describe, and call them by tool_call, which takes a `next_call` as it is."
        ));
    } else if unlisted > 0 {
        text.push_str(&format!(
            " {unlisted} more tools answer by name without being listed; `serve --tier full` lists them."
        ));
    }
    for pack in catalog.packs() {
        let about = pack.manifest.instructions.trim();
        if !about.is_empty() {
            text.push_str(&format!("\n\n{}: {about}", pack.manifest.name));
        }
    }
    crate::text::cut(&text, MAX_INSTRUCTIONS).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_gap_or_repeat() {
        let tools: Vec<Tool> = (0..120)
            .map(|number| Tool::new(format!("tool_{number:03}"), "A tool", Arc::default()))
            .collect();
        let listing = Listing {
            tools: tools.clone(),
            prompts: Vec::new(),
            instructions: String::new(),
        };
        let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let (page, next) = listing.page(cursor.as_deref()).unwrap();
            seen.extend(page);
            pages += 1;
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!((seen, pages), (tools, 3));
        assert_eq!(listing.page(Some("nonsense")), Err(UnknownCursor));
    }
}
