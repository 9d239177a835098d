//! The surface of a tool, as far as loading cares for it. The rules are the SDK's, whose tests of packs know
//! them too.

use tollgate_core::effect::Effect;
use tollgate_sdk::surface::{self, Faults, Surface};

use super::spec::ToolSpec;

/// Everything about a tool that some client would refuse.
pub(super) fn check(tool: &ToolSpec) -> Vec<String> {
    let refused = faults(tool).refused.into_iter();
    refused
        .map(|problem| format!("tool {}: {problem}", tool.name))
        .collect()
}

/// Everything about a tool that no client refuses, and that somebody would not understand.
pub fn unclear(tool: &ToolSpec) -> Vec<String> {
    faults(tool).unclear
}

/// Parameters of a tool whose descriptions explain nothing beyond their names.
pub fn vague(tool: &ToolSpec) -> Vec<String> {
    faults(tool).vague
}

fn faults(tool: &ToolSpec) -> Faults {
    let aliases = tool.aliases.iter().map(String::as_str);
    surface::faults(&Surface {
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
    })
}
