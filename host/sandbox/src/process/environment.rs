//! Environment of programs: a few of the host's own variables, and fixed values.

use std::path::Path;

use tollgate_sdk::permit::git_environment;

/// Variables passed on if the host has them: paths, and the user.
const INHERITED_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
];
/// Variables with fixed values for every program: English, without colours or prompts.
const FIXED_VARIABLES: &[(&str, &str)] = &[("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TERM", "dumb")];
/// Directories that are searched for programs if there is no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Environment of programs, and the directories in which they are found.
#[derive(Debug, Clone)]
pub struct Environment {
    entries: Vec<(String, String)>,
    path: Vec<String>,
}

impl Environment {
    /// Creates the environment from the host's own, of which most is left out. Values that are not UTF-8 are left out
    /// too, and so are relative entries of PATH, which would be folders of the workspace.
    pub fn new(own: impl Fn(&str) -> Option<String>) -> Environment {
        let path: Vec<String> = own("PATH")
            .unwrap_or_else(|| DEFAULT_PATH.to_owned())
            .split(':')
            .filter(|place| place.starts_with('/'))
            .map(str::to_owned)
            .collect();
        let handed_on = INHERITED_VARIABLES.iter().filter_map(|&name| {
            let value = match name {
                "PATH" => path.join(":"),
                name => own(name)?,
            };
            Some((name.to_owned(), value))
        });
        let fixed = FIXED_VARIABLES
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Environment {
            entries: handed_on.chain(fixed).collect(),
            path,
        }
    }

    /// Environment of one program. Git gets more variables, which make it safe to run in a repository of unknown
    /// origin.
    pub(super) fn of(&self, program: &str, more: &[(String, String)]) -> Vec<(String, String)> {
        let mut entries = self.entries.clone();
        if program == "git" {
            entries.extend(git_environment());
        }
        entries.extend_from_slice(more);
        entries
    }

    /// Variable that every program gets.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.entries.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// First program with this name on the PATH.
    pub fn find(&self, program: &str) -> Option<String> {
        let is_program = |path: &String| {
            Path::new(path).is_file()
                && rustix::fs::access(path.as_str(), rustix::fs::Access::EXEC_OK).is_ok()
        };
        self.path
            .iter()
            .map(|place| format!("{}/{program}", place.trim_end_matches('/')))
            .find(is_program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_handed_on() {
        let environment = Environment::new(|name| match name {
            "PATH" => Some(".:/usr/bin:node_modules/.bin::/bin".to_owned()),
            "HOME" => Some("/home/ada".to_owned()),
            "LD_PRELOAD" | "SECRET_TOKEN" => Some("x".to_owned()),
            _ => None,
        });
        let names: Vec<String> = environment
            .of("make", &[])
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            names,
            [
                "PATH=/usr/bin:/bin",
                "HOME=/home/ada",
                "LANG=C.UTF-8",
                "LC_ALL=C.UTF-8",
                "TERM=dumb"
            ]
        );
        assert!(environment.find("sh").is_some());
        assert_eq!(environment.find("no-such-program"), None);
    }
}
