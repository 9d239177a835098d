//! Requests for approval: the request, the requester, and the form for the answer.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use maud::{Markup, html};
use serde_json::Value;
use tollgate_core::identity::Identity;
use tollgate_sdk::{ApprovalStatus, Timestamp};
use tollgate_store::storage::{Session, StoreResult, StoredApproval};

use super::live::query;
use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::address::{Name, nothing};
use crate::answers::{PersonAnswer, Refusal};
use crate::envelope::{Card, span};
use crate::guard;
use crate::layout::{self, Page, pill};
use crate::reader::ReadError;
use crate::rows::path_part;
use crate::visible;

/// Longest note in characters, as the gate takes it.
const MAX_NOTE: usize = 2_000;
/// Most settled requests in the list.
const MAX_SETTLED: u32 = 20;
/// Open requests of a page of the list.
const PAGE_APPROVALS: u32 = 25;
/// Longest content of a request on its own page and in the list, in characters.
const MAX_DETAIL: usize = 40_000;
const MAX_IN_LIST: usize = 4_000;

/// A request, with the envelope that its call belongs to.
struct Request {
    stored: StoredApproval,
    envelope: Option<Card>,
}

impl Request {
    fn of(session: &Session, stored: StoredApproval, boot_ms: i64) -> StoreResult<Request> {
        let id = stored.by.envelope_id.as_deref();
        let envelope = id.map(|id| session.envelopes().get(id)).transpose()?.flatten();
        let card = envelope.map(|envelope| Card::of(session, envelope, boot_ms));
        Ok(Request {
            envelope: card.transpose()?,
            stored,
        })
    }
}

/// Page with the list.
pub(crate) async fn list(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    RawQuery(raw): RawQuery,
) -> Shown {
    let (now_ms, boot_ms) = (console.clock.now_ms(), console.clock.boot_ms());
    let query = query(raw.as_deref());
    let skip: u32 = query
        .get("after")
        .and_then(|after| after.parse().ok())
        .unwrap_or_default();
    let (waiting, all, settled_before) = console
        .reader
        .read(move |session| {
            let pending = session
                .approvals()
                .list_by_turns(now_ms, (skip, PAGE_APPROVALS))?
                .into_iter();
            let waiting = pending
                .map(|stored| Request::of(session, stored, boot_ms))
                .collect::<StoreResult<Vec<Request>>>()?;
            let all = session.approvals().count_open(now_ms)?;
            Ok((waiting, all, session.approvals().settled(now_ms, MAX_SETTLED)?))
        })
        .await?;
    let shown = skip as usize + waiting.len();
    let page = Page {
        title: "Approvals",
        section: "Approvals",
        refreshes: false,
        waiting: all,
        body: html! {
            (layout::title("Approvals", "Calls and steps that wait for a person's answer. The oldest request of each caller comes first."))
            (viewer_hint(&viewer))
            p #changed role="status" hidden { a href="/console/approvals" { "The list has changed. Show it." } }
            @if waiting.is_empty() {
                section.card {
                    (layout::empty(
                        "Nothing waits for a person.",
                        "Requests of policies such as side-effect-approval, of task-store and of the conductor's gate \
                         human_approval appear here.",
                    ))
                }
            }
            @for one in &waiting { (whole(&console, &viewer, one, now_ms, MAX_IN_LIST)) }
            nav.pages aria-label="More requests" {
                @if skip > 0 { a href="/console/approvals" { "First" } }
                @if shown < all { a href=(format!("/console/approvals?after={shown}")) rel="next" { "More: " (all - shown) } }
            }
            (settled(&settled_before, now_ms))
        },
    };
    Ok(page.show(&console.access, &viewer))
}

/// Page of one request, also after its answer.
pub(crate) async fn one(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    Name(id): Name,
) -> Shown {
    about(&console, &viewer, &id, None).await
}

/// Passes an answer to the gate. The page of the request shows the result.
pub(crate) async fn answer(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    Name(id): Name,
    headers: HeaderMap,
    body: Body,
) -> Shown {
    let form = guard::form(&headers, body).await.unwrap_or_default();
    let field = |name| guard::field(&form, name);
    // A bearer of a token is a program, and should call approval_resolve under its own name.
    let is_ours = viewer.session.is_some()
        && console
            .access
            .is_form_token(&viewer, &form_name(&id), field("form"));
    if !is_ours {
        return Ok(guard::forbidden("the form is not from this session"));
    }
    if !viewer.approves {
        let refusal = Refusal {
            code: "NOT_AN_APPROVER".to_owned(),
            message: format!("{} may view requests, but not answer them", viewer.name()),
            remediation: "The operator names approvers in server.console.approvers.".to_owned(),
        };
        return about(&console, &viewer, &id, Some(refusal)).await;
    }
    let approves = match field("decision") {
        "approve" => true,
        "reject" => false,
        _ => {
            return Ok(layout::plain(
                StatusCode::BAD_REQUEST,
                "Refused",
                "The form does not contain a decision.",
            ));
        }
    };
    let note = field("note").trim();
    let answer = PersonAnswer {
        approval_id: id.clone(),
        approves,
        note: (!note.is_empty()).then(|| note.to_owned()),
        identity: viewer.identity.clone(),
    };
    let answered = console.answering.answer(answer).await;
    console.parts.forget().await;
    match answered {
        Ok(()) => Ok(guard::see_other(&href(&id), None)),
        Err(refusal) => about(&console, &viewer, &id, Some(refusal)).await,
    }
}

