//! The documents for people: roadmap, plan, summary and state, rendered from stored data.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::draw::{draw, one_line};
use crate::grammar::{SliceLine, TaskLine, escape, indent};
use crate::model::{MilestoneId, Status, Unit};
use crate::standing::{Outlook, Tree};
use crate::store::Reopen;
use crate::store::milestone::Milestone;
use crate::store::removed::Removed;
use crate::store::slice::Slice;
use crate::store::task::{PlannedTask, Task};

/// Note that edits of a file have no effect.
const OVERWRITE_NOTE: &str = "<!-- Written by Tollgate. Changes to this file are overwritten. gsd_status shows the current state. -->\n\n";

/// M01-ROADMAP.md.
pub(super) fn roadmap(milestone: &Milestone, slices: &[Slice]) -> String {
    let plan = &milestone.plan;
    let mut out = format!("# {}: {}\n\n{OVERWRITE_NOTE}", milestone.id, escape(&plan.title));
    let _ = writeln!(out, "Status: {}\n", milestone.status);
    if let Some(reopen) = &milestone.reopen {
        let _ = writeln!(out, "{}\n", reopened(reopen));
    }
    section(&mut out, "Vision", &plan.vision);
    let depends_on: Vec<String> = plan.depends_on.iter().map(ToString::to_string).collect();
    list(&mut out, "Depends on", &depends_on);
    list(&mut out, "Success criteria", &plan.success_criteria);
    list(&mut out, "Key risks", &plan.key_risks);
    list(&mut out, "Definition of done", &plan.definition_of_done);
    out.push_str("## Slices\n\n");
    for slice in slices {
        let line = SliceLine {
            id: slice.id.to_string(),
            title: slice.plan.title.clone(),
            closed: slice.status.is_closed(),
            risk: slice.plan.risk.to_string(),
            depends: slice.plan.depends.iter().map(ToString::to_string).collect(),
            demo: slice.plan.demo.clone(),
            status: slice.status.to_string(),
        };
        out.push_str(&line.render());
        if let Some(reopen) = &slice.reopen {
            let _ = writeln!(out, "  - {}", reopened(reopen));
        }
    }
    if let Some(summary) = &milestone.summary {
        out.push_str("\n## Summary\n\n");
        details(&mut out, summary);
    }
    out
}

/// S01-PLAN.md.
pub(super) fn plan(milestone: &MilestoneId, slice: &Slice, tasks: &[PlannedTask]) -> String {
    let unit = Unit::slice(milestone, &slice.id);
    let mut out = format!(
        "# {}: {}\n\n{OVERWRITE_NOTE}",
        slice.id,
        escape(&slice.plan.title)
    );
    let _ = writeln!(out, "Unit: {unit}. Status: {}\n", slice.status);
    if let Some(reopen) = &slice.reopen {
        let _ = writeln!(out, "{}\n", reopened(reopen));
    }
    section(&mut out, "Goal", &slice.plan.goal);
    section(&mut out, "After this", &slice.plan.demo);
    out.push_str("## Tasks\n\n");
    for task in tasks {
        task_item(&mut out, task);
    }
    if let Some(summary) = &slice.summary {
        out.push_str("\n## Summary\n\n");
        details(&mut out, summary);
    }
    out
}

fn task_item(out: &mut String, task: &PlannedTask) {
    let head = &task.head;
    let line = TaskLine {
        id: head.id.to_string(),
        title: head.title.clone(),
        closed: head.status.is_closed(),
        status: head.status.to_string(),
    };
    out.push_str(&line.render());
    if let Some(reopen) = &head.reopen {
        let _ = writeln!(out, "  - {}", reopened(reopen));
    }
    if !task.description.trim().is_empty() {
        let _ = write!(out, "\n{}\n", indent(&task.description));
    }
    let files: Vec<String> = task.files.iter().map(|file| escape(file)).collect();
    for (name, text) in [
        ("Estimate", escape(&head.estimate)),
        ("Files", files.join(", ")),
        ("Verify", escape(&task.verify)),
    ] {
        if !text.is_empty() {
            let _ = writeln!(out, "  - {name}: {text}");
        }
    }
}

/// T01-SUMMARY.md: the completion's summary, or the reason of a reopening.
pub(super) fn summary(milestone: &MilestoneId, Task { head, plan, summary }: &Task) -> String {
    let unit = Unit::task(milestone, &head.slice, &head.id);
    let mut out = format!("# {}: {}\n\n{OVERWRITE_NOTE}", head.id, escape(&plan.title));
    let _ = writeln!(out, "Unit: {unit}. Status: {}\n", head.status);
    if let Some(reopen) = &head.reopen {
        let _ = writeln!(out, "{}\n", reopened(reopen));
    }
    match summary {
        Some(summary) => details(&mut out, summary),
        None if head.status == Status::Skipped => out.push_str("The task was skipped with its slice.\n"),
        None => out.push_str("The task is open. Summaries of earlier completions are in event-log.jsonl.\n"),
    }
    out
}

/// The file of a unit that was removed.
pub(super) fn removed(removed: &Removed) -> String {
    let id = removed.unit.rsplit('/').next().unwrap_or_default();
    format!(
        "# {id}: {}\n\n{OVERWRITE_NOTE}Unit: {}. Removed by {} at {}: {}\n\nIts events are in event-log.jsonl.\n",
        escape(&removed.title),
        removed.unit,
        escape(&removed.by),
        removed.at,
        escape(&one_line(&removed.reason))
    )
}

/// STATE.md.
pub(super) fn state(tree: &Tree, outlook: &Outlook) -> String {
    let mut out = format!("# State\n\n{OVERWRITE_NOTE}");
    // An indented block shows the tree unchanged, regardless of the titles.
    for line in draw(tree, outlook).lines() {
        let _ = writeln!(out, "    {line}");
    }
    out
}

fn reopened(reopen: &Reopen) -> String {
    format!(
        "Reopened by {} at {}: {}",
        escape(&reopen.by),
        reopen.at,
        escape(&one_line(&reopen.reason))
    )
}

fn section(out: &mut String, name: &str, text: &str) {
    if !text.trim().is_empty() {
        let _ = write!(out, "## {name}\n\n{}\n", indent(text));
    }
}

/// List entries with `*`, so that none looks like a slice.
fn list(out: &mut String, name: &str, entries: &[String]) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {name}\n");
    for entry in entries {
        let _ = writeln!(out, "* {}", escape(entry));
    }
    out.push('\n');
}

/// Parts of a completion, each under its name.
fn details(out: &mut String, summary: &Json) {
    for (name, value) in summary.as_object().into_iter().flatten() {
        let name = name.replace('_', " ");
        match value {
            Json::String(text) if text.trim().is_empty() => {}
            Json::String(text) if !text.contains(['\n', '\r']) => {
                let _ = writeln!(out, "* {name}: {}", escape(text));
            }
            Json::String(text) => {
                let _ = write!(out, "* {name}:\n\n{}\n", indent(text));
            }
            Json::Array(entries) if entries.is_empty() => {}
            Json::Array(entries) => {
                let _ = writeln!(out, "* {name}:");
                for entry in entries {
                    let text = entry.as_str().map_or_else(|| entry.to_string(), str::to_owned);
                    let _ = writeln!(out, "  * {}", escape(&text));
                }
            }
            other => {
                let _ = writeln!(out, "* {name}: {}", escape(&other.to_string()));
            }
        }
    }
}
