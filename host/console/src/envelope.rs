//! Envelope on the pages: its state in words, its usage, and repetitions in it.

use maud::{Markup, html};
use tollgate_core::budget::Budget;
use tollgate_core::envelope::State;
use tollgate_store::storage::{Envelope, Session, StoreResult};

use crate::layout::{self, pill};
use crate::rows::{path_part, short_id};
use crate::visible;

/// An envelope, with facts from the ledger.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    /// The envelope.
    pub(crate) envelope: Envelope,
    /// Whole seconds that the envelope has been or was open.
    pub(crate) open_sec: Option<i64>,
    /// True if its time is over. The next call closes it.
    pub(crate) is_over: bool,
    /// Number of edits since the state that the newest change restored.
    pub(crate) repeats: Option<usize>,
    /// True if the newest failure persists after an edit.
    pub(crate) no_progress: bool,
    /// True if the same work tree passes and fails.
    pub(crate) is_flaky: bool,
    /// Named budgets.
    pub(crate) budgets: Vec<(String, Budget)>,
}

impl Card {
    /// Loads the facts about an envelope.
    pub(crate) fn of(session: &Session, envelope: Envelope, boot_ms: i64) -> StoreResult<Card> {
        let envelope = session.envelopes().as_at(envelope, boot_ms)?;
        let failure = match &envelope.last_failure_fingerprint {
            Some(fingerprint) => session.evidence().repeated_failure(&envelope.id, fingerprint)?,
            None => None,
        };
        let said = session.evidence().said_of_tests(&envelope.id)?;
        let repeats = |failure: &tollgate_store::storage::RepeatedFailure| {
            failure.seen > 1 && failure.mutations > 0 && failure.stands
        };
        let standing = &envelope.standing;
        let is_open = standing.state == State::Open;
        Ok(Card {
            open_sec: match envelope.over_boot_ms {
                Some(over) => Some(standing.open_sec(over)),
                None if is_open => Some(standing.open_sec(boot_ms)),
                None => seconds_between(&envelope.opened_at, envelope.closed_at.as_deref()),
            },
            is_over: envelope.over_boot_ms.is_some(),
            repeats: session.evidence().newest_mutation_repeated(&envelope.id)?,
            no_progress: said.map_or_else(|| failure.as_ref().is_some_and(repeats), |said| said.non_progress),
            is_flaky: said.is_some_and(|said| said.flaky),
            budgets: session.budgets().list(&envelope.id, None)?.into_iter().collect(),
            envelope,
        })
    }

    /// Returns whether something repeats in the envelope.
    pub(crate) fn goes_in_circles(&self) -> bool {
        self.repeats.is_some_and(|period| period > 1) || self.no_progress || self.is_flaky
    }

    /// Address of the envelope's page.
    pub(crate) fn href(&self) -> String {
        format!("/console/envelopes/{}", path_part(&self.envelope.id))
    }

    /// Name for people: its label, or the end of its id.
    pub(crate) fn name(&self) -> String {
        match self.envelope.label.as_deref().map(str::trim) {
            Some(label) if !label.is_empty() => visible::short(label, 80),
            _ => format!("envelope {}", short_id(&self.envelope.id)),
        }
    }

    /// State of the envelope and its repetitions, as pills.
    pub(crate) fn pills(&self) -> Markup {
        let (kind, state) = match (self.envelope.standing.state, self.is_over) {
            (_, true) => ("warn", "time is over"),
            (State::Open, _) => ("info", "open"),
            (State::ClosedSuccess, _) => ("good", "done"),
            (State::ClosedFailed, _) => ("bad", "closed as failed"),
            (State::ClosedInterrupted, _) => ("warn", "interrupted"),
        };
        html! {
            span.pills {
                (pill(kind, state))
                @match self.repeats {
                    Some(1) => (pill("warn", "last change changed nothing")),
                    Some(period) => (pill("bad", &format!("oscillates, period {period}"))),
                    None => "",
                }
                @if self.no_progress { (pill("bad", "no progress")) }
                @if self.is_flaky { (pill("warn", "flaky test")) }
            }
        }
    }

