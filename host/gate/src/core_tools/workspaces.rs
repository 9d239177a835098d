//! `workspace_list`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_components::tools::Tier;
use tollgate_core::effect::Effect;
use tollgate_sdk::GitAccess;

use super::{CoreCx, CoreError, Tool};

/// List the registered workspaces with their paths, Git access and tests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {}

/// Registered workspaces.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    /// Workspaces by name. Packs may be granted some of them only.
    workspaces: Vec<View>,
}

/// A registered workspace.
#[derive(Serialize, JsonSchema)]
struct View {
    /// Name for the argument `workspace` of tools.
    workspace: String,
    /// Path on the host's machine.
    path: String,
    /// Git access of packs: none, read or write.
    git: &'static str,
    /// Commit of the work tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_head: Option<String>,
    /// Command of each registered test, by name.
    tests: BTreeMap<String, Vec<String>>,
    /// Path prefixes that packs may write to.
    write: Vec<String>,
}

impl Tool for List {
    const NAME: &'static str = "workspace_list";
    const TITLE: &'static str = "List workspaces";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Listed;

    fn run(self, cx: &CoreCx<'_>) -> Result<Listed, CoreError> {
        let names = cx.workspaces.names();
        let found = names.iter().filter_map(|name| cx.workspaces.get(name));
        let workspaces = found.map(|workspace| {
            let info = &workspace.info;
            let tests = info.tests.iter();
            View {
                workspace: info.name.clone(),
                path: workspace.path.display().to_string(),
                git: match info.git {
                    None => "none",
                    Some(GitAccess::Read) => "read",
                    Some(GitAccess::Write) => "write",
                },
                git_head: workspace.git_head(),
                tests: tests.map(|test| (test.name.clone(), test.argv.clone())).collect(),
                write: info.write_prefixes.clone(),
            }
        });
        Ok(Listed {
            workspaces: workspaces.collect(),
        })
    }
}
