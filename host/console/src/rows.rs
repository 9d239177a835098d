//! Row of the ledger on the pages. The markup and the JSON of live rows come from the same cells.

use maud::{Markup, html};
use serde::Serialize;
use tollgate_store::storage::{SaidByPolicy, Session, StoreResult, StoredOperation, claim};

use crate::layout::{self, icon};
use crate::visible;

/// Titles of the columns, with the class of each.
pub(crate) const COLUMNS: [(&str, &str); 8] = [
    ("#", "seq"),
    ("Time", "time"),
    ("Effect", "effect"),
    ("Tool", "tool"),
    ("Who", "who"),
    ("Outcome", "outcome"),
    ("ms", "ms"),
    ("Envelope", "envelope"),
];

/// A cell: text and its presentation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Cell {
    /// CSS class, which identifies the kind of cell.
    pub(crate) class: &'static str,
    /// Text, already made safe to show.
    pub(crate) text: String,
    /// Address that the cell links to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) href: Option<String>,
    /// Icon before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) icon: Option<&'static str>,
    /// Tooltip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Lines below the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

/// A row of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    /// Position in the ledger.
    pub(crate) seq: i64,
    /// `good`, `bad`, `warn` or `unknown`.
    pub(crate) state: &'static str,
    /// Cells in the order of [`COLUMNS`].
    pub(crate) cells: Vec<Cell>,
}

/// Outcome of an operation: its state and a short text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    /// `good`, `bad`, `warn` or `unknown`.
    pub(crate) state: &'static str,
    /// In a few words.
    pub(crate) words: String,
}

/// Outcome of an operation. Failed tests are shown, although the call that ran them succeeded.
pub(crate) fn told(operation: &StoredOperation, seen: i64) -> Told {
    let times = if seen > 1 {
        format!(" ({})", ordinal(seen))
    } else {
        String::new()
    };
    match (&operation.outcome, operation.success, &operation.error_code) {
        (Some(tests), Some(true), _) if tests.is_failure() => Told {
            state: "warn",
            words: match operation.failing_tests.iter().flatten().next() {
                Some(test) => format!("{}: {}{times}", tests.in_short(), visible::short(test, 60)),
                None => format!("{}{times}", tests.in_short()),
            },
        },
        (Some(tests), Some(true), _) => Told {
            state: "good",
            words: tests.in_short(),
        },
        (None, Some(true), _) if operation.failure_fingerprint.is_some() => Told {
            state: "warn",
            words: match operation.failing_tests.iter().flatten().next() {
                Some(test) => format!("failed: {}{times}", visible::short(test, 60)),
                None => format!("failed{times}"),
            },
        },
        (None, Some(true), _) => Told {
            state: "good",
            words: "ok".to_owned(),
        },
        (_, Some(false), Some(code)) => Told {
            state: "bad",
            words: code.clone(),
        },
        (_, Some(false), None) => Told {
            state: "bad",
            words: format!("failed{times}"),
        },
        (_, None, _) => Told {
            state: "unknown",
            words: "outcome unknown".to_owned(),
        },
    }
}

/// Verdict as text for people.
pub(crate) fn verdict(said: &SaidByPolicy) -> String {
    let word = match (said.verdict.as_str(), said.mode.as_str()) {
        ("deny", "audit") => "would have denied",
        ("ask", "audit") => "would have asked",
        ("deny", _) => "denied",
        ("ask", _) => "asked the user",
        ("amend", _) => "amended the arguments",
        ("failed", _) => "could not evaluate",
        (other, _) => other,
    };
    let detail = said.answer.as_ref().or(said.cause.as_ref());
    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    let took = said.us.map(|us| format!(" · {}", micros(us))).unwrap_or_default();
    visible::cell(&format!("{} {word}{detail}{took}", said.policy))
}

/// Microseconds for people.
pub(crate) fn micros(us: u64) -> String {
    match us {
        0..=999 => format!("{us} µs"),
        us => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
    }
}

/// Caller: the name, and a mark if the transport proved it.
pub(crate) fn who(operation: &StoredOperation) -> Cell {
    let cell = Cell {
        class: "who",
        ..Cell::default()
    };
    match operation.actor.as_deref() {
        None => match operation.client.as_deref() {
            Some(client) => Cell {
                text: visible::short(client, 24),
                hint: Some("the client; no name of a caller was recorded".to_owned()),
                ..cell
            },
            None if is_of_host(operation) => Cell {
                text: "the host".to_owned(),
                hint: Some("done by the host itself".to_owned()),
                ..cell
            },
            None => cell,
        },
        Some(actor) => match claim(actor) {
            Some(name) => Cell {
                text: visible::short(name, 32),
                icon: Some("claimed"),
                hint: Some("claimed by the caller, not proven".to_owned()),
                ..cell
            },
            None => Cell {
                text: visible::short(actor.strip_prefix("token:").unwrap_or(actor), 32),
                icon: Some("proven"),
                hint: Some(visible::cell(&format!("{actor}, proven by the transport"))),
                ..cell
            },
        },
    }
}

/// Returns whether the host made the call itself: no client and no request.
fn is_of_host(operation: &StoredOperation) -> bool {
    operation.pack == "core"
        && operation.op_type == "control"
        && operation.failure_class.as_deref() == Some("interrupted")
}

impl Row {
    /// Row of an operation.
    pub(crate) fn of(session: &Session, operation: &StoredOperation) -> StoreResult<Row> {
        let seen = match &operation.failure_fingerprint {
            Some(fingerprint) => session.evidence().times_seen(fingerprint, operation.seq)?,
            None => 0,
        };
        Ok(Row::told(operation, seen))
    }