    /// Usage of the envelope's limits.
    pub(crate) fn bars(&self) -> Markup {
        let standing = &self.envelope.standing;
        let limits = &standing.limits;
        html! {
            div.bars {
                (bar("mutations", standing.mutations, limits.max_mutations))
                (bar("test runs", standing.test_runs, limits.max_test_runs))
                @if standing.edits > 0 || limits.max_edits.is_some() {
                    (bar("other edits", standing.edits, limits.max_edits))
                }
                @if let Some(open_sec) = self.open_sec {
                    (time_bar(open_sec, limits.max_duration_sec))
                }
                @for (name, budget) in &self.budgets {
                    (bar(name, budget.used, Some(budget.limit)))
                }
            }
        }
    }

    /// Envelope in a list beside other things. Shows bars only while it is open.
    pub(crate) fn brief(&self) -> Markup {
        if self.envelope.standing.state == State::Open {
            return self.markup();
        }
        html! {
            article.envelope {
                h3 { a href=(self.href()) { (self.name()) } " " (self.pills()) }
                p.meta { "opened " (layout::date(&self.envelope.opened_at)) }
            }
        }
    }

    /// The envelope in a list.
    pub(crate) fn markup(&self) -> Markup {
        html! {
            article.envelope {
                h3 { a href=(self.href()) { (self.name()) } " " (self.pills()) }
                p.meta {
                    @if let Some(workspace) = &self.envelope.workspace { (visible::short(workspace, 64)) " · " }
                    @if let Some(identity) = &self.envelope.identity { (visible::short(identity, 48)) " · " }
                    "opened " (layout::date(&self.envelope.opened_at))
                    @if let Some(reason) = &self.envelope.closed_by { " · closed by " (visible::short(reason, 60)) }
                }
                (self.bars())
            }
        }
    }
}

/// A bar with its text. Without a limit, only the text.
pub(crate) fn bar(name: &str, used: i64, limit: Option<i64>) -> Markup {
    html! {
        div.bar {
            span.label { (visible::short(name, 40)) }
            @match limit {
                Some(limit) => {
                    meter class=(fullness(used, limit)) min="0" max=(limit.max(1)) value=(used.clamp(0, limit.max(1)))
                        aria-label=(format!("{name}: {used} of {limit}")) {}
                    span.figure {
                        (layout::number(used)) " of " (layout::number(limit))
                        @if used >= limit { strong { " all used" } }
                    }
                }
                None => { span.unlimited { "no limit" } span.figure { (layout::number(used)) } }
            }
        }
    }
}

fn time_bar(open_sec: i64, limit: Option<i64>) -> Markup {
    html! {
        div.bar {
            span.label { "time" }
            @match limit {
                Some(limit) => {
                    meter class=(fullness(open_sec, limit)) min="0" max=(limit.max(1)) value=(open_sec.clamp(0, limit.max(1)))
                        aria-label=(format!("time: {} of {}", span(open_sec), span(limit))) {}
                    span.figure { (span(open_sec)) " of " (span(limit)) }
                }
                None => { span.unlimited { "no limit" } span.figure { (span(open_sec)) } }
            }
        }
    }
}

fn fullness(used: i64, limit: i64) -> &'static str {
    match used.saturating_mul(100) / limit.max(1) {
        100.. => "full",
        75..=99 => "high",
        _ => "fine",
    }
}

/// Duration as text for people.
pub(crate) fn span(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Whole seconds between two times. `None` if the clock was set back in between.
fn seconds_between(from: &str, to: Option<&str>) -> Option<i64> {
    let from = tollgate_sdk::Timestamp::parse(from)?.as_ms();
    let to = tollgate_sdk::Timestamp::parse(to?)?.as_ms();
    (to >= from).then(|| (to - from) / 1_000)
}
