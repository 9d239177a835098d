//! List of envelopes, and the page of one: its limits and its events in order.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use maud::{Markup, html};
use tollgate_core::envelope::State as EnvelopeState;
use tollgate_store::ledger::report::{Changed, Story};
use tollgate_store::storage::{EnvelopeFilter, OperationFilter, Session, StoreResult, StoredOperation};

use super::live::query;
use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::address::{Name, nothing};
use crate::envelope::{Card, span};
use crate::layout::{self, Page};
use crate::rows::{self, Row, path_part};
use crate::timeline::Timeline;
use crate::visible;

/// Envelopes of a page.
const PAGE_ENVELOPES: u32 = 30;
/// Rows that a timeline is built from, and that are shown below it.
const TIMELINE_ROWS: u32 = 2_000;
const SHOWN_ROWS: usize = 200;
/// Number of changes shown before the rest is collapsed.
const SHOWN_CHANGES: usize = 14;

/// Page with the list.
pub(crate) async fn list(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    RawQuery(raw): RawQuery,
) -> Shown {
    let query = query(raw.as_deref());
    let only_open = query.get("state").is_some_and(|state| state == "open");
    let before = query.get("before").cloned().zip(query.get("id").cloned());
    let (_, waiting) = parts::current(&console).await?;
    let boot_ms = console.clock.boot_ms();
    let cards = console
        .reader
        .read(move |session| {
            let filter = EnvelopeFilter {
                state: only_open.then_some(EnvelopeState::Open),
                boot_ms,
                before,
                ..EnvelopeFilter::default()
            };
            let found = session.envelopes().list(&filter, PAGE_ENVELOPES)?;
            found
                .into_iter()
                .map(|one| Card::of(session, one, boot_ms))
                .collect::<StoreResult<Vec<Card>>>()
        })
        .await?;
    let page = Page {
        title: "Envelopes",
        section: "Envelopes",
        refreshes: false,
        waiting,
        body: html! {
            (layout::title("Envelopes", "Limits around the calls of one piece of work, the newest first."))
            nav.tabs aria-label="Which envelopes" {
                a href="/console/envelopes" aria-current=[(!only_open).then_some("true")] { "All" }
                a href="/console/envelopes?state=open" aria-current=[only_open.then_some("true")] { "Open" }
            }
            @if cards.is_empty() {
                section.card {
                    (layout::empty(
                        if only_open { "No envelope is open." } else { "No envelope yet." },
                        "The tool envelope_open, or tollgate envelopes open, puts limits around a piece of work.",
                    ))
                }
            }
            h2.sr { @if only_open { "Open envelopes" } @else { "All envelopes" } }
            div.grid { @for card in &cards { div.card { (card.markup()) } } }
            nav.pages aria-label="Older envelopes" {
                @if cards.len() == PAGE_ENVELOPES as usize {
                    @if let Some(last) = cards.last() { a rel="next" href=(older(last, only_open)) { "Older" } }
                }
            }
        },
    };
    Ok(page.show(&console.access, &viewer))
}

fn older(last: &Card, only_open: bool) -> String {
    let (at, id) = (path_part(&last.envelope.opened_at), path_part(&last.envelope.id));
    let state = if only_open { "&state=open" } else { "" };
    format!("/console/envelopes?before={at}&id={id}{state}")
}

/// One envelope with everything that its page shows.
struct Whole {
    card: Card,
    parents: Vec<Card>,
    story: Story,
    timeline: Timeline,
    rows: Vec<Row>,
    /// True if the timeline lacks the oldest rows.
    is_cut: bool,
}

/// Page of one envelope.
pub(crate) async fn one(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    Name(id): Name,
) -> Shown {
    let (_, waiting) = parts::current(&console).await?;
    let boot_ms = console.clock.boot_ms();
    let wanted = id.clone();
    let Some(whole) = console
        .reader
        .read(move |session| read(session, &wanted, boot_ms))
        .await?
    else {
        return Ok(nothing(
            "There is no such envelope",
            &format!("No envelope has the id {id}."),
        ));
    };
    let name = whole.card.name();
    let page = Page {
        title: &name,
        section: "Envelopes",
        refreshes: false,
        waiting,
        body: body(&whole),
    };
    Ok(page.show(&console.access, &viewer))
}