    fn told(operation: &StoredOperation, seen: i64) -> Row {
        let told = told(operation, seen);
        let own = |class, text: String| Cell {
            class,
            text,
            ..Cell::default()
        };
        let notes = operation
            .verdicts
            .iter()
            .filter(|said| said.verdict != "pass")
            .map(verdict);
        let cells = vec![
            Cell {
                href: Some(format!("/console/operations/{}", operation.seq)),
                ..own("seq", operation.seq.to_string())
            },
            Cell {
                hint: Some(operation.timestamp.clone()),
                ..own("time", layout::clock(&operation.timestamp).to_owned())
            },
            own("effect", operation.effect.clone()),
            own("tool", visible::cell(&operation.tool)),
            who(operation),
            Cell {
                icon: Some(match told.state {
                    "good" => "ok",
                    "bad" => "no",
                    "warn" => "tests",
                    _ => "unknown",
                }),
                notes: notes.take(4).collect(),
                ..own("outcome", visible::cell(&told.words))
            },
            own("ms", layout::ms(operation.duration_ms)),
            match &operation.envelope_id {
                Some(id) => Cell {
                    href: Some(format!("/console/envelopes/{}", path_part(id))),
                    hint: Some(visible::cell(id)),
                    ..own("envelope", short_id(id))
                },
                None => own("envelope", String::new()),
            },
        ];
        Row {
            seq: operation.seq,
            state: told.state,
            cells,
        }
    }

    /// The row as markup.
    pub(crate) fn markup(&self) -> Markup {
        html! {
            tr data-seq=(self.seq) class=(self.state) {
                @for cell in &self.cells { (cell.markup()) }
            }
        }
    }
}

impl Cell {
    fn markup(&self) -> Markup {
        html! {
            td class=(self.class) title=[self.hint.as_deref()] {
                @if let Some(name) = self.icon { (icon(name)) }
                @match (&self.href, self.class) {
                    (Some(href), _) => a href=(href) { (self.text) },
                    (None, "time") => time datetime=(self.hint.as_deref().unwrap_or_default()) { (self.text) },
                    (None, _) => span { (self.text) },
                }
                @for note in &self.notes { small.note { (note) } }
            }
        }
    }
}

/// A table of rows. The body has an id if it is live.
pub(crate) fn table(rows: &[Row], caption: &str, live: Option<&str>) -> Markup {
    html! {
        div.scroll {
            table.ledger {
                caption.sr { (caption) }
                thead { tr { @for (title, class) in COLUMNS { th scope="col" class=(class) { (title) } } } }
                tbody #rows data-live=[live] aria-live="off" { @for row in rows { (row.markup()) } }
            }
        }
    }
}

/// An id without its prefix, shortened to the distinguishing part.
pub(crate) fn short_id(id: &str) -> String {
    let end = id.len().saturating_sub(8);
    match id.is_char_boundary(end) {
        true => visible::line(&id[end..]),
        false => visible::short(id, 12),
    }
}

/// Text encoded as a part of a path.
pub(crate) fn path_part(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

fn ordinal(number: i64) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

#[cfg(test)]
mod tests {
    use tollgate_store::storage::{Ran, StoredTestOutcome};

    use super::*;

    #[test]
    fn a_failing_test_does_not_look_like_success() {
        let mut operation = StoredOperation {
            success: Some(true),
            outcome: Some(StoredTestOutcome {
                result: Ran::Failed,
                failed: Some(2),
                total: Some(14),
                ..StoredTestOutcome::default()
            }),
            failing_tests: Some(vec!["parses\u{202e} quotes".to_owned()]),
            ..StoredOperation::default()
        };
        let words = told(&operation, 9);
        assert_eq!(words.words, "failed 2 of 14: parses⟨U+202E⟩ quotes (9th)");
        assert_eq!(words.state, "warn");
        operation.success = Some(false);
        operation.error_code = Some("FROZEN".to_owned());
        assert_eq!(told(&operation, 1).words, "FROZEN");
        operation.success = None;
        assert_eq!(told(&operation, 1).state, "unknown");
    }

    #[test]
    fn a_claimed_name_never_looks_proven() {
        let named = |actor: &str| StoredOperation {
            actor: Some(actor.to_owned()),
            ..StoredOperation::default()
        };
        assert_eq!(who(&named("token:grace")).icon, Some("proven"));
        assert_eq!(who(&named("claimed:token:grace")).icon, Some("claimed"));
        assert_eq!(who(&named("claimed:token:grace")).text, "token:grace");
    }

    #[test]
    fn markup_of_hostile_text_is_text() {
        let operation = StoredOperation {
            tool: "<img src=x onerror=alert(1)>".to_owned(),
            actor: Some("claimed:\"><script>alert(1)</script>".to_owned()),
            error_code: Some("</td>".to_owned()),
            success: Some(false),
            envelope_id: Some("env_/../<b>\"".to_owned()),
            ..StoredOperation::default()
        };
        let markup = Row::told(&operation, 0).markup().into_string();
        for tag in ["<img", "<script", "<b>", "</td>\""] {
            assert!(!markup.contains(tag), "{tag} in {markup}");
        }
        assert!(
            markup.contains("/console/envelopes/env_%2F..%2F%3Cb%3E%22"),
            "{markup}"
        );
    }

    #[test]
    fn numbers_are_counted_as_people_do() {
        let told: Vec<String> = [1, 2, 3, 4, 11, 12, 21, 112, 123].map(ordinal).to_vec();
        assert_eq!(
            told,
            [
                "1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "112th", "123rd"
            ]
        );
        assert_eq!(micros(999), "999 µs");
        assert_eq!(micros(12_345), "12.3 ms");
    }
}
