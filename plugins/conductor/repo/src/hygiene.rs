//! What to tidy up: suggestions with reasons, each with the call that comes next.
//!
//! Nothing here changes a file. A deletion is suggested only after a look at who might miss it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::describe::Undescribed;
use crate::language::Role;
use crate::map::RepoMap;
use crate::map::markdown_reason as words;
use crate::path;
use crate::stale::{Candidate, Reason};

/// Suggestions of one kind; the rest comes when these are done.
const MAX_OF_KIND: usize = 50;

/// Files described in one call.
const DESCRIBED_AT_ONCE: usize = 20;

/// The score from which deleting is suggested rather than looking again.
const CERTAIN: u32 = 60;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    /// What to do.
    pub action: Action,
    /// With which files.
    pub paths: Vec<String>,
    /// Where a file should go, or which one stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Why.
    pub reasons: Vec<String>,
    /// The call that comes next; the job is for the caller to add.
    pub next_call: NextCall,
}

/// A kind of tidying, the most pressing first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// An import has no file.
    Repair,
    /// A file can go.
    Delete,
    /// Two files are one.
    Merge,
    /// A file is in the wrong place.
    Move,
    /// It may be stale; somebody should look.
    Review,
    /// A file needs a description.
    Describe,
    /// A description has no file.
    Forget,
}

/// A call that is ready to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

/// Everything to tidy up, by kind, in the order of the lists it comes from.
pub fn suggest(map: &RepoMap, undescribed: &Undescribed) -> Vec<Suggestion> {
    let mut found = Vec::new();
    for missing in map.graph.missing.iter().take(MAX_OF_KIND) {
        found.push(Suggestion {
            action: Action::Repair,
            paths: vec![missing.path.clone()],
            target: None,
            reasons: vec![format!(
                "line {} imports `{}`, which is not there",
                missing.line, missing.import
            )],
            next_call: query(json!({ "imports_of": missing.path })),
        });
    }
    found.extend(map.stale.iter().take(MAX_OF_KIND).map(stale));
    found.extend(
        map.files
            .iter()
            .filter_map(|file| misplaced(&file.path, file.role))
            .take(MAX_OF_KIND),
    );
    for (paths, why) in [
        (&undescribed.new, "new and without a description"),
        (&undescribed.old, "without a description"),
    ] {
        found.extend(
            paths
                .chunks(DESCRIBED_AT_ONCE)
                .take(MAX_OF_KIND)
                .map(|paths| describe(paths, why)),
        );
    }
    if !undescribed.orphans.is_empty() {
        found.push(forget(&undescribed.orphans));
    }
    found.sort_by_key(|suggestion| suggestion.action);
    found
}

/// A copy is merged, what is surely stale deleted, and everything else looked at.
fn stale(candidate: &Candidate) -> Suggestion {
    let original = candidate.reasons.iter().find_map(|reason| match reason {
        Reason::Duplicate { of } => Some(of.clone()),
        _ => None,
    });
    let action = match (&original, candidate.score) {
        (Some(_), _) => Action::Merge,
        (None, CERTAIN..) => Action::Delete,
        (None, _) => Action::Review,
    };
    Suggestion {
        action,
        paths: vec![candidate.path.clone()],
        target: original,
        reasons: candidate.reasons.iter().map(words).collect(),
        next_call: query(json!({ "importers_of": candidate.path })),
    }
}

/// Notes and plans that lie in the root.
fn misplaced(path: &str, role: Role) -> Option<Suggestion> {
    let stem = path::stem(path).to_lowercase();
    let parts: Vec<&str> = stem.split(['_', '-', ' ', '.']).collect();
    let junk = [
        "plan",
        "plans",
        "notes",
        "scratch",
        "draft",
        "wip",
        "brainstorm",
        "ideas",
        "summary",
        "progress",
    ];
    let word = parts.iter().find(|part| junk.contains(part))?;
    let target = format!("docs/{}", path::name(path));
    (role == Role::Docs && !path.contains('/')).then(|| Suggestion {
        action: Action::Move,
        paths: vec![path.to_owned()],
        target: Some(target),
        reasons: vec![format!(
            "a document called \"{word}\" in the root is planning, not the product"
        )],
        next_call: query(json!({ "text": path })),
    })
}

fn describe(paths: &[String], why: &str) -> Suggestion {
    let descriptions: serde_json::Map<String, Value> = paths
        .iter()
        .map(|path| (path.clone(), Value::String(String::new())))
        .collect();
    Suggestion {
        action: Action::Describe,
        paths: paths.to_vec(),
        target: None,
        reasons: vec![why.to_owned()],
        next_call: NextCall {
            tool: "repo_file_descriptions_update".to_owned(),
            arguments: json!({ "descriptions": descriptions }),
        },
    }
}

fn forget(orphans: &[String]) -> Suggestion {
    Suggestion {
        action: Action::Forget,
        paths: orphans.to_vec(),
        target: None,
        reasons: vec!["described, but not in the repository any more".to_owned()],
        next_call: NextCall {
            tool: "repo_map_update".to_owned(),
            arguments: json!({}),
        },
    }
}

fn query(arguments: Value) -> NextCall {
    NextCall {
        tool: "repo_map_query".to_owned(),
        arguments,
    }
}
