//! Page of statistics: calls over time, and by tool, caller and client.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use maud::{Markup, html};
use tollgate_core::text::counted;
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Bucket, Tally, claim};

use super::live::query;
use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::charts::{self, Bar};
use crate::figures::Counts;
use crate::layout::{self, Page};
use crate::rows::path_part;
use crate::visible;

/// Selectable time spans: name, milliseconds, interval, and milliseconds of a bar.
const SPANS: [(&str, i64, Bucket, i64); 4] = [
    ("1h", 3_600_000, Bucket::Minute, 60_000),
    ("24h", 86_400_000, Bucket::Hour, 3_600_000),
    ("7d", 7 * 86_400_000, Bucket::Hour, 3_600_000),
    ("14d", 14 * 86_400_000, Bucket::Day, 86_400_000),
];
/// Serves the page.
pub(crate) async fn show(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    RawQuery(raw): RawQuery,
) -> Shown {
    let query = query(raw.as_deref());
    let asked = query.get("since").map_or("24h", String::as_str);
    let span = SPANS
        .into_iter()
        .find(|(name, ..)| *name == asked)
        .unwrap_or(SPANS[1]);
    let (_, waiting) = parts::current(&console).await?;
    let now_ms = console.clock.now_ms();
    let (_, span_ms, bucket, _) = span;
    let figures = console.figures.look(move |figures| {
        let counts = figures.since(bucket, now_ms - span_ms);
        (counts, figures.counted_from())
    });
    let (counts, counted_from) = figures.await?;
    let page = Page {
        title: "Stats",
        section: "Stats",
        refreshes: false,
        waiting,
        body: body(&counts, counted_from, span, now_ms),
    };
    Ok(page.show(&console.access, &viewer))
}

fn body(
    read: &Counts,
    counted_from: Option<i64>,
    (chosen, span_ms, bucket, step_ms): (&str, i64, Bucket, i64),
    now_ms: i64,
) -> Markup {
    let bars = filled(&read.over_time, bucket, (now_ms - span_ms, now_ms, step_ms));
    let sum = |of: fn(&Tally) -> i64| read.over_time.iter().map(of).sum::<i64>();
    let (calls, failed, tests) = (
        sum(|tally| tally.calls),
        sum(|tally| tally.failed),
        sum(|tally| tally.tests_failed),
    );
    html! {
        (layout::title("Stats", "Counted from the ledger."))
        nav.tabs aria-label="Time range" {
            @for (name, ..) in SPANS {
                a href=(format!("/console/stats?since={name}")) aria-current=[(name == chosen).then_some("true")] { (name) }
            }
        }
        section.card aria-labelledby="calls-title" {
            header { h2 #calls-title { "Calls" } }
            div.totals {
                div { b { (layout::number(calls)) } span { "calls" } }
                div { b { (layout::number(failed)) } span { "refused or failed" } }
                div { b { (layout::number(tests)) } span { "with failing tests" } }
                div { b { (read.tools.len()) } span { "tools" } }
            }
            @if calls == 0 { (layout::empty("No calls in this period.", "")) }
            @else { (charts::bars(&bars, &format!("{} over {chosen}, {failed} refused or failed", counted(calls, "call")), ("refused or failed", "calls"))) }
            (parts::counted_from(counted_from))
        }
        section.card aria-labelledby="tools-title" {
            header { h2 #tools-title { "By tool" } }
            (table(&read.tools, "Tool", |tally| {
                let tool = tally.tool.clone().unwrap_or_default();
                linked(&format!("tool:{}", path_part(&tool)), &html! { (visible::short(&tool, 60)) })
            }))
        }
        div.columns.even {
            section.card aria-labelledby="actors-title" {
                header { h2 #actors-title { "By caller" } }
                (small(&read.actors, "Caller", |tally| match tally.actor.as_deref() {
                    None | Some("") => layout::none("no name recorded"),
                    Some(actor) => {
                        let name = layout::name(actor, claim(actor).is_none(), 40);
                        linked(&format!("who:{}", path_part(actor)), &name)
                    }
                }))
            }
            section.card aria-labelledby="clients-title" {
                header { h2 #clients-title { "By client" } }
                (small(&read.clients, "Client", |tally| match tally.client.as_deref() {
                    None => layout::none("the host, or no name"),
                    Some(client) => html! { (visible::short(client, 40)) },
                }))
            }
        }
    }
}

/// A bar for each interval, including those without calls.
fn filled(tallies: &[Tally], bucket: Bucket, (from_ms, to_ms, step_ms): (i64, i64, i64)) -> Vec<Bar> {
    let known: BTreeMap<&str, &Tally> = tallies
        .iter()
        .filter_map(|tally| Some((tally.bucket.as_deref()?, tally)))
        .collect();
    let mut bars = Vec::new();
    let mut at = from_ms;
    while at <= to_ms {
        let label = Timestamp::from_ms(at).to_string()[..bucket.letters()].to_owned();
        let tally = known.get(label.as_str());
        bars.push(Bar {
            all: tally.map_or(0, |tally| tally.calls),
            bad: tally.map_or(0, |tally| tally.failed),
            label: label.replace('T', " ") + if bucket == Bucket::Hour { ":00" } else { "" },
        });
        at += step_ms;
    }
    bars
}

type Named = fn(&Tally) -> Markup;

/// A name that links to its calls.
fn linked(filter: &str, name: &Markup) -> Markup {
    html! { a href=(format!("/console/?q={filter}")) { (name) } }
}

fn table(tallies: &[Tally], title: &str, named: Named) -> Markup {
    let most = tallies.iter().map(|tally| tally.p95_ms).fold(0.0, f64::max);
    html! {
        @if tallies.is_empty() { (layout::empty("Nothing to count.", "")) } @else {
            div.scroll { table.figures {
                thead { tr {
                    th scope="col" { (title) } th.ms scope="col" { "Calls" } th.ms scope="col" { "Failed" } th.ms scope="col" { "Tests failed" }
                    th.ms scope="col" { "Median ms" } th.ms scope="col" { "p95 ms" } th scope="col" { span.sr { "p95 beside the slowest" } }
                    th.ms scope="col" { "Longest ms" } th scope="col" { "Mostly" }
                } }
                tbody { @for tally in tallies {
                    tr {
                        th scope="row" { (named(tally)) }
                        td.ms { (layout::number(tally.calls)) }
                        td.ms { (layout::number(tally.failed)) }
                        td.ms { (layout::number(tally.tests_failed)) }
                        td.ms { (layout::ms(tally.median_ms)) }
                        td.ms { (layout::ms(tally.p95_ms)) }
                        td { (charts::share(tally.p95_ms, most)) }
                        td.ms { (layout::ms(tally.longest_ms)) }
                        td { @if let Some((code, count)) = tally.errors.iter().max_by_key(|(_, count)| **count) { (visible::short(code, 40)) " " (count) "×" } }
                    }
                } }
            } }
        }
    }
}

fn small(tallies: &[Tally], title: &str, named: Named) -> Markup {
    html! {
        @if tallies.is_empty() { (layout::empty("Nothing to count.", "")) } @else {
            div.scroll { table.figures {
                thead { tr { th scope="col" { (title) } th.ms scope="col" { "Calls" } th.ms scope="col" { "Failed" } th.ms scope="col" { "p95 ms" } } }
                tbody { @for tally in tallies.iter().take(20) {
                    tr {
                        th scope="row" { (named(tally)) }
                        td.ms { (layout::number(tally.calls)) }
                        td.ms { (layout::number(tally.failed)) }
                        td.ms { (layout::ms(tally.p95_ms)) }
                    }
                } }
            } }
        }
    }
}