async fn about(console: &Console, viewer: &Viewer, id: &str, refusal: Option<Refusal>) -> Shown {
    let (_, waiting) = parts::current(console).await?;
    let found = found(console, id).await?;
    let Some(found) = found else {
        let text = format!("No request for approval has the id {id}.");
        return Ok(nothing("There is no such request", &text));
    };
    let page = Page {
        title: &found.stored.title,
        section: "Approvals",
        refreshes: false,
        waiting,
        body: html! {
            div.title {
                p.crumbs { a href="/console/approvals" { "Approvals" } }
                h1 { "Approval" }
            }
            @if let Some(refusal) = &refusal {
                div.notice role="alert" { div {
                    strong { "Not answered: " } code { (visible::short(&refusal.code, 64)) } " "
                    (visible::short(&refusal.message, 1_000)) ". " (visible::short(&refusal.remediation, 1_000))
                } }
            }
            (viewer_hint(viewer))
            (whole(console, viewer, &found, console.clock.now_ms(), MAX_DETAIL))
        },
    };
    let shown = page.show(&console.access, viewer);
    Ok(match refusal {
        Some(refusal) => (refused_as(&refusal), shown).into_response(),
        None => shown,
    })
}

async fn found(console: &Console, id: &str) -> Result<Option<Request>, ReadError> {
    let (wanted, boot_ms) = (id.to_owned(), console.clock.boot_ms());
    let reading = console.reader.read(move |session| {
        let found = session.approvals().get(&wanted)?;
        found
            .map(|stored| Request::of(session, stored, boot_ms))
            .transpose()
    });
    reading.await
}

/// Status for a refusal: already answered, or not permitted for this caller.
fn refused_as(refusal: &Refusal) -> StatusCode {
    match refusal.code.as_str() {
        "APPROVAL_ANSWERED" => StatusCode::CONFLICT,
        "APPROVAL_NOT_FOUND" => StatusCode::NOT_FOUND,
        _ => StatusCode::FORBIDDEN,
    }
}

fn viewer_hint(viewer: &Viewer) -> Markup {
    html! {
        @if !viewer.approves { p.hint { "You are a viewer: only the identities in server.console.approvers can answer these." } }
    }
}