fn read(session: &Session, id: &str, boot_ms: i64) -> StoreResult<Option<Whole>> {
    let Some(envelope) = session.envelopes().get(id)? else {
        return Ok(None);
    };
    let mut parents = Vec::new();
    let mut at = envelope.parent.clone();
    while let Some(parent) = at.take().filter(|_| parents.len() < 8) {
        if let Some(found) = session.envelopes().get(&parent)? {
            at.clone_from(&found.parent);
            parents.push(Card::of(session, found, boot_ms)?);
        }
    }
    let filter = OperationFilter {
        envelope_id: Some(id.to_owned()),
        ..OperationFilter::default()
    };
    let mut operations: Vec<StoredOperation> = session.operations().list(&filter, TIMELINE_ROWS)?;
    let rows = operations
        .iter()
        .take(SHOWN_ROWS)
        .map(|operation| Row::of(session, operation));
    let rows = rows.collect::<StoreResult<_>>()?;
    let is_cut = operations.len() == TIMELINE_ROWS as usize;
    operations.reverse();
    let states = session.work_trees().states(id, TIMELINE_ROWS)?;
    Ok(Some(Whole {
        card: Card::of(session, envelope, boot_ms)?,
        parents,
        story: Story::of(session, id, boot_ms)?,
        timeline: Timeline::of(&operations, &states),
        rows,
        is_cut,
    }))
}

