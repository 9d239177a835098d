//! The tool `mutation_record`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, SeenWorkTree, Tier, Tool, ToolError};

use super::told::{Before, Stats, Told, cut};
use super::{default_workspace, scope};
use crate::cycle::{self, Cycle};
use crate::{store, work_tree};

/// Most paths and symbols in a reply.
const MAX_SHOWN_PATHS: usize = 200;

/// Most paths in the text of a reply.
const IN_TEXT: usize = 20;

/// Record a Git work tree after an edit, with the changes since the last record or the envelope's opening.
/// Flags `no_op` (no effect) and `oscillation` (an old state).
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
    /// Your name, for the ledger. Default: the identity that the transport proved.
    #[schemars(length(max = 128), extend("x-unlisted" = true))]
    #[expect(dead_code, reason = "the host reads it")]
    actor: Option<String>,
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
    /// Size of the change.
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
        // Outside of envelopes nobody numbers the states between two records.
        let seen = match cx.envelope_id() {
            Some(_) => cx.ledger().seen_work_tree(&self.workspace)?,
            None => SeenWorkTree::default(),
        };
        let before = match &seen.state {
            Some(_) => cx.transaction(|db| store::mutations::last_recorded_edits(&db, &scope))?,
            None => None,
        };
        let compared = match (&seen.state, before) {
            (None, _) => Before::Record,
            (Some(_), Some(_)) => Before::Edit,
            (Some(_), None) => Before::Opening,
        };
        let before = before.or(seen.has_baseline.then_some(0));
        let change = match before {
            Some(edits) => cx.ledger().changed_since(&self.workspace, edits)?,
            None => None,
        };
        let told = change.map_or_else(|| Told::since_commit(&tree), Told::since_record);
        let cycle = cx.transaction(|db| {
            let cycle = match &seen.state {
                Some(_) => cycle::seen(seen.edits, before, seen.oscillation),
                None => {
                    let before = store::mutations::newest_mutations(&db, &scope)?;
                    cycle::mutation(fingerprint, before.iter().map(String::as_str))
                }
            };
            let edits = seen.state.as_ref().map(|_| seen.edits);
            store::mutations::add_mutation(&db, &scope, fingerprint, cycle, edits, cx.now())?;
            Ok::<_, ToolError>(cycle)
        })?;
        let message = told.verdict(cycle, compared);
        let note = match &self.note {
            Some(note) => format!("{message} ({note})"),
            None => message.clone(),
        };
        cx.ledger()
            .append(&told.event(fingerprint, cycle).note(cut(&note, 500)))?;
        Ok(Recorded::of(self.workspace, tree, told, cycle, message))
    }

    fn text(output: &Recorded) -> Option<String> {
        let mut text = output.message.clone();
        for line in output.short_diff.iter().take(IN_TEXT) {
            text.push_str(&format!("\n{line}"));
        }
        let listed = output.short_diff.len() as u64;
        let more = (listed + output.more_paths).saturating_sub(IN_TEXT as u64);
        if more > 0 {
            text.push_str(&format!("\n… and {more} more"));
        }
        Some(text)
    }
}

impl Recorded {
    fn of(
        workspace: String,
        tree: work_tree::WorkTree,
        told: Told,
        cycle: Cycle,
        message: String,
    ) -> Recorded {
        let mutation = tree.mutation;
        let hidden = told.paths.len().saturating_sub(MAX_SHOWN_PATHS) as u64;
        Recorded {
            workspace,
            mutation_fingerprint: mutation.fingerprint,
            files_changed_hash: mutation.files_changed_hash,
            diff_stats: told.stats,
            symbol_changes: mutation
                .symbol_changes
                .iter()
                .take(MAX_SHOWN_PATHS)
                .map(|symbol| format!("{}: {}", symbol.path.one_line(), symbol.name))
                .collect(),
            symbols_left_out: tree.symbols_left_out,
            changed_paths: told.paths.into_iter().take(MAX_SHOWN_PATHS).collect(),
            short_diff: told.short_diff.into_iter().take(MAX_SHOWN_PATHS).collect(),
            more_paths: told.more_paths.saturating_add(hidden),
            git_head: tree.head,
            no_op: cycle.no_op,
            oscillation: cycle.oscillation.is_some(),
            period: cycle.oscillation,
            message,
        }
    }
}