/// Requests that can no longer be answered, newest first.
fn settled(settled: &[StoredApproval], now_ms: i64) -> Markup {
    html! {
        @if !settled.is_empty() {
            section.card aria-labelledby="settled" {
                h2 #settled { "Recently settled" }
                ul.settled {
                    @for one in settled {
                        li {
                            a href=(href(&one.approval.id)) { (visible::short(&one.title, 90)) } " "
                            (pill("plain", one.status(now_ms).as_str())) " "
                            span.meta {
                                @if let Some(by) = &one.approval.answered_by { "by " (layout::name(by, one.approval.approver.is_some(), 60)) " · " }
                                "asked by " (requester(one)) " · " (time(one.approval.answered_at_ms.unwrap_or(one.approval.asked_at_ms)))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A request in a few lines, for the first page.
pub(crate) fn short(one: &StoredApproval, now_ms: i64) -> Markup {
    html! {
        article.waiting {
            h3 { a href=(href(&one.approval.id)) { (visible::short(&one.title, 90)) } " " (pill("warn", &component(one))) }
            p.meta { (ago(one, now_ms)) }
        }
    }
}

fn whole(console: &Console, viewer: &Viewer, request: &Request, now_ms: i64, most: usize) -> Markup {
    let one = &request.stored;
    let status = one.status(now_ms);
    let (content, is_cut) = detail(one, most);
    let kind = match status {
        ApprovalStatus::Pending => "warn",
        ApprovalStatus::Approved => "good",
        _ => "plain",
    };
    html! {
        article.card.waiting id=(path_part(&one.approval.id)) {
            header {
                h2 { a href=(href(&one.approval.id)) { (visible::short(&one.title, 200)) } }
                (pill(kind, status.as_str()))
            }
            p.meta { (ago(one, now_ms)) " · " (time(one.approval.asked_at_ms)) }
            div.request {
                div {
                    dl.facts { (facts(one)) }
                    @if let Some(card) = &request.envelope { (before(card)) }
                }
                div {
                    h3 { "An approval allows exactly this" }
                    pre.text tabindex="0" aria-label="content of the request" { (content) }
                    @if is_cut {
                        p.hint {
                            "Only the beginning is shown. "
                            @if most < MAX_DETAIL { a href=(href(&one.approval.id)) { "Show more" } } @else { "tollgate approvals show prints all of it." }
                        }
                    }
                }
            }
            // After the content, so that the content is read before the buttons.
            @if status != ApprovalStatus::Pending { (answered(one)) }
            // Content that is not shown in full cannot be decided on.
            @else if is_cut && most < MAX_DETAIL { p { a href=(href(&one.approval.id)) { "Read all of it to answer" } } }
            @else { (form(console, viewer, one)) }
        }
    }
}

/// Work so far in the envelope of the call.
fn before(card: &Card) -> Markup {
    html! {
        div.before {
            h3 { "In its envelope: " a href=(card.href()) { (card.name()) } }
            (card.pills())
            (card.bars())
        }
    }
}

fn form(console: &Console, viewer: &Viewer, one: &StoredApproval) -> Markup {
    let id = &one.approval.id;
    html! {
        @if viewer.approves && is_requester(viewer, one) {
            p.hint { "You asked for this, so somebody else must answer it." }
        } @else if viewer.approves && viewer.session.is_some() {
            form.answer method="post" action=(href(id)) {
                input type="hidden" name="form" value=(console.access.form_token(viewer, &form_name(id)));
                // The Enter key presses the first button of a form. This one is disabled, so that Enter decides
                // nothing.
                button type="submit" disabled hidden {}
                label for=(format!("note-{}", path_part(id))) { "Note" }
                input id=(format!("note-{}", path_part(id))) name="note" maxlength=(MAX_NOTE) autocomplete="off" placeholder="reason (optional)";
                div.buttons {
                    button.primary type="submit" name="decision" value="approve" { "Approve" }
                    button type="submit" name="decision" value="reject" { "Reject" }
                }
            }
        }
        details {
            summary { "On the command line" }
            pre.text.command tabindex="0" { "tollgate approvals allow " (visible::line(id)) "\ntollgate approvals deny " (visible::line(id)) }
        }
    }
}

fn answered(one: &StoredApproval) -> Markup {
    let approval = &one.approval;
    html! {
        p {
            strong { (approval.status.as_str()) }
            @if let Some(by) = &approval.answered_by { " by " (layout::name(by, approval.approver.is_some(), 100)) }
            @if let Some(at_ms) = approval.answered_at_ms { " · " (time(at_ms)) }
            @if let Some(op_id) = &one.answered_op { " · " a href=(format!("/console/operations/{}", path_part(op_id))) { "the answer in the ledger" } }
        }
        @if let Some(note) = &approval.note { p { "Note: " (visible::short(note, MAX_NOTE)) } }
    }
}

fn facts(one: &StoredApproval) -> Markup {
    html! {
        dt { "Asked in the call" } dd {
            a href=(format!("/console/operations/{}", path_part(&one.by.op_id))) { (visible::short(&one.by.tool, 80)) }
        }
        dt { "Asked by" } dd { (requester(one)) }
        dt { "Asked for by" } dd { (component(one)) }
        @if let Some(until_ms) = one.until_ms { dt { "Open until" } dd { (time(until_ms)) } }
        @if let Some(answering) = &one.answering { dt { "Approving runs" } dd { code { (visible::short(&answering.approve.tool, 80)) } } }
        dt { "Id" } dd { code { (visible::line(&one.approval.id)) } }
    }
}

/// Content of the decision in at most `most` characters, and whether it is cut.
fn detail(one: &StoredApproval, most: usize) -> (String, bool) {
    let text = serde_json::to_string_pretty(&Value::Object(one.detail.clone())).unwrap_or_default();
    let mut shown = visible::lines(&text);
    let cut = shown.char_indices().nth(most).map(|(at, _)| at);
    if let Some(at) = cut {
        shown.truncate(at);
        shown.push('…');
    }
    (shown, cut.is_some())
}

fn requester(one: &StoredApproval) -> Markup {
    let proven = one.by.identity.as_deref();
    match proven.or(one.approval.requested_by.as_deref()) {
        Some(name) => layout::name(name, proven.is_some(), 80),
        None => html! { "a caller without a name" },
    }
}

fn component(one: &StoredApproval) -> String {
    visible::short(&one.component, 60)
}

fn ago(one: &StoredApproval, now_ms: i64) -> Markup {
    let since = now_ms.saturating_sub(one.approval.asked_at_ms) / 1_000;
    html! { "asked by " (requester(one)) @if since >= 0 { " · " (span(since)) " ago" } }
}

fn time(at_ms: i64) -> Markup {
    layout::date(&Timestamp::from_ms(at_ms).to_string())
}

fn href(id: &str) -> String {
    format!("/console/approvals/{}", path_part(id))
}

fn is_requester(viewer: &Viewer, one: &StoredApproval) -> bool {
    let named = viewer.identity.as_ref().map(Identity::as_str);
    named.is_some() && named == one.by.identity.as_deref()
}

/// Form name of one request, so that its token cannot answer another request.
fn form_name(id: &str) -> String {
    format!("approval {id}")
}
