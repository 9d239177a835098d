//! The change that `mutation_record` tells: since the previous record where the host sees the work tree, else since the
//! last commit.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tollgate_kit::test_runs::names;
use tollgate_sdk::{Event, WorkTreeChange};

use super::{is_false, is_zero};
use crate::cycle::Cycle;
use crate::work_tree::WorkTree;

/// Size limit of the short diff in the ledger, in bytes.
const MAX_SHORT_DIFF: usize = 4 << 10;

/// A change in the words of a reply.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// True if it is since the last commit.
    since_commit: bool,
    pub(super) stats: Stats,
    pub(super) paths: Vec<String>,
    pub(super) short_diff: Vec<String>,
    pub(super) more_paths: u64,
}

/// States that a record is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// States of earlier records.
    Record,
    /// States after edits that the host saw.
    Edit,
    /// The same, without an earlier record.
    Opening,
}

/// Size of the change.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Stats {
    /// Number of paths that were added, changed or removed.
    files_changed: u64,
    /// Number of added lines.
    insertions: u64,
    /// Number of removed lines.
    deletions: u64,
    /// True if some files are not counted or not compared.
    #[serde(skip_serializing_if = "is_false")]
    cut: bool,
    /// Number of files whose lines are not counted, because they are too large, too many, or not text.
    #[serde(skip_serializing_if = "is_zero")]
    uncounted_files: u64,
    /// Number of files that were not compared, because too many differ from the last commit.
    #[serde(skip_serializing_if = "is_zero")]
    uncompared_files: u64,
}

impl Told {
    pub(super) fn since_commit(tree: &WorkTree) -> Told {
        let mutation = &tree.mutation;
        Told {
            since_commit: true,
            stats: Stats {
                files_changed: mutation.diff_stats.files_changed,
                insertions: mutation.diff_stats.insertions,
                deletions: mutation.diff_stats.deletions,
                cut: tree.uncounted > 0,
                uncounted_files: tree.uncounted,
                uncompared_files: 0,
            },
            paths: mutation
                .changed_paths
                .iter()
                .map(|path| path.as_str().to_owned())
                .collect(),
            short_diff: mutation.short_diff.clone(),
            more_paths: mutation.more_paths,
        }
    }

    pub(super) fn since_record(change: WorkTreeChange) -> Told {
        let path = |line: &String| line.get(2..).unwrap_or_default().to_owned();
        Told {
            since_commit: false,
            stats: Stats {
                files_changed: change.files_changed(),
                insertions: change.insertions,
                deletions: change.deletions,
                cut: change.uncounted_files > 0 || change.uncompared_files > 0,
                uncounted_files: change.uncounted_files,
                uncompared_files: change.uncompared_files,
            },
            paths: change.paths.iter().map(path).collect(),
            short_diff: change.paths,
            more_paths: change.more_paths,
        }
    }

    /// Verdict in one line. `before` says what the state is compared with.
    pub(super) fn verdict(&self, cycle: Cycle, before: Before) -> String {
        let stats = &self.stats;
        let mut verdict = match stats.files_changed {
            0 if self.since_commit => "nothing differs from the last commit".to_owned(),
            0 => "nothing changed".to_owned(),
            files => format!(
                "{files} file{} changed, +{} -{}",
                if files == 1 { "" } else { "s" },
                stats.insertions,
                stats.deletions
            ),
        };
        if stats.uncompared_files > 0 {
            verdict.push_str(&format!("; files not compared: {}", stats.uncompared_files));
        }
        match cycle {
            Cycle { no_op: true, .. } => verdict.push_str(match before {
                Before::Opening => "; no-op: same state as at the opening of the envelope",
                Before::Record | Before::Edit => "; no-op: same state as the previous record",
            }),
            Cycle {
                oscillation: Some(period),
                ..
            } => verdict.push_str(&format!(
                "; oscillation: the work tree is back in its state of {period} {}s ago",
                if before == Before::Record {
                    "record"
                } else {
                    "edit"
                }
            )),
            _ => {}
        }
        verdict
    }

    /// The change as an event of the call's row.
    pub(super) fn event(&self, fingerprint: &str, cycle: Cycle) -> Event {
        let kind = match cycle {
            Cycle { no_op: true, .. } => "mutation.no_op",
            Cycle {
                oscillation: Some(_), ..
            } => "mutation.oscillation",
            _ => "mutation.recorded",
        };
        let mut event = Event::new(kind)
            .changed(names(self.paths.iter().map(String::as_str)))
            .mutation(fingerprint);
        event.diff_stats = Some(
            json!({
                "files_changed": self.stats.files_changed,
                "insertions": self.stats.insertions,
                "deletions": self.stats.deletions,
            })
            .to_string(),
        );
        event.short_diff = Some(cut(&self.short_diff.join("\n"), MAX_SHORT_DIFF));
        event
    }
}

/// The first bytes of a text.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    text.get(..text.floor_char_boundary(bytes))
        .unwrap_or_default()
        .to_owned()
}
