//! Page of failures by fingerprint, and of envelopes that go in circles.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use maud::{Markup, html};
use tollgate_store::storage::{Session, StoreResult};

use super::Shown;
use super::parts::{self, Failing};
use crate::Console;
use crate::access::Viewer;
use crate::envelope::Card;
use crate::figures::FailingSum;
use crate::layout::{self, Page, pill};
use crate::rows::path_part;
use crate::visible;

/// Number of rows searched for failures, and of failures and envelopes shown.
const MAX_SEARCHED_ROWS: i64 = 200_000;
const MAX_FAILURES: usize = 60;
const MAX_ENVELOPES: u32 = 40;

struct Read {
    failing: Vec<Failing>,
    circling: Vec<Card>,
}

/// Serves the page.
pub(crate) async fn show(State(console): State<Arc<Console>>, Extension(viewer): Extension<Viewer>) -> Shown {
    let (_, waiting) = parts::current(&console).await?;
    let boot_ms = console.clock.boot_ms();
    let failing = console.figures.look(|figures| {
        (
            figures.failing(MAX_SEARCHED_ROWS, 1, MAX_FAILURES),
            figures.counted_from(),
        )
    });
    let (failing, counted_from) = failing.await?;
    let read = console
        .reader
        .read(move |session| read(session, failing, boot_ms))
        .await?;
    let page = Page {
        title: "Tests",
        section: "Tests",
        refreshes: false,
        waiting,
        body: html! {
            (layout::title("Tests", "Failures with the same fingerprint are the same failure, whatever the line numbers and times in it."))
            section.card aria-labelledby="circles-title" {
                header { h2 #circles-title { "Going in circles" } span.count { (read.circling.len()) } }
                @if read.circling.is_empty() { (layout::empty("No envelope goes in circles.", "Edits that come back, failures that stay and flaky tests appear here.")) }
                div.grid { @for card in &read.circling { (card.markup()) } }
            }
            section.card aria-labelledby="failures-title" {
                header { h2 #failures-title { "Failures" } span.count { (read.failing.len()) } }
                @if read.failing.is_empty() {
                    (layout::empty("No failure was recorded.", "test_run and other calls that run tests leave fingerprints of what failed."))
                } @else { (table(&read.failing)) }
                (parts::counted_from(counted_from))
            }
        },
    };
    Ok(page.show(&console.access, &viewer))
}

fn read(session: &Session, failing: Vec<FailingSum>, boot_ms: i64) -> StoreResult<Read> {
    let mut circling = parts::of_state(session, None, boot_ms, MAX_ENVELOPES)?;
    circling.retain(Card::goes_in_circles);
    circling.truncate(12);
    Ok(Read {
        failing: parts::newest_of(session, failing)?,
        circling,
    })
}

fn table(failing: &[Failing]) -> Markup {
    html! {
        div.scroll { table.figures {
            thead { tr {
                th scope="col" { "Failure" } th.ms scope="col" { "Seen" } th.ms scope="col" { "Envelopes" }
                th scope="col" { "First" } th scope="col" { "Last" } th scope="col" { "Fingerprint" }
            } }
            tbody { @for one in failing {
                tr {
                    th scope="row" {
                        a href=(format!("/console/?q=fingerprint:{}", path_part(&one.sum.fingerprint))) { (parts::failure_name(one)) }
                        @if let Some(message) = one.newest.outcome.as_ref().and_then(|outcome| outcome.message.as_ref()) {
                            small.note { (visible::short(message, 160)) }
                        }
                    }
                    td.ms { (pill(if one.sum.seen > 1 { "bad" } else { "plain" }, &format!("{}×", one.sum.seen))) }
                    td.ms { (one.sum.envelopes) }
                    td { a href=(format!("/console/operations/{}", one.sum.first_seq)) { "#" (one.sum.first_seq) } }
                    td { a href=(format!("/console/operations/{}", one.newest.seq)) { "#" (one.newest.seq) } " " (layout::date(&one.newest.timestamp)) }
                    td { (layout::hash(&one.sum.fingerprint)) }
                }
            } }
        } }
    }
}
