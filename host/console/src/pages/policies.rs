//! The policies: what each decided, how long it took, and the last denials.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use maud::{Markup, html};
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Bucket, OperationFilter, PolicyTally, Session, StoreResult, TallyQuery};

use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::charts::{self, Bar};
use crate::host::PolicyRow;
use crate::layout::{self, Page, pill};
use crate::rows::{self, Row, micros, path_part};
use crate::visible;

const DAYS: i64 = 14;
const DAY_MS: i64 = 86_400_000;
/// Rows that are counted at most.
const MOST: i64 = 200_000;
/// Denials below the table.
const DENIALS: usize = 10;

/// Verdicts of one policy in one mode.
#[derive(Default)]
struct Line {
    all: PolicyTally,
    denied_by_day: BTreeMap<String, i64>,
}

struct Read {
    lines: BTreeMap<(String, String), Line>,
    denials: Vec<Row>,
    cut_at: Option<i64>,
}

/// The page.
pub(crate) async fn show(State(console): State<Arc<Console>>, Extension(viewer): Extension<Viewer>) -> Shown {
    let (_, waiting) = parts::current(&console).await?;
    let now_ms = console.clock.now_ms();
    let read = console.reader.read(move |session| read(session, now_ms)).await?;
    let configured = console.host.facts().policies;
    let days = days(now_ms);
    let page = Page {
        title: "Policies",
        section: "Policies",
        refreshes: false,
        waiting,
        body: html! {
            (layout::title("Policies", "They judge calls before they run, and results before they leave. The last 14 days."))
            section.card aria-labelledby="policies-title" {
                header { h2 #policies-title { "Verdicts" } }
                @if configured.is_empty() && read.lines.is_empty() {
                    (layout::empty("No policy judges calls.", "tollgate policies add NAME adds one; tollgate policies list shows those built in."))
                } @else { (table(&configured, &read.lines, &days)) }
                @if let Some(seq) = read.cut_at { p.hint { "Counted from #" (seq) " on: there are more rows than are counted for a page." } }
            }
            section.card aria-labelledby="denials-title" {
                header { h2 #denials-title { "Last denials" } }
                @if read.denials.is_empty() { (layout::empty("No policy denied a call.", "")) }
                @else { (rows::table(&read.denials, "Calls that policies denied, newest first", None)) }
            }
        },
    };
    Ok(page.show(&console.access, &viewer))
}

fn days(now_ms: i64) -> Vec<String> {
    let days = (0..DAYS)
        .rev()
        .map(|back| Timestamp::from_ms(now_ms - back * DAY_MS).to_string());
    days.map(|time| time[..Bucket::Day.letters()].to_owned())
        .collect()
}

fn read(session: &Session, now_ms: i64) -> StoreResult<Read> {
    let query = TallyQuery {
        since: Timestamp::from_ms(now_ms - DAYS * DAY_MS).to_string(),
        most: Some(MOST),
        ..TallyQuery::default()
    };
    let (mut counted, cut_at) = session.policy_tallies_of(&query, &[None, Some(Bucket::Day)])?;
    let (by_day, all) = (
        counted.pop().unwrap_or_default(),
        counted.pop().unwrap_or_default(),
    );
    let mut lines: BTreeMap<(String, String), Line> = BTreeMap::new();
    for tally in all {
        let key = (tally.policy.clone(), tally.mode.clone());
        lines.entry(key).or_default().all = tally;
    }
    for tally in by_day {
        let line = lines.entry((tally.policy, tally.mode)).or_default();
        line.denied_by_day
            .insert(tally.bucket.unwrap_or_default(), tally.denied);
    }
    Ok(Read {
        lines,
        denials: denials(session)?,
        cut_at,
    })
}

/// The newest calls that a policy's verdict stopped.
fn denials(session: &Session) -> StoreResult<Vec<Row>> {
    let filter = OperationFilter {
        success: Some(false),
        ..OperationFilter::default()
    };
    let failed = session.operations(&filter, 400)?;
    let denied = failed.iter().filter(|operation| {
        let mut verdicts = operation.verdicts.iter();
        verdicts
            .any(|said| said.mode == "enforce" && matches!(said.verdict.as_str(), "deny" | "ask" | "failed"))
    });
    denied
        .take(DENIALS)
        .map(|operation| Row::of(session, operation))
        .collect()
}

fn table(configured: &[PolicyRow], lines: &BTreeMap<(String, String), Line>, days: &[String]) -> Markup {
    let is_configured = |key: &(String, String)| {
        configured
            .iter()
            .any(|policy| policy.name == key.0 && policy.mode == key.1)
    };
    html! {
        div.scroll { table.figures {
            thead { tr {
                th scope="col" { "Policy" } th scope="col" { "Mode" } th scope="col" { "Judges" }
                th.ms scope="col" { "Judged" } th.ms scope="col" { "Denied" } th.ms scope="col" { "Asked" } th.ms scope="col" { "Failed" }
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

fn row(name: &str, mode: &str, policy: Option<&PolicyRow>, line: Option<&Line>, days: &[String]) -> Markup {
    let none = Line::default();
    let Line { all, denied_by_day } = line.unwrap_or(&none);
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