fn body(whole: &Whole) -> Markup {
    let envelope = &whole.card.envelope;
    html! {
        div.title {
            p.crumbs {
                a href="/console/envelopes" { "Envelopes" }
                @for parent in whole.parents.iter().rev() { " / " a href=(parent.href()) { (parent.name()) } }
            }
            h1 { (whole.card.name()) " " (whole.card.pills()) }
            p.about { (about(&whole.card)) }
        }
        @if let Some(sentences) = circles(whole) {
            div.notice role="note" { (layout::icon("loop")) div { (sentences) } }
        }
        section.card aria-labelledby="timeline-title" {
            header { h2 #timeline-title { "Timeline" } span.meta { "every mark leads to its call" } }
            @if whole.timeline.is_empty() {
                (layout::empty("Nothing has happened in this envelope yet.", "Calls appear here in order."))
            } @else {
                (whole.timeline.markup())
                (legend())
            }
            @if whole.is_cut || whole.timeline.left_out() > 0 {
                p.hint { "Only the newest marks are drawn; the ledger has all: " a href=(format!("/console/?q=envelope:{}", path_part(&envelope.id))) { "every call" } }
            }
        }
        div.columns.even {
            section.card aria-labelledby="budgets-title" {
                header { h2 #budgets-title { "Budgets" } }
                (whole.card.bars())
            }
            (stopped(&whole.story))
            (changes(&whole.story))
        }
        section.card aria-labelledby="calls-title" {
            header {
                h2 #calls-title { "Calls" }
                span.count { (layout::number(whole.story.operations)) }
                a.more href=(format!("/console/?q=envelope:{}", path_part(&envelope.id))) { "in the ledger" }
            }
            @if whole.rows.is_empty() { (layout::empty("No call yet.", "")) }
            (rows::table(&whole.rows, "Calls of this envelope, newest first", None))
        }
        details.card {
            summary { "Details" }
            dl.facts {
                dt { "Id" } dd { code { (visible::line(&envelope.id)) } }
                @if let Some(note) = &envelope.note { dt { "Note" } dd { (visible::line(note)) } }
                @if let Some(head) = &envelope.git_head { dt { "Commit at opening" } dd { (layout::hash(head)) } }
                @if let Some(head) = &envelope.closed_git_head { dt { "Commit at the end" } dd { (layout::hash(head)) } }
                dt { "Host" } dd { code { (visible::line(&envelope.host_id)) } }
                dt { "Connection" } dd { code { (visible::line(&envelope.connection)) } }
                dt { "Report" } dd { code { "tollgate ledger report " (visible::line(&envelope.id)) } }
            }
        }
    }
}

fn about(card: &Card) -> Markup {
    let envelope = &card.envelope;
    let closer = envelope.closed_actor.as_ref().or(envelope.closed_by.as_ref());
    html! {
        @if let Some(identity) = &envelope.identity { (visible::short(identity, 60)) " · " }
        @if let Some(workspace) = &envelope.workspace { (visible::short(workspace, 60)) " · " }
        "opened " (layout::date(&envelope.opened_at))
        @if let Some(sec) = card.open_sec { " · " (span(sec)) }
        @if let Some(at) = &envelope.closed_at { " · closed " (layout::date(at)) }
        @if let Some(closer) = closer { " by " (visible::short(closer, 60)) }
    }
}

/// Sentences about repetitions, understandable without knowing the product.
fn circles(whole: &Whole) -> Option<Markup> {
    let letters = whole.timeline.letters();
    let cut = letters.len().saturating_sub(8);
    let before = if cut > 0 { "… " } else { "" };
    let newest = letters[cut..].join(" ");
    let returns = whole.timeline.returns();
    let failures: Vec<_> = whole.timeline.repeated_failures().collect();
    if returns == 0 && failures.is_empty() && !whole.card.goes_in_circles() {
        return None;
    }
    Some(html! {
        @if returns > 0 {
            p {
                strong { "Edits go in circles. " }
                (returns) " edits restored an earlier state: "
                span.letters { (before) (newest) }
                @if let Some(period) = whole.card.repeats.filter(|period| *period > 1) { " (period " (period) ")" }
                "."
            }
        }
        @for (number, words, seen) in failures.iter().take(3) {
            p {
                strong { "✗" (number) " " (visible::short(words, 100)) }
                " failed " (seen) " times"
                @if whole.card.no_progress { ", although files were edited in between" }
                "."
            }
        }
        @if whole.card.is_flaky { p { strong { "A test is flaky: " } "the same files pass and fail." } }
    })
}

fn legend() -> Markup {
    html! {
        p.legend {
            span { b.key.edit { "A" } " edit; equal letters mean equal content; A is the content at the start, if known" }
            span { b.key.edit.observed { "A" } " edit that no call made" }
            span { b.key.failed { "✗1" } " tests failed; the same number is the same failure" }
            span { b.key.passed { "✓" } " tests passed" }
            span { b.key.stopped { "!" } " stopped or failed" }
        }
    }
}

fn stopped(story: &Story) -> Markup {
    html! {
        section.card aria-labelledby="stopped-title" {
            header { h2 #stopped-title { "Stopped and failed" } span.count { (story.failed) } }
            @if story.refusals.is_empty() { (layout::empty("Nothing was stopped.", "")) }
            ul.plain {
                @for refused in story.refusals.iter().take(12) {
                    li {
                        strong { (visible::short(&refused.code, 48)) } " " (layout::pill("bad", &format!("{}×", refused.count)))
                        div.meta {
                            (visible::cell(&refused.tools.iter().cloned().collect::<Vec<_>>().join(", ")))
                            " · last " a href=(format!("/console/operations/{}", refused.last_seq)) { "#" (refused.last_seq) }
                        }
                    }
                }
            }
        }
    }
}

fn changes(story: &Story) -> Markup {
    html! {
        section.card aria-labelledby="changes-title" {
            header { h2 #changes-title { "Changed" } span.count { (story.changes.len()) } }
            @if story.changes.is_empty() { (layout::empty("Nothing was changed.", "")) }
            (changed(&story.changes[..story.changes.len().min(SHOWN_CHANGES)]))
            @if story.changes.len() > SHOWN_CHANGES {
                details {
                    summary { (story.changes.len() - SHOWN_CHANGES) " more" }
                    (changed(&story.changes[SHOWN_CHANGES..]))
                }
            }
        }
    }
}

fn changed(changes: &[Changed]) -> Markup {
    html! {
        ul.plain.tight {
            @for one in changes { li { code { (visible::short(&one.what, 80)) } span.meta { " " (one.calls) "×" } } }
        }
    }
}
