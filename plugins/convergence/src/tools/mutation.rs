//! The tool `mutation_record`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Event, Tier, Tool, ToolError};

use super::{default_workspace, is_false, is_zero, names, scope};
use crate::cycle::{self, Cycle};
use crate::mutation::Mutation;
use crate::{store, work_tree};

/// Most paths and symbols in a reply.
const SHOWN: usize = 200;
/// Size limit of the short diff in the ledger, in bytes.
const MAX_SHORT_DIFF: usize = 4 << 10;

/// Record the state of a Git work tree after an edit, compared with the last commit. Flags edits without
/// effect (`no_op`) or back to an earlier state (`oscillation`).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MutationRecord {
    /// Name of a registered workspace.
    #[serde(default = "default_workspace")]
    #[schemars(length(max = 128))]
    workspace: String,
    /// Short description of the edit.
    #[schemars(length(max = 200))]
    note: Option<String>,
}

/// Recorded state of a work tree.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Recorded {
    /// Name of a registered workspace.
    workspace: String,
    /// Fingerprint of the state: equal for equal content on the same commit.
    mutation_fingerprint: String,
    /// SHA-256 over path, mode and content of each changed path.
    files_changed_hash: String,
    /// Size of the difference from the last commit.
    diff_stats: Stats,
    /// Functions and classes that changed, as `path: name`.
    symbol_changes: Vec<String>,
    /// True if symbols were left out because the difference is too large.
    symbols_left_out: bool,
    /// Changed paths, at most 200.
    changed_paths: Vec<String>,
    /// A line for each path: `+ a.py`, `~ b.rs`, `- c.go`.
    short_diff: Vec<String>,
    /// Number of changed paths that are not listed.
    more_paths: u64,
    /// Hash of the last commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_head: Option<String>,
    /// True if the state equals the previous record.
    no_op: bool,
    /// True if an earlier state came back, with other states in between.
    oscillation: bool,
    /// Number of records since that state.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<u32>,
    /// Verdict in one line.
    message: String,
}

/// Size of the difference.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stats {
    /// Number of paths that were added, changed or removed.
    files_changed: u64,
    /// Number of added lines.
    insertions: u64,
    /// Number of removed lines.
    deletions: u64,
    /// True if lines of untracked files are not counted, because the files are too large or too many.
    #[serde(skip_serializing_if = "is_false")]
    cut: bool,
    /// Number of those files.
    #[serde(skip_serializing_if = "is_zero")]
    uncounted_files: u64,
}

impl Tool for MutationRecord {
    const NAME: &'static str = "mutation_record";
    const TITLE: &'static str = "Record a change of files";
    const EFFECT: Effect = Effect::Run;
    const TIER: Tier = Tier::Core;
    type Output = Recorded;

    fn run(self, cx: &Cx<'_>) -> Result<Recorded, ToolError> {
        let workspace = cx.workspace(&self.workspace)?;
        let tree = work_tree::read(&workspace)?;
        let scope = scope(cx, &self.workspace);
        let fingerprint = &tree.mutation.fingerprint;
        let seen = cx.ledger().seen_work_tree(&self.workspace)?;
        let cycle = cx.transaction(|db| {
            let cycle = match &seen.state {
                Some(_) => {
                    let before = store::last_recorded_edits(&db, &scope)?;
                    let before = before.or(seen.has_baseline.then_some(0));
                    cycle::seen(seen.edits, before, seen.oscillation)
                }
                None => {
                    let before = store::newest_mutations(&db, &scope)?;
                    cycle::mutation(fingerprint, before.iter().map(String::as_str))
                }
            };
            let edits = seen.state.as_ref().map(|_| seen.edits);
            store::add_mutation(&db, &scope, fingerprint, cycle, edits, cx.now())?;
            Ok::<_, ToolError>(cycle)
        })?;
        let message = verdict(&tree.mutation, cycle);
        let note = match &self.note {
            Some(note) => format!("{message} ({note})"),
            None => message.clone(),
        };
        cx.ledger()
            .append(&event(&tree.mutation, cycle).note(cut(&note, 500)))?;
        Ok(Recorded::of(self.workspace, tree, cycle, message))
    }

    fn text(output: &Recorded) -> Option<String> {
        let mut text = output.message.clone();
        for line in output.short_diff.iter().take(50) {
            text.push_str(&format!("\n{line}"));
        }
        Some(text)
    }
}

impl Recorded {
    fn of(workspace: String, tree: work_tree::WorkTree, cycle: Cycle, message: String) -> Recorded {
        let mutation = tree.mutation;
        let hidden = mutation.changed_paths.len().saturating_sub(SHOWN) as u64;
        Recorded {
            workspace,
            mutation_fingerprint: mutation.fingerprint,
            files_changed_hash: mutation.files_changed_hash,
            diff_stats: Stats {
                files_changed: mutation.diff_stats.files_changed,
                insertions: mutation.diff_stats.insertions,
                deletions: mutation.diff_stats.deletions,
                cut: tree.uncounted > 0,
                uncounted_files: tree.uncounted,
            },
            symbol_changes: mutation
                .symbol_changes
                .iter()
                .take(SHOWN)
                .map(|symbol| format!("{}: {}", symbol.path.one_line(), symbol.name))
                .collect(),
            symbols_left_out: tree.symbols_left_out,
            changed_paths: mutation
                .changed_paths
                .iter()
                .take(SHOWN)
                .map(|path| path.as_str().to_owned())
                .collect(),
            short_diff: mutation.short_diff.into_iter().take(SHOWN).collect(),
            more_paths: mutation.more_paths.saturating_add(hidden),
            git_head: tree.head,
            no_op: cycle.no_op,
            oscillation: cycle.oscillation.is_some(),
            period: cycle.oscillation,
            message,
        }
    }
}

fn verdict(mutation: &Mutation, cycle: Cycle) -> String {
    let stats = mutation.diff_stats;
    let state = match stats.files_changed {
        0 => "nothing differs from the last commit".to_owned(),
        files => format!(
            "{files} file{} changed, +{} -{}",
            if files == 1 { "" } else { "s" },
            stats.insertions,
            stats.deletions
        ),
    };
    match cycle {
        Cycle { no_op: true, .. } => format!("{state}; no-op: same state as the previous record"),
        Cycle {
            oscillation: Some(period),
            ..
        } => format!("{state}; oscillation: the state of {period} records ago is back"),
        _ => state,
    }
}

fn event(mutation: &Mutation, cycle: Cycle) -> Event {
    let kind = match cycle {
        Cycle { no_op: true, .. } => "mutation.no_op",
        Cycle {
            oscillation: Some(_), ..
        } => "mutation.oscillation",
        _ => "mutation.recorded",
    };
    let stats = mutation.diff_stats;
    let mut event = Event::new(kind)
        .changed(names(mutation.changed_paths.iter().map(|path| path.as_str())))
        .mutation(&mutation.fingerprint);
    event.diff_stats = Some(
        json!({
            "files_changed": stats.files_changed,
            "insertions": stats.insertions,
            "deletions": stats.deletions,
        })
        .to_string(),
    );
    event.short_diff = Some(cut(&mutation.short_diff.join("\n"), MAX_SHORT_DIFF));
    event
}

fn cut(text: &str, bytes: usize) -> String {
    text.get(..text.floor_char_boundary(bytes))
        .unwrap_or_default()
        .to_owned()
}
