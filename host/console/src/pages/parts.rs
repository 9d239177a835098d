//! Parts of pages that change while they are open: open requests, open envelopes, repeated failures. All open pages
//! show the same parts, so they are read once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::IntoResponse as _;
use maud::{Markup, PreEscaped, html};
use tollgate_core::envelope::State as EnvelopeState;
use tollgate_store::storage::{
    EnvelopeFilter, OperationFilter, Session, StoreResult, StoredApproval, StoredOperation,
};

use super::Shown;
use crate::Console;
use crate::envelope::Card;
use crate::figures::FailingSum;
use crate::kept_parts::Kept;
use crate::layout::{self, pill};
use crate::pages::approvals;
use crate::reader::ReadError;
use crate::rows::path_part;
use crate::visible;

/// Time for which cached parts are fresh enough.
const CACHE_AGE_LIMIT: Duration = Duration::from_millis(800);
/// Number of envelopes and failures beside the ledger.
const MAX_ENVELOPES: u32 = 6;
const MAX_FAILURES: usize = 5;
/// Number of rows searched for failures.
const MAX_SEARCHED_ROWS: i64 = 20_000;
/// Number of requests shown.
const MAX_APPROVALS: u32 = 4;

/// A failure that occurred at least once.
pub(crate) struct Failing {
    /// Number of occurrences, and their positions.
    pub(crate) sum: FailingSum,
    /// Newest call with this failure.
    pub(crate) newest: StoredOperation,
}

/// Serves the parts alone, for the script.
pub(crate) async fn show(State(console): State<Arc<Console>>) -> Shown {
    let (markup, waiting) = current(&console).await?;
    Ok(layout::bare("Parts", &html! { (layout::badge(waiting)) (markup) }).into_response())
}

/// Current parts, and the number of open requests.
pub(crate) async fn current(console: &Console) -> Result<(Markup, usize), ReadError> {
    let mut kept = console.parts.hold().await;
    if let Some(kept) = kept.as_ref().filter(|kept| kept.at.elapsed() < CACHE_AGE_LIMIT) {
        return Ok((PreEscaped(kept.markup.to_string()), kept.waiting));
    }
    let boot_ms = console.clock.boot_ms();
    let now_ms = console.clock.now_ms();
    let failing = console
        .figures
        .look(|figures| figures.failing(MAX_SEARCHED_ROWS, 2, MAX_FAILURES))
        .await?;
    let (markup, waiting) = console
        .reader
        .read(move |session| read(session, failing, boot_ms, now_ms))
        .await?;
    let markup: Arc<str> = markup.into_string().into();
    *kept = Some(Kept {
        at: Instant::now(),
        markup: Arc::clone(&markup),
        waiting,
    });
    Ok((PreEscaped(markup.to_string()), waiting))
}

fn read(
    session: &Session,
    failing: Vec<FailingSum>,
    boot_ms: i64,
    now_ms: i64,
) -> StoreResult<(Markup, usize)> {
    let waiting = session.approvals().list_by_turns(now_ms, (0, MAX_APPROVALS))?;
    let all_waiting = session.approvals().count_open(now_ms)?;
    let mut envelopes = of_state(session, Some(EnvelopeState::Open), boot_ms, MAX_ENVELOPES)?;
    let open = envelopes.len();
    if open < 3 {
        let newest = of_state(session, None, boot_ms, MAX_ENVELOPES)?;
        let closed = newest
            .into_iter()
            .filter(|card| card.envelope.standing.state != EnvelopeState::Open);
        envelopes.extend(closed.take(4 - open));
    }
    envelopes.sort_by_key(|card| !card.goes_in_circles());
    let failing = newest_of(session, failing)?;
    let markup = html! {
        (waiting_part(&waiting, all_waiting, now_ms))
        (envelopes_part(&envelopes))
        (failing_part(&failing))
    };
    Ok((markup, all_waiting))
}

