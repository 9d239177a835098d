//! List of tools as clients see it, built once.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{Prompt, PromptArgument, Tool, ToolAnnotations};
use serde_json::Value;
use tollgate_components::catalog::Catalog;
use tollgate_components::tools::ToolSpec;
use tollgate_core::effect::Effect;
use tollgate_gate::core_tools::TOOL_CALL;

use super::brief;

/// Maximum number of tools on one page.
const PAGE_TOOLS: usize = 50;
/// Longest instructions, in bytes: clients show them to the model in every session.
const MAX_INSTRUCTIONS: usize = 1_600;

/// The detail of schemas in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schemas {
    /// Shortened: names, types, and whatever those do not make clear.
    Brief,
    /// As the packs wrote them.
    Whole,
}

/// Listed tools by name, and the instructions for clients.
#[derive(PartialEq)]
pub struct Listing {
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    instructions: String,
}

/// Error for a cursor that this listing did not issue.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownCursor;

impl Listing {
    /// Lists a catalog's tools, prompts and resources.
    pub fn new(catalog: &Catalog, schemas: Schemas) -> Listing {
        Listing {
            tools: catalog
                .listed()
                .map(|tool| match tool.spec.name.as_str() {
                    TOOL_CALL => tool_call_definition(&tool.spec, catalog, schemas),
                    _ => definition(&tool.spec, schemas),
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

    /// Instructions for a client at the start of a session.
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// Page after a cursor, and the cursor of the next page.
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
        let page = &rest[..rest.len().min(PAGE_TOOLS)];
        let next = (rest.len() > PAGE_TOOLS)
            .then(|| {
                page.last()
                    .map(|tool| URL_SAFE_NO_PAD.encode(tool.name.as_bytes()))
            })
            .flatten();
        Ok((page.to_vec(), next))
    }
}

/// MCP definition of a tool.
pub(super) fn definition(spec: &ToolSpec, schemas: Schemas) -> Tool {
    let (input, output) = match schemas {
        Schemas::Brief => (
            brief::input(&spec.name, &spec.input_schema),
            Arc::new(brief::output(&spec.output_schema)),
        ),
        Schemas::Whole => (spec.input_schema.clone(), Arc::clone(&spec.output_schema)),
    };
    let annotations = ToolAnnotations::from_raw(
        None,
        Some(spec.effect == Effect::Read),
        Some(spec.destructive),
        Some(spec.idempotent),
        Some(spec.open_world),
    );
    Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(input))
        .with_title(spec.title.clone())
        .with_raw_output_schema(output)
        .with_annotations(annotations)
}

/// MCP definition of the tool that calls other tools. Its hints cover the effects of all of them.
fn tool_call_definition(spec: &ToolSpec, catalog: &Catalog, schemas: Schemas) -> Tool {
    let any = |may: fn(&ToolSpec) -> bool| catalog.all().any(|tool| may(&tool.spec));
    let annotations = ToolAnnotations::from_raw(
        None,
        Some(!any(|spec| spec.effect != Effect::Read)),
        Some(any(|spec| spec.destructive)),
        Some(!any(|spec| !spec.idempotent)),
        Some(any(|spec| spec.open_world)),
    );
    definition(spec, schemas).with_annotations(annotations)
}

/// MCP definition of a prompt.
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

/// Instructions that apply to every call, and those of each pack as far as there is room.
fn instructions(catalog: &Catalog) -> String {
    let mut text = String::from(
        "Each call is one transaction and one ledger row. A refusal is a result with an `error`: `blockers` lists every reason, \
         and `next_call` can be called as it is. Unless the message says otherwise, nothing was changed. An envelope \
         (envelope_open) limits mutations, test runs and time. Your calls count in it until envelope_close. If it \
         closes by itself, stop and report.",
    );
    let has_envelopes = catalog.find("envelope_open").is_some();
    if !has_envelopes {
        text.truncate(text.find(" An envelope").unwrap_or(text.len()));
    }
    let unlisted = catalog.all().count() - catalog.listed().count();
    if unlisted > 0 {
        text.push_str(&format!(
            " {unlisted} more tools are not listed: tool_search finds them and has each pack's guide (`pack`), tool_describe \
             shows arguments, tool_call calls them and takes a `next_call` as it is."
        ));
    }
    let guides: Vec<(&str, &str)> = catalog
        .packs()
        .iter()
        .map(|pack| (pack.manifest.name.as_str(), pack.manifest.instructions.trim()))
        .filter(|(_, guide)| !guide.is_empty())
        .collect();
    let mut left = MAX_INSTRUCTIONS.saturating_sub(text.len());
    for (place, (name, guide)) in guides.iter().enumerate() {
        // Packs share the remaining room equally. Unused room passes to the following packs.
        let share = left / (guides.len() - place);
        let head = format!("\n\n{name}: ");
        let guide = sentences(guide, share.saturating_sub(head.len()));
        if !guide.is_empty() {
            text.push_str(&head);
            text.push_str(guide);
            left = left.saturating_sub(head.len() + guide.len());
        }
    }
    text
}

/// Leading whole sentences of a text that fit into a number of bytes.
fn sentences(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let cut = tollgate_core::text::cut(text, bytes);
    let end = [". ", ".\n", "; "].iter().filter_map(|end| cut.rfind(end)).max();
    end.map_or("", |end| cut[..=end].trim_end_matches([';', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_ends_with_a_sentence() {
        let guide = "First this. Then that; and more. The end.";
        assert_eq!(sentences(guide, 100), guide);
        assert_eq!(sentences(guide, 35), "First this. Then that; and more.");
        assert_eq!(sentences(guide, 30), "First this. Then that");
        assert_eq!(sentences(guide, 5), "");
    }

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
