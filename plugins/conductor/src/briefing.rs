//! Facts about a job that every prompt carries, each in one line.

use std::fmt::Write as _;

use crate::arguments::clip_to;
use crate::model::BlockType;
use crate::plan::Plan;
use crate::workspaces::WorkspaceLine;

/// Maximum characters of one line of facts.
const MAX_LINE_CHARS: usize = 320;
/// Maximum number of accepted steps shown, and characters of each.
const SHOWN_STEPS: usize = 12;
const MAX_STEP_CHARS: usize = 160;
/// Maximum characters of the notes of one step, and of all notes.
const MAX_STEP_NOTES_CHARS: usize = 600;
const MAX_ALL_NOTES_CHARS: usize = 2_000;
/// Maximum number of context blocks that are named.
const MAX_NAMED_BLOCKS: usize = 8;

/// An accepted step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub step_id: String,
    pub summary: String,
    pub commit: Option<String>,
    /// Findings, for a step whose evidence has to have notes.
    pub notes: Option<String>,
}

/// Facts that a prompt repeats besides the plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Briefing {
    /// Workspace of the repository, if it can be used.
    pub workspace: Option<WorkspaceLine>,
    /// Recorded decisions, oldest first.
    pub decisions: Vec<String>,
    /// Accepted steps in order.
    pub accepted: Vec<Accepted>,
    /// Ids and types of the job's context blocks, oldest first.
    pub blocks: Vec<(String, BlockType)>,
}

impl Briefing {
    /// Words of a registered test.
    pub(crate) fn test(&self, name: &str) -> Option<&str> {
        let tests = self.workspace.iter().flat_map(|workspace| &workspace.tests);
        let mut tests = tests.filter_map(|test| test.split_once(" = "));
        tests.find(|(known, _)| *known == name).map(|(_, words)| words)
    }

    /// Newest context blocks besides those that a prompt shows. Research is for planning, and its rules are shown.
    pub(crate) fn other_blocks(&self, shown: &[&str]) -> Option<String> {
        let others = self.blocks.iter().rev();
        let others: Vec<String> = others
            .filter(|(id, kind)| !shown.contains(&id.as_str()) && *kind != BlockType::Research)
            .take(MAX_NAMED_BLOCKS)
            .map(|(id, kind)| format!("{id} ({kind})"))
            .collect();
        (!others.is_empty()).then(|| others.join(", "))
    }

    /// Facts about the repository, the environment and the boundaries of a job. `whole` adds what the whole job
    /// delivers, and what may go wrong.
    pub(crate) fn facts(&self, plan: &Plan, repo_root: Option<&str>, whole: bool) -> String {
        let mut text = String::new();
        let mut fact = |label: &str, value: &str| {
            let _ = writeln!(text, "- {label}: {value}");
        };
        if let Some(root) = repo_root {
            fact("Repository", &self.repository(root));
        }
        for (label, value) in [
            ("Environment", plan.target_environment.as_deref()),
            ("Priority", plan.timeline_priority.as_deref()),
        ] {
            if let Some(value) = value {
                fact(label, value.trim());
            }
        }
        for (label, list) in [
            ("About the user", &plan.user_constraints),
            ("Out of scope", &plan.out_of_scope),
            ("Read first", &plan.key_files),
            ("Entry points", &plan.entrypoints),
            ("Architecture", &plan.architecture),
            ("Assumed", &plan.assumptions),
            ("Not known yet", &plan.unknowns),
        ] {
            if let Some(line) = list.as_deref().and_then(joined) {
                fact(label, &line);
            }
        }
        if let Some(line) = joined(&risks(plan)) {
            fact("Risks", &line);
        }
        let decided = plan.decide_now.iter().flatten().chain(&self.decisions);
        let decided: Vec<String> = decided.cloned().collect();
        if let Some(line) = joined(&decided) {
            fact("Decided", &line);
        }
        if whole {
            for (label, list) in [
                ("The job delivers", &plan.deliverables),
                ("The job is done when", &plan.definition_of_done),
                ("Tests expected", &plan.tests_expected),
                ("May go wrong", &plan.failure_modes),
                ("Depends on", &plan.hidden_dependencies),
                ("Smallest proof", &plan.smallest_proof),
            ] {
                if let Some(line) = list.as_deref().and_then(joined) {
                    fact(label, &line);
                }
            }
        }
        text
    }

