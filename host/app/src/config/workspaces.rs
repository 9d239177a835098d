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
    /// Its path.
    pub path: PathBuf,
    /// Below these, packs that ask for it may write.
    pub write: Vec<String>,
    /// Git commands for packs that ask.
    pub git: Git,
    /// A directory that holds the Git repository, where that is not in `path`.
    pub repository: Option<PathBuf>,
    /// Settings of the repository's own configuration that are accepted.
    pub git_config: Vec<String>,
    /// Commands that packs may run as tests, by name.
    pub tests: BTreeMap<String, Vec<String>>,
}

/// Git commands that packs may run in a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Git {
    /// Nothing.
    None,
    /// Commands that only read.
    #[default]
    Read,
    /// Commits, branches and tags too.
    Write,
}

impl WorkspaceConfig {
    /// Registration that the host opens.
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
