//! Permissions of a pack for commands and writes: pure rules shared by the host and the native backend.

mod git;
mod repository;

use crate::workspace::covers;
use crate::{Command, GitAccess, Want, WorkspaceInfo};

pub use git::{
    Ask as GitAsk, Bounds as GitBounds, GitCommand, TreeWrites, environment as git_environment, names_filters,
};
pub use repository::{GitTerms, Repository, Unusable, find as repository, no_repository};

/// Requested capabilities, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Workspaces to read; `*` means all.
    pub read: Vec<String>,
    /// Prefixes to write below.
    pub write: Vec<String>,
    /// Programs to run with any arguments.
    pub programs: Vec<String>,
    /// True if the pack runs registered test commands.
    pub tests: bool,
    /// Access to git, if requested.
    pub git: Option<GitAccess>,
}

impl Asked {
    /// Collects the wants of a manifest.
    #[must_use]
    pub fn of(wants: &[Want]) -> Asked {
        let mut asked = Asked::default();
        for want in wants {
            match *want {
                Want::WorkspaceRead(name) => asked.read.push(name.to_owned()),
                Want::WorkspaceWrite(prefix) => asked.write.push(prefix.to_owned()),
                Want::Process(program) => asked.programs.push(program.to_owned()),
                Want::Tests => asked.tests = true,
                Want::Git(access) => asked.git = asked.git.max(Some(access)),
                Want::LedgerQuery | Want::Budget(_) | Want::Artifacts | Want::Client(_) => {}
            }
        }
        asked
    }

    /// Checks whether a workspace was requested.
    #[must_use]
    pub fn reads(&self, workspace: &str) -> bool {
        self.read.iter().any(|name| name == "*" || name == workspace)
    }

    /// Intersects the offer of a workspace with the request.
    #[must_use]
    pub fn within(&self, offered: &WorkspaceInfo) -> WorkspaceInfo {
        WorkspaceInfo {
            name: offered.name.clone(),
            write_prefixes: narrowed(&self.write, &offered.write_prefixes),
            git: self.git.min(offered.git),
            tests: if self.tests {
                offered.tests.clone()
            } else {
                Vec::new()
            },
        }
    }
}

/// Intersection of two lists of prefixes.
fn narrowed(wanted: &[String], offered: &[String]) -> Vec<String> {
    let mut both: Vec<String> = wanted
        .iter()
        .flat_map(|wanted| {
            offered.iter().filter_map(move |offered| {
                if wanted == offered || covers(offered, wanted) {
                    Some(wanted.clone())
                } else if covers(wanted, offered) {
                    Some(offered.clone())
                } else {
                    None
                }
            })
        })
        .collect();
    both.sort();
    both.dedup();
    both
}

/// A permitted command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permitted {
    /// Granted program or registered test, as the pack gave it.
    Program(Vec<String>),
    /// Git command, within the limits of the repository.
    Git(GitCommand),
}

/// Returns the command in its permitted form. The error explains how to permit it.
pub fn command(info: &WorkspaceInfo, programs: &[String], command: &Command) -> Result<Permitted, Refused> {
    let argv = || {
        std::iter::once(command.program.clone())
            .chain(command.arguments.iter().cloned())
            .collect::<Vec<_>>()
    };
    if programs.contains(&command.program) || info.tests.iter().any(|test| test.argv == argv()) {
        return Ok(Permitted::Program(argv()));
    }
    match info.git {
        Some(access) if command.program == "git" => git::checked(&command.arguments, access, &command.stdin)
            .map(Permitted::Git)
            .map_err(Refused::Git),
        _ => Err(Refused::Program),
    }
}

/// Checks whether some file system would treat a name as `.git`.
#[must_use]
pub fn is_git_name(name: &str) -> bool {
    // Characters that HFS+ ignores, and suffixes that NTFS ignores.
    let ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let plain: String = name.chars().filter(|&c| !ignored(c)).collect();
    plain.split('\\').any(|name| {
        let name = name
            .split(':')
            .next()
            .unwrap_or_default()
            .trim_end_matches([' ', '.']);
        name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
    })
}

/// Reason why a command is not permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Neither a granted program, nor a registered test, nor git.
    Program,
    /// Git command that is not permitted.
    Git(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn prefixes_are_narrowed_to_what_both_cover() {
        let cases: [(&[&str], &[&str], &[&str]); 5] = [
            (&[".gsd/"], &["."], &[".gsd/"]),
            (&["."], &[".gsd/"], &[".gsd/"]),
            (&[".gsd/"], &["docs/"], &[]),
            (&["docs/a/", ".gsd/"], &["docs/", ".gsd/"], &[".gsd/", "docs/a/"]),
            (&[".gsd/"], &[], &[]),
        ];
        for (wanted, offered, both) in cases {
            assert_eq!(
                narrowed(&owned(wanted), &owned(offered)),
                owned(both),
                "{wanted:?} {offered:?}"
            );
        }
    }

    #[test]
    fn a_test_runs_exactly_as_registered() {
        let info = WorkspaceInfo {
            tests: vec![crate::TestCommand {
                name: "default".to_owned(),
                argv: owned(&["cargo", "test"]),
            }],
            ..WorkspaceInfo::default()
        };
        let run = |argv: &[&str]| {
            let words = Command::new(argv[0]).args(argv[1..].iter().copied());
            command(&info, &owned(&["make"]), &words).is_ok()
        };
        assert!(run(&["cargo", "test"]));
        assert!(run(&["make", "anything"]));
        assert!(!run(&["cargo", "test", "--config", "x"]));
        assert!(!run(&["cargo"]));
        assert!(!run(&["git", "status"]));
    }
}
