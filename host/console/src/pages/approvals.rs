//! Questions that wait for a person: what is asked, by whom, and the command that answers.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use maud::{Markup, html};
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Asked, Waiting, claim};

use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::envelope::span;
use crate::layout::{self, Page, pill};
use crate::rows::path_part;
use crate::visible;

/// The page.
pub(crate) async fn show(State(console): State<Arc<Console>>, Extension(viewer): Extension<Viewer>) -> Shown {
    let waiting = console
        .reader
        .read(|session| session.waiting(parts::WAITING))
        .await?;
    let now_ms = console.clock.now_ms();
    let page = Page {
        title: "Approvals",
        section: "Approvals",
        refreshes: false,
        waiting: waiting.len(),
        body: html! {
            (layout::title("Approvals", "Calls and steps that go on once a person allows them."))
            @if !viewer.approves { p.hint { "You are a viewer: somebody whom server.console.approvers names answers these." } }
            @if waiting.is_empty() {
                section.card {
                    (layout::empty(
                        "Nothing waits for a person.",
                        "Calls that the policy side-effect-approval stops, approvals of task-store and steps of the conductor with \
                         the gate human_approval appear here.",
                    ))
                }
            }
            @for one in &waiting { (whole(one, now_ms)) }
        },
    };
    Ok(page.show(&console.access, &viewer))
}

/// A question in a few lines, for the first page.
pub(crate) fn short(one: &Waiting, now_ms: i64) -> Markup {
    html! {
        article.waiting {
            h3 { a href=(format!("/console/approvals#{}", anchor(one))) { (visible::short(&one.title, 90)) } " " (pill("warn", kind(one))) }
            p.meta { (ago(one, now_ms)) }
        }
    }
}

fn whole(one: &Waiting, now_ms: i64) -> Markup {
    html! {
        article.card.waiting id=(anchor(one)) {
            header { h2 { (visible::short(&one.title, 160)) } (pill("warn", kind(one))) }
            p.meta { (asked(one, now_ms)) }
            dl.facts { (facts(one)) }
            @match one.approves() {
                Some((tool, arguments)) => {
                    p { "To approve, run on the machine of the host:" }
                    pre.text.command tabindex="0" { "tollgate call " (tool) " '" (visible::line(&quoted(&arguments.to_string()))) "'" }
                }
                None => p.hint {
                    "Nobody was asked yet. The agent asks with " code { "task_request_approval" }
                    ", or its client asks its user; the reply of the denied call says how."
                }
            }
        }
    }
}

fn facts(one: &Waiting) -> Markup {
    html! {
        @match &one.asked {
            Asked::TaskStore { approval_id, task_id, side_effect, key } => {
                dt { "Side effect" } dd { code { (visible::short(side_effect, 80)) } }
                dt { "Arguments' hash" } dd { code { (visible::short(key, 80)) } " "
                    a href=(format!("/console/?q=tool:{}", path_part(side_effect))) { "its calls" } }
                dt { "Task" } dd { (visible::short(&one.about, 120)) " " code { (visible::line(task_id)) } }
                dt { "Approval" } dd { code { (visible::line(approval_id)) } }
            }
            Asked::Conductor { job_id, step_id } => {
                dt { "Job" } dd { (visible::short(&one.about, 120)) " " code { (visible::line(job_id)) } }
                dt { "Step" } dd { code { (visible::line(step_id)) } }
            }
            Asked::Denied(operation) => {
                dt { "Call" } dd { a href=(format!("/console/operations/{}", operation.seq)) { "#" (operation.seq) } }
                dt { "Arguments' hash" } dd { (layout::hash(&operation.args_hash)) }
            }
        }
        @if let Some(workspace) = &one.workspace { dt { "Workspace" } dd { (visible::short(workspace, 64)) } }
    }
}

fn asked(one: &Waiting, now_ms: i64) -> Markup {
    html! { (ago(one, now_ms)) " · " (layout::date(&one.asked_at)) }
}

fn ago(one: &Waiting, now_ms: i64) -> Markup {
    let since = Timestamp::parse(&one.asked_at).map(|at| now_ms.saturating_sub(at.as_ms()) / 1_000);
    html! {
        @if let Some(by) = &one.asked_by { "asked by " (visible::short(claim(by).unwrap_or(by), 60)) " · " }
        @if let Some(since) = since.filter(|since| *since >= 0) { (span(since)) " ago" }
    }
}

const fn kind(one: &Waiting) -> &'static str {
    match one.asked {
        Asked::TaskStore { .. } => "approval",
        Asked::Conductor { .. } => "step",
        Asked::Denied(_) => "denied",
    }
}

fn anchor(one: &Waiting) -> String {
    let id = match &one.asked {
        Asked::TaskStore { approval_id, .. } => approval_id.clone(),
        Asked::Conductor { job_id, step_id } => format!("{job_id}-{step_id}"),
        Asked::Denied(operation) => operation.op_id.clone(),
    };
    id.chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        .collect()
}

/// Text for single quotes of a shell.
fn quoted(text: &str) -> String {
    text.replace('\'', r"'\''")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_quotes_whatever_an_id_holds() {
        let one = Waiting {
            asked: Asked::TaskStore {
                approval_id: "apr'; rm -rf ~ #".to_owned(),
                task_id: "t\u{202e}".to_owned(),
                side_effect: "<b>".to_owned(),
                key: "k".to_owned(),
            },
            title: "<script>".to_owned(),
            about: String::new(),
            workspace: None,
            asked_by: Some("claimed:ada".to_owned()),
            asked_at: "2026-03-01T00:00:00.000Z".to_owned(),
        };
        let markup = whole(&one, 0).into_string();
        assert!(markup.contains(r"apr'\''; rm -rf ~ #"), "{markup}");
        assert!(
            !markup.contains("<script>") && !markup.contains("<b>"),
            "{markup}"
        );
        assert!(!markup.contains('\u{202e}'), "{markup}");
        assert_eq!(anchor(&one), "aprrm-rf");
    }
}
