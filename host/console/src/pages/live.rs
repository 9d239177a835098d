//! First page: new rows of the ledger, and beside them whatever needs a person.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse as _;
use maud::{Markup, html};
use tollgate_store::storage::{OperationFilter, Session, StoreResult, StoredOperation};

use super::{PAGE_ROWS, Shown};
use crate::Console;
use crate::access::Viewer;
use crate::filter::{Filter, KEYS};
use crate::layout::{self, Page};
use crate::pages::parts;
use crate::rows::{self, Row};
use crate::tail;
use crate::visible;

/// Maximum duration of a stream. Its page reconnects at once.
const STREAM_LIMIT: Duration = Duration::from_secs(3_600);
/// Number of rows that a filter scans for one page, so that a page without matches loads quickly.
const MAX_SCANNED_ROWS: i64 = 5_000;
/// Number of rows read at once while a filter scans them.
const BATCH_ROWS: u32 = 500;

/// A page of rows.
struct Found {
    rows: Vec<Row>,
    /// Newest row of the ledger.
    head: i64,
    /// Sequence number at which older rows begin, if there are any.
    older: Option<i64>,
}

/// Values of an address's query.
pub(crate) fn query(raw: Option<&str>) -> HashMap<String, String> {
    url::form_urlencoded::parse(raw.unwrap_or_default().as_bytes())
        .into_owned()
        .collect()
}

/// Serves the page.
pub(crate) async fn show(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    RawQuery(raw): RawQuery,
) -> Shown {
    let query = query(raw.as_deref());
    let filter = Filter::parse(query.get("q").map_or("", String::as_str));
    let before = query.get("before").and_then(|before| before.parse().ok());
    let (parts, waiting) = parts::current(&console).await?;
    let looked = filter.clone();
    let found = console
        .reader
        .read(move |session| find(session, &looked, before))
        .await?;
    let page = Page {
        title: "Live",
        section: "Live",
        refreshes: before.is_none(),
        waiting,
        body: html! {
            div.columns {
                (ledger(&found, &filter, before))
                aside aria-label="What needs attention" { (parts) }
            }
        },
    };
    Ok(page.show(&console.access, &viewer))
}

fn ledger(found: &Found, filter: &Filter, before: Option<i64>) -> Markup {
    let live = format!("/console/live?after={}&{}", found.head, filter.query());
    html! {
        section.card.wide #ledger data-part aria-labelledby="ledger-title" {
            header {
                h1 #ledger-title { "Ledger" }
                form.filter method="get" action="/console/" role="search" {
                    label.sr for="filter" { "Filter" }
                    input #filter type="search" name="q" value=(filter.typed) placeholder="filter  /" autocomplete="off"
                        spellcheck="false" title="tool:test_run failed who:ada policy:NAME code:FROZEN tests:failed, or parts of names";
                    button.sr type="submit" { "Filter" }
                }
                button #pause .quiet type="button" aria-pressed="false" hidden[before.is_some()] { "Pause" kbd { "p" } }
            }
            @for word in filter.unknown() {
                p.hint { code { (visible::short(word, 60)) } " is searched for as text, because it is not a key. Keys are " code { (KEYS) } }
            }
            @if found.rows.is_empty() && before.is_some() {
                (layout::empty("No older row matches.", ""))
            } @else if found.rows.is_empty() && filter.is_empty() {
                (layout::empty("No call has been recorded yet.", "The first call of a client appears here automatically."))
            } @else if found.rows.is_empty() {
                (layout::empty("No row matches.", "Words are combined: tool:test_run failed who:ada"))
            }
            (rows::table(&found.rows, "Calls, newest first", before.is_none().then_some(live.as_str())))
            nav.pages aria-label="Older rows" {
                @if before.is_some() { a href=(format!("/console/?{}", filter.query())) { "Newest" } }
                @if let Some(older) = found.older {
                    a href=(format!("/console/?before={older}&{}", filter.query())) rel="next" { "Older" }
                }
            }
        }
    }
}

fn find(session: &Session, filter: &Filter, before: Option<i64>) -> StoreResult<Found> {
    let head = session.ledger().head()?.seq;
    let oldest = session.operations().oldest()?.unwrap_or(1);
    let start = before
        .unwrap_or(head.saturating_add(1))
        .min(head.saturating_add(1));
    let end = start.saturating_sub(MAX_SCANNED_ROWS).max(oldest);
    let mut place = start;
    let mut fitting: Vec<StoredOperation> = Vec::new();
    let batch = if filter.looks_at_each() {
        BATCH_ROWS
    } else {
        PAGE_ROWS
    };
    while place > end && fitting.len() < PAGE_ROWS as usize {
        let known = OperationFilter {
            before: Some(place),
            after: Some(end.saturating_sub(1)),
            newest_first: true,
            ..filter.known.clone()
        };
        let found = session.operations().list(&known, batch)?;
        place = match found.last() {
            Some(last) if found.len() == batch as usize => last.seq,
            _ => end,
        };
        fitting.extend(found.into_iter().filter(|operation| filter.fits(operation)));
    }
    if fitting.len() > PAGE_ROWS as usize {
        fitting.truncate(PAGE_ROWS as usize);
    }
    if fitting.len() == PAGE_ROWS as usize {
        place = fitting.last().map_or(place, |last| last.seq);
    }
    Ok(Found {
        rows: fitting
            .iter()
            .map(|operation| Row::of(session, operation))
            .collect::<StoreResult<_>>()?,
        head,
        older: (place > oldest).then_some(place),
    })
}

/// Streams new rows as long as the page is open.
pub(crate) async fn stream(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Shown {
    let query = query(raw.as_deref());
    let head = console
        .reader
        .read(|session| Ok(session.ledger().head()?.seq))
        .await?;
    // The last id of a reconnecting browser takes precedence over the page's start, if it is a position.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let places = [last, query.get("after").map(String::as_str)];
    let after = places
        .into_iter()
        .flatten()
        .filter_map(|place| place.parse::<i64>().ok())
        .find(|place| *place <= head)
        .unwrap_or(head);
    let filter = Filter::parse(query.get("q").map_or("", String::as_str));
    let left = viewer
        .until_ms
        .map(|until_ms| until_ms.saturating_sub(console.clock.now_ms()));
    let left = left.map_or(STREAM_LIMIT, |ms| {
        Duration::from_millis(u64::try_from(ms).unwrap_or_default())
    });
    let until = tail::first_of(console.stop.clone(), viewer.ends, left.min(STREAM_LIMIT));
    let messages = console.tail.listen(after, filter, until);
    let kinds = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((kinds, Body::from_stream(messages)).into_response())
}
