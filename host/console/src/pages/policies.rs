//! Page of the policies: their decisions, their durations, and the last denials.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use maud::{Markup, html};
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Bucket, OperationFilter, Session, StoreResult};

use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::charts::{self, Bar};
use crate::figures::PolicyCounts;
use crate::host::PolicyRow;
use crate::layout::{self, Page, pill};
use crate::rows::{self, Row, micros, path_part};
use crate::visible;

const SHOWN_DAYS: i64 = 14;
const DAY_MS: i64 = 86_400_000;

/// Policies by name and mode.
type Lines = BTreeMap<(String, String), PolicyCounts>;

/// Serves the page.
pub(crate) async fn show(State(console): State<Arc<Console>>, Extension(viewer): Extension<Viewer>) -> Shown {
    let (_, waiting) = parts::current(&console).await?;
    let now_ms = console.clock.now_ms();
    let figures = console.figures.look(move |figures| {
        let lines = figures.policies_since(now_ms - (SHOWN_DAYS - 1) * DAY_MS);
        (lines, figures.denied(), figures.counted_from())
    });
    let (lines, denied, counted_from) = figures.await?;
    let denials = console
        .reader
        .read(move |session| denials(session, &denied))
        .await?;
    let configured = console.host.facts().policies;
    let days = days(now_ms);
    let page = Page {
        title: "Policies",
        section: "Policies",
        refreshes: false,
        waiting,
        body: html! {
            (layout::title("Policies", "Policies evaluate calls before they run, and results before they are returned. Figures of the last 14 days."))
            section.card aria-labelledby="policies-title" {
                header { h2 #policies-title { "Verdicts" } }
                @if configured.is_empty() && lines.is_empty() {
                    (layout::empty("No policy is configured.", "tollgate policies add NAME adds one; tollgate policies list shows those built in."))
                } @else { (table(&configured, &lines, &days)) }
                (parts::counted_from(counted_from))
            }
            section.card aria-labelledby="denials-title" {
                header { h2 #denials-title { "Latest denials" } }
                @if denials.is_empty() { (layout::empty("No policy denied a call.", "")) }
                @else { (rows::table(&denials, "Calls that policies denied, newest first", None)) }
            }
        },
    };
    Ok(page.show(&console.access, &viewer))
}

fn days(now_ms: i64) -> Vec<String> {
    let days = (0..SHOWN_DAYS)
        .rev()
        .map(|back| Timestamp::from_ms(now_ms - back * DAY_MS).to_string());
    days.map(|time| time[..Bucket::Day.letters()].to_owned())
        .collect()
}

/// Newest calls that a policy's verdict stopped.
fn denials(session: &Session, places: &[i64]) -> StoreResult<Vec<Row>> {
    let mut rows = Vec::new();
    for seq in places {
        let one = OperationFilter {
            after: Some(seq - 1),
            before: Some(seq + 1),
            ..OperationFilter::default()
        };
        // Old rows can have been removed after they were counted.
        if let Some(operation) = session.operations().list(&one, 1)?.pop() {
            rows.push(Row::of(session, &operation)?);
        }
    }
    Ok(rows)
}

fn table(configured: &[PolicyRow], lines: &Lines, days: &[String]) -> Markup {
    let is_configured = |key: &(String, String)| {
        configured
            .iter()
            .any(|policy| policy.name == key.0 && policy.mode == key.1)
    };
    html! {
        div.scroll { table.figures {
            thead { tr {
                th scope="col" { "Policy" } th scope="col" { "Mode" } th scope="col" { "Evaluates" }
                th.ms scope="col" { "Evaluated" } th.ms scope="col" { "Denied" } th.ms scope="col" { "Asked" } th.ms scope="col" { "Failed" }
                th.ms scope="col" { "Median" } th.ms scope="col" { "p99" } th scope="col" { "Denied, 14 days" }
            } }
            tbody {
                @for policy in configured {
                    @let line = lines.get(&(policy.name.clone(), policy.mode.clone()));
                    (row(&policy.name, &policy.mode, Some(policy), line, days))
                }
                @for (key, line) in lines.iter().filter(|(key, _)| !is_configured(key)) {
                    (row(&key.0, &key.1, None, Some(line), days))
                }
            }
        } }
    }
}

fn row(
    name: &str,
    mode: &str,
    policy: Option<&PolicyRow>,
    line: Option<&PolicyCounts>,
    days: &[String],
) -> Markup {
    let none = PolicyCounts::default();
    let PolicyCounts { all, denied_by_day } = line.unwrap_or(&none);
    let bars: Vec<Bar> = days
        .iter()
        .map(|day| {
            let denied = denied_by_day.get(day).copied().unwrap_or_default();
            Bar {
                label: day.clone(),
                all: denied,
                bad: denied,
            }
        })
        .collect();
    let took = |us: Option<i64>| {
        us.and_then(|us| u64::try_from(us).ok())
            .map_or_else(|| "–".to_owned(), micros)
    };
    html! {
        tr {
            th scope="row" {
                a href=(format!("/console/?q=policy:{}", path_part(name))) { (visible::short(name, 60)) }
                @if let Some(policy) = policy { small.note { (visible::short(&policy.summary, 120)) } }
            }
            td {
                (pill(if mode == "audit" { "info" } else { "plain" }, &visible::short(mode, 16)))
                @match policy {
                    None => small.note { "not configured now" },
                    Some(policy) if !policy.is_loaded => small.note.bad { "not loaded" },
                    Some(policy) if policy.fail_open => small.note { "fails open" },
                    Some(_) => "",
                }
            }
            td { (policy.map_or_else(String::new, |policy| visible::short(&policy.judges, 80))) }
            td.ms { (layout::number(all.judged)) }
            td.ms { @if mode == "audit" && all.denied > 0 { span title="would have denied" { "(" (layout::number(all.denied)) ")" } } @else { (layout::number(all.denied)) } }
            td.ms { (layout::number(all.asked)) }
            td.ms { (layout::number(all.failed)) @if all.failed > 0 { strong.bad { " !" } } }
            td.ms { (took(all.median_us)) }
            td.ms { (took(all.p99_us)) }
            td { (charts::spark(&bars, &visible::line(&format!("denials of {name} by day")))) }
        }
    }
}
