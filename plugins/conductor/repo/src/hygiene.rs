//! Clean-up suggestions, each with reasons and the next call.
//!
//! Nothing here changes a file. A deletion is suggested only together with a look at the files that import it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::describe::Undescribed;
use crate::language::Role;
use crate::map::RepoMap;
use crate::map::markdown_reason as words;
use crate::path;
use crate::stale::{Candidate, Reason};

/// Maximum suggestions of one kind; the rest follows when these are done.
const MAX_OF_KIND: usize = 50;

/// Maximum files described in one call.
const DESCRIBED_AT_ONCE: usize = 20;

/// Minimum score for suggesting a deletion rather than a review.
const MIN_DELETE_SCORE: u32 = 60;

/// A suggestion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    /// Action to take.
    pub action: Action,
    /// Paths of the files.
    pub paths: Vec<String>,
    /// New path of the file, or the file to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Reasons for the suggestion.
    pub reasons: Vec<String>,
    /// Next call; the caller adds the job.
    pub next_call: NextCall,
}

/// Kind of clean-up, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// An import without a file.
    Repair,
    /// A file that can be deleted.
    Delete,
    /// Two files with the same content.
    Merge,
    /// A file in the wrong place.
    Move,
    /// A file that may be stale and needs a review.
    Review,
    /// A file without a description.
    Describe,
    /// A description without a file.
    Forget,
}

/// A call that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the tool.
    pub arguments: Value,
}

/// All suggestions, by kind, in the order of the source lists.
pub fn suggest(map: &RepoMap, undescribed: &Undescribed) -> Vec<Suggestion> {
    let mut found = Vec::new();
    for missing in map.graph.missing.iter().take(MAX_OF_KIND) {
        found.push(Suggestion {
            action: Action::Repair,
            paths: vec![missing.path.clone()],
            target: None,
            reasons: vec![format!(
                "line {} imports `{}`, which does not exist",
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

/// Suggests merging a copy, deleting a surely stale file, and reviewing any other.
fn stale(candidate: &Candidate) -> Suggestion {
    let original = candidate.reasons.iter().find_map(|reason| match reason {
        Reason::Duplicate { of } => Some(of.clone()),
        _ => None,
    });
    let action = match (&original, candidate.score) {
        (Some(_), _) => Action::Merge,
        (None, MIN_DELETE_SCORE..) => Action::Delete,
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

/// Suggests moving notes and plans out of the root.
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
            "a document called \"{word}\" in the root is a planning document, not part of the product"
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
        reasons: vec!["described, but no longer in the repository".to_owned()],
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
