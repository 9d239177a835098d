//! `[workspaces.NAME]` tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use tollgate_sandbox::workspaces::Registration;
use tollgate_sdk::permit::GitTerms;
use tollgate_sdk::{GitAccess, TestCommand, WorkspaceInfo};

/// One `[workspaces.NAME]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceConfig {
    /// Path of the directory.
    pub path: PathBuf,
    /// Prefixes below which packs that request it may write.
    pub write: Vec<String>,
    /// Permitted Git commands, for packs that request them.
    pub git: Git,
    /// Directory with the Git repository, if it is not in `path`.
    pub repository: Option<PathBuf>,
    /// Accepted settings of the repository's own configuration.
    pub git_config: Vec<String>,
    /// Commands that packs may run as tests, by name.
    pub tests: BTreeMap<String, Vec<String>>,
}

/// Git commands that packs may run in a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Git {
    /// No commands.
    None,
    /// Commands that only read.
    #[default]
    Read,
    /// Also commits, branches and tags.
    Write,
}

impl WorkspaceConfig {
    /// Registration for the host.
    pub(super) fn registration(&self, name: &str) -> Registration {
        let tests = self.tests.iter().map(|(name, argv)| TestCommand {
            name: name.clone(),
            argv: argv.clone(),
        });
        Registration {
            path: self.path.clone(),
            info: WorkspaceInfo {
                name: name.to_owned(),
                write_prefixes: self.write.clone(),
                git: match self.git {
                    Git::None => None,
                    Git::Read => Some(GitAccess::Read),
                    Git::Write => Some(GitAccess::Write),
                },
                tests: tests.collect(),
            },
            git: GitTerms {
                repository: self.repository.clone(),
                accepted: self.git_config.clone(),
            },
        }
    }
}