/// The newest call of each failure.
pub(crate) fn newest_of(session: &Session, failing: Vec<FailingSum>) -> StoreResult<Vec<Failing>> {
    let mut found = Vec::new();
    for sum in failing {
        // By position, because finding the newest row of a fingerprint in a long ledger is slow.
        let filter = OperationFilter {
            after: Some(sum.newest_seq.saturating_sub(1)),
            before: Some(sum.newest_seq.saturating_add(1)),
            ..OperationFilter::default()
        };
        // Old rows can have been removed after they were counted.
        if let Some(newest) = session.operations().list(&filter, 1)?.pop() {
            found.push(Failing { sum, newest });
        }
    }
    Ok(found)
}

/// Note on a page whose figures lack older rows.
pub(crate) fn counted_from(seq: Option<i64>) -> Markup {
    html! {
        @if let Some(seq) = seq {
            p.hint { "Counts include rows from #" (seq) " on. Older rows are still being counted." }
        }
    }
}

/// Envelopes in a state, newest first, with the repetitions in each.
pub(crate) fn of_state(
    session: &Session,
    state: Option<EnvelopeState>,
    boot_ms: i64,
    limit: u32,
) -> StoreResult<Vec<Card>> {
    let filter = EnvelopeFilter {
        state,
        boot_ms,
        ..EnvelopeFilter::default()
    };
    let found = session.envelopes().list(&filter, limit)?;
    found
        .into_iter()
        .map(|envelope| Card::of(session, envelope, boot_ms))
        .collect()
}

fn waiting_part(waiting: &[StoredApproval], all: usize, now_ms: i64) -> Markup {
    html! {
        section #part-waiting .card data-part aria-labelledby="waiting-title" {
            header { h2 #waiting-title { "Waiting for you" } span.count { (all) } }
            @if waiting.is_empty() { (layout::empty("Nothing waits.", "")) }
            @for one in waiting { (approvals::short(one, now_ms)) }
            @if all > waiting.len() { p { a href="/console/approvals" { "All " (all) } } }
        }
    }
}

fn envelopes_part(envelopes: &[Card]) -> Markup {
    html! {
        section #part-envelopes .card data-part aria-labelledby="envelopes-title" {
            header { h2 #envelopes-title { "Envelopes" } a.more href="/console/envelopes" { "all" } }
            @if envelopes.is_empty() {
                (layout::empty("No envelope yet.", "The tool envelope_open puts limits around a piece of work."))
            }
            @for card in envelopes { (card.brief()) }
        }
    }
}

fn failing_part(failing: &[Failing]) -> Markup {
    html! {
        section #part-failing .card data-part aria-labelledby="failing-title" {
            header { h2 #failing-title { "Failing again" } a.more href="/console/tests" { "all" } }
            @if failing.is_empty() { (layout::empty("No failure occurred twice.", "")) }
            ul.plain {
                @for one in failing { li { (again(one)) } }
            }
        }
    }
}

/// A failure on one line.
pub(crate) fn again(one: &Failing) -> Markup {
    html! {
        a.failure href=(format!("/console/?q=fingerprint:{}", path_part(&one.sum.fingerprint))) { (failure_name(one)) }
        " " (pill("bad", &format!("{}×", one.sum.seen)))
        div.meta {
            (layout::hash(&one.sum.fingerprint)) " · last "
            a href=(format!("/console/operations/{}", one.newest.seq)) { "#" (one.sum.newest_seq) }
        }
    }
}

/// Name of a failure: its first failing test, or the tool that failed.
pub(crate) fn failure_name(one: &Failing) -> String {
    let mut tests = one.newest.failing_tests.iter().flatten();
    match (tests.next(), tests.count()) {
        (Some(test), 0) => visible::short(test, 90),
        (Some(test), more) => format!("{} and {more} more", visible::short(test, 80)),
        (None, _) => {
            let code = one.newest.error_code.as_deref().unwrap_or("failed");
            visible::short(&format!("{} {code}", one.newest.tool), 90)
        }
    }
}
