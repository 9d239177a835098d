//! The policy `path-guard`: limits the paths in arguments.
//!
//! Checks every string under the argument names in `fields`, at any depth. A path is read like a path of a
//! workspace: relative, with `/`. Absolute paths and paths that leave the workspace with `..` are always
//! denied.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tollgate_sdk::export_policy;
use tollgate_sdk::paths;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};

/// Maximum number of paths in a denial.
const MAX_NAMED_PATHS: usize = 20;

/// Limits the paths in arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathGuard {
    /// Globs of permitted paths; empty permits all that `deny` does not match. `*` stays within a folder, `**`
    /// does not.
    #[serde(default)]
    allow: Vec<String>,
    /// Globs of denied paths, which take precedence over `allow`.
    #[serde(default)]
    deny: Vec<String>,
    /// Names of arguments that hold paths, for example file, files or path.
    #[serde(default = "path_fields")]
    fields: Vec<String>,
}

fn path_fields() -> Vec<String> {
    [
        "path",
        "paths",
        "file",
        "files",
        "key_files",
        "changed_files",
        "changed_paths",
        "directory",
    ]
    .map(str::to_owned)
    .to_vec()
}

impl Policy for PathGuard {
    const NAME: &'static str = "path-guard";
    const SUMMARY: &'static str = "Limits the paths in arguments to the operator's globs.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, globs) in [("allow", &self.allow), ("deny", &self.deny)] {
            problems.extend(
                globs
                    .iter()
                    .filter_map(|glob| Some(Problem::new(key, paths::mistake(glob)?))),
            );
        }
        if self.allow.is_empty() && self.deny.is_empty() {
            problems.push(Problem::new("deny", "`allow` and `deny` are both empty"));
        }
        problems
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let mut paths = Vec::new();
        for (key, value) in &request.arguments {
            self.collect(key, value, &mut paths);
        }
        let refused: Vec<String> = paths
            .into_iter()
            .filter(|path| !self.allows(path))
            .take(MAX_NAMED_PATHS)
            .map(|path| format!("`{path}`"))
            .collect();
        if refused.is_empty() {
            return Ok(Verdict::Pass);
        }
        let reason = format!("these paths are not permitted: {}", refused.join(", "));
        Ok(Denial::new("PATH_DENIED", reason)
            .remediation(self.bounds())
            .into())
    }
}
export_policy!(PathGuard);

impl PathGuard {
    fn allows(&self, path: &str) -> bool {
        let Some(path) = paths::inside(path) else {
            return false;
        };
        let one_of = |globs: &[String]| globs.iter().any(|glob| paths::matches(glob, &path));
        !one_of(&self.deny) && (self.allow.is_empty() || one_of(&self.allow))
    }

    /// Collects every string at or below a key that holds paths.
    fn collect<'a>(&self, key: &str, value: &'a Value, paths: &mut Vec<&'a str>) {
        match value {
            Value::String(path) if self.fields.iter().any(|field| field == key) => paths.push(path),
            Value::Array(items) => items.iter().for_each(|item| self.collect(key, item, paths)),
            Value::Object(fields) => fields
                .iter()
                .for_each(|(key, value)| self.collect(key, value, paths)),
            _ => {}
        }
    }

    fn bounds(&self) -> String {
        let mut bounds = String::new();
        if !self.allow.is_empty() {
            bounds = format!("Allowed: {}.", self.allow.join(", "));
        }
        if !self.deny.is_empty() {
            bounds = format!("{bounds} Denied: {}.", self.deny.join(", "));
        }
        bounds.trim_start().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_sdk::native::Judge;

    use super::*;

    fn denied(settings: &str, arguments: &str) -> Option<String> {
        let judge = Judge::<PathGuard>::new(settings).unwrap();
        match judge.before(&Request::of("gsd_plan_task", arguments)).verdict {
            Verdict::Pass => None,
            Verdict::Deny(denial) => Some(denial.reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn globs_decide() {
        let settings = r#"{"allow": ["src/**", "README.md"], "deny": ["**/*.pem"]}"#;
        assert_eq!(
            denied(settings, r#"{"files": ["src/a.rs", "README.md", "./src//b.rs"]}"#),
            None
        );
        let reason = denied(
            settings,
            r#"{"files": ["src/a.rs", "src/key.pem"], "path": "Cargo.toml"}"#,
        )
        .unwrap();
        assert!(
            reason.contains("`src/key.pem`") && reason.contains("`Cargo.toml`"),
            "{reason}"
        );
        assert!(!reason.contains("src/a.rs"));
    }

    #[test]
    fn paths_are_found_at_any_depth_and_other_text_is_left_alone() {
        let settings = r#"{"deny": ["secret/**"]}"#;
        assert!(denied(settings, r#"{"tasks": [{"files": ["secret/x"]}]}"#).is_some());
        assert_eq!(denied(settings, r#"{"title": "secret/x"}"#), None);
    }

    #[test]
    fn nothing_climbs_out() {
        let settings = r#"{"allow": ["**"]}"#;
        for path in [
            "../x",
            "a/../../x",
            "/etc/passwd",
            "~/x",
            "a\\\\..\\\\x",
            "a\\u0000",
        ] {
            let arguments = format!(r#"{{"path": "{path}"}}"#);
            assert!(denied(settings, &arguments).is_some(), "{path}");
        }
    }

    #[test]
    fn every_bad_glob_is_named() {
        let problems = Judge::<PathGuard>::new(r#"{"allow": ["[", "a"], "deny": ["{", "a}", "{[}]}"]}"#)
            .err()
            .unwrap();
        let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["allow", "deny", "deny"]);
    }
}