    fn repository(&self, root: &str) -> String {
        let Some(workspace) = &self.workspace else {
            return format!("{root} (its workspace is not registered here)");
        };
        let below = root.split_once('/').map(|(_, below)| format!("/{below}"));
        let below = below.unwrap_or_default();
        let mut text = match &workspace.path {
            Some(path) => format!("{path}{below} (workspace {}", workspace.name),
            None => format!("{root} (workspace {}", workspace.name),
        };
        let _ = write!(text, ", Git: {})", workspace.git);
        if !workspace.tests.is_empty() {
            let _ = write!(text, "; tests: {}", workspace.tests.join(", "));
        }
        text
    }

    /// One line for each accepted step, the latest in full.
    pub(crate) fn done(&self) -> String {
        let mut text = String::new();
        let hidden = self.accepted.len().saturating_sub(SHOWN_STEPS);
        if let (Some(first), Some(last)) = (
            self.accepted.first(),
            hidden.checked_sub(1).and_then(|at| self.accepted.get(at)),
        ) {
            let _ = writeln!(
                text,
                "- {} to {}: call devlog_list to see these steps",
                first.step_id, last.step_id
            );
        }
        let kept = self.kept_notes();
        for (place, done) in self.accepted.iter().enumerate().skip(hidden) {
            let commit = done
                .commit
                .as_deref()
                .map(|hash| format!(" ({})", short_hash(hash)));
            let summary: Vec<&str> = done.summary.split_whitespace().collect();
            let _ = writeln!(
                text,
                "- {}{}: {}",
                done.step_id,
                commit.unwrap_or_default(),
                clip_to(&summary.join(" "), MAX_STEP_CHARS)
            );
            if let Some((_, notes)) = kept.iter().find(|(of, _)| *of == place) {
                let _ = writeln!(text, "  Notes: {notes}");
            }
        }
        text
    }

    /// Notes of accepted steps by their place, each in one line. The newest go first where there is no room for all.
    fn kept_notes(&self) -> Vec<(usize, String)> {
        let mut room = MAX_ALL_NOTES_CHARS;
        let mut kept = Vec::new();
        for (place, done) in self.accepted.iter().enumerate().rev() {
            let Some(notes) = &done.notes else { continue };
            let words: Vec<&str> = notes.split_whitespace().collect();
            let notes = clip_to(&words.join(" "), MAX_STEP_NOTES_CHARS.min(room));
            let length = notes.chars().count();
            if words.is_empty() || length > room {
                continue;
            }
            room -= length;
            kept.push((place, notes));
        }
        kept
    }
}

fn short_hash(hash: &str) -> &str {
    hash.get(..10).unwrap_or(hash)
}

fn risks(plan: &Plan) -> Vec<String> {
    let risks = plan.risks.iter().flatten();
    risks
        .map(|risk| match &risk.mitigation {
            Some(mitigation) => format!("{} ({mitigation})", risk.risk),
            None => risk.risk.clone(),
        })
        .collect()
}

/// Entries in one line, as many as have room.
fn joined(entries: &[String]) -> Option<String> {
    let mut line = String::new();
    for (place, entry) in entries.iter().enumerate() {
        let words: Vec<&str> = entry.split_whitespace().collect();
        let entry = words.join(" ");
        let length = line.chars().count() + entry.chars().count();
        if place > 0 && length > MAX_LINE_CHARS {
            let _ = write!(line, "; and {} more (job_get)", entries.len() - place);
            break;
        }
        if place > 0 {
            line += "; ";
        }
        line += &clip_to(entry.trim_end_matches(['.', ';']), MAX_LINE_CHARS);
    }
    (!line.is_empty()).then_some(line)
}
