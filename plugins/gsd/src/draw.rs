//! The tree of a workspace as text for people.

use crate::model::{MilestoneId, Status, Unit, Verdict};
use crate::standing::{MilestoneNode, Outlook, SliceNode, Tree};
use crate::store::Reopen;
use crate::store::task::TaskHead;

/// Most steps and blockers below the tree.
const MAX_STEPS: usize = 3;
const MAX_BLOCKERS: usize = 10;

/// The tree, with next steps and blockers below.
pub(crate) fn draw(tree: &Tree, outlook: &Outlook) -> String {
    let mut lines = vec![format!("workspace {}", tree.workspace)];
    if tree.milestones.is_empty() {
        lines.push("nothing is planned".to_owned());
    }
    for node in &tree.milestones {
        draw_milestone(tree, node, &mut lines);
    }
    let next = outlook.steps.iter().take(MAX_STEPS);
    lines.extend(next.map(|step| format!("next: {} ({})", step.what, step.tool)));
    let blocked = outlook.blocked.iter().take(MAX_BLOCKERS);
    lines.extend(blocked.map(|blocked| format!("blocked: {} ({})", blocked.why, blocked.code)));
    lines.join("\n") + "\n"
}

fn draw_milestone(tree: &Tree, node: &MilestoneNode, lines: &mut Vec<String>) {
    let head = &node.milestone;
    let closed = node.slices.iter().filter(|node| node.slice.status.is_closed());
    let progress = match node.slices.len() {
        0 => head.status.to_string(),
        all => format!("{}, {} of {all} slices closed", head.status, closed.count()),
    };
    let validated = match head.validation.verdict {
        Some((Verdict::Pass, at)) if at >= head.validation.changed => ", validated",
        _ => "",
    };
    lines.push(format!("{} {} ({progress}{validated})", head.id, head.title));
    let slices = Branch::all("", node.slices.len());
    lines.extend(reopened(head.reopen.as_ref(), Branch::trunk("", &node.slices)));
    for (branch, slice) in slices.zip(&node.slices) {
        draw_slice(tree, &head.id, slice, &branch, lines);
    }
}

fn draw_slice(tree: &Tree, milestone: &MilestoneId, node: &SliceNode, at: &Branch, lines: &mut Vec<String>) {
    let slice = &node.slice;
    let held = held(tree, &Unit::slice(milestone, &slice.id));
    lines.push(format!(
        "{} {} {} {} ({}, {} of {} tasks closed){held}",
        at.line,
        mark(slice.status),
        slice.id,
        slice.plan.title,
        slice.status,
        node.closed,
        node.total
    ));
    lines.extend(reopened(
        slice.reopen.as_ref(),
        Branch::trunk(&at.below, &node.tasks),
    ));
    for (branch, task) in Branch::all(&at.below, node.tasks.len()).zip(&node.tasks) {
        draw_task(tree, milestone, task, &branch, lines);
    }
}

fn draw_task(tree: &Tree, milestone: &MilestoneId, task: &TaskHead, at: &Branch, lines: &mut Vec<String>) {
    let held = held(tree, &Unit::task(milestone, &task.slice, &task.id));
    let by = match (&task.started_by, task.status) {
        (Some(by), Status::InProgress) => format!(", started by {by}"),
        _ => String::new(),
    };
    lines.push(format!(
        "{} {} {} {} ({}{by}){held}",
        at.line,
        mark(task.status),
        task.id,
        task.title,
        task.status
    ));
    lines.extend(reopened(task.reopen.as_ref(), format!("{}   ", at.below)));
}

/// Line prefixes of a unit in the tree.
struct Branch {
    /// Prefix of the unit's own line.
    line: String,
    /// Prefix of the lines below the unit.
    below: String,
}

impl Branch {
    /// A branch for each of `count` units. The last one ends the trunk.
    fn all(above: &str, count: usize) -> impl Iterator<Item = Branch> {
        (1..=count).map(move |number| {
            let (line, below) = if number == count {
                ("└─", "   ")
            } else {
                ("├─", "│  ")
            };
            Branch {
                line: format!("{above}{line}"),
                below: format!("{above}{below}"),
            }
        })
    }

    /// Prefix of a line between a unit and its children.
    fn trunk<T>(above: &str, inside: &[T]) -> String {
        format!("{above}{}", if inside.is_empty() { "   " } else { "│  " })
    }
}

fn reopened(reopen: Option<&Reopen>, before: String) -> Option<String> {
    let Reopen { by, reason, .. } = reopen?.in_short();
    Some(format!("{before}reopened by {by}: {}", one_line(&reason)))
}

/// The text ` held by …` for a claimed unit.
fn held(tree: &Tree, unit: &Unit) -> String {
    let claim = tree.claims.get(&unit.to_string());
    claim.map_or_else(String::new, |claim| format!(" held by {}", claim.owner))
}

const fn mark(status: Status) -> &'static str {
    match status {
        Status::Pending => "[ ]",
        Status::InProgress => "[~]",
        Status::Complete => "[x]",
        Status::Skipped => "[-]",
    }
}

/// Prose on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
