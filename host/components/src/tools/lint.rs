//! Lint of a tool's surface at load time. The rules are those of the SDK, which packs also run in their tests.

use tollgate_core::effect::Effect;
use tollgate_sdk::surface::{self, Faults, Surface};

use super::spec::ToolSpec;

/// Problems for which some client would refuse a tool.
pub(super) fn check(tool: &ToolSpec) -> Vec<String> {
    let refused = surface::refused(&surface_of(tool));
    refused
        .into_iter()
        .map(|problem| format!("tool {}: {problem}", tool.name))
        .collect()
}

/// Wording of a tool that clients accept but readers would not understand.
pub fn unclear(tool: &ToolSpec) -> Vec<String> {
    faults(tool).unclear
}

/// Descriptions of a tool, its parameters and the fields of its reply that explain nothing beyond their names.
pub fn vague(tool: &ToolSpec) -> Vec<String> {
    faults(tool).vague
}

/// All faults of a tool, for tests of tools that no pack brings.
pub fn all(tool: &ToolSpec) -> Vec<String> {
    faults(tool).into_all().collect()
}

fn faults(tool: &ToolSpec) -> Faults {
    surface::faults(&surface_of(tool))
}

fn surface_of(tool: &ToolSpec) -> Surface<'_> {
    let aliases = tool.aliases.iter().map(String::as_str);
    Surface {
        names: std::iter::once(tool.name.as_str()).chain(aliases).collect(),
        title: &tool.title,
        description: &tool.description,
        effect: match tool.effect {
            Effect::Read => tollgate_sdk::Effect::Read,
            Effect::Write => tollgate_sdk::Effect::Write,
            Effect::Run => tollgate_sdk::Effect::Run,
        },
        destructive: tool.destructive,
        input: &tool.input_schema,
        output: &tool.output_schema,
    }
}
