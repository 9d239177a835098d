//! Progress notes of a task, stored in its row at a bounded rate.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_sandbox::progress::{ClientMessage, Note};

/// Least time between two stored notes.
const NOTE_INTERVAL: Duration = Duration::from_secs(2);

/// Latest note, and when one was last stored.
#[derive(Default)]
pub(super) struct Notes {
    latest: Option<Note>,
    stored: Option<Instant>,
}

impl Notes {
    /// Keeps a note. Log lines are only for waiting clients.
    pub(super) fn hear(&mut self, message: ClientMessage) {
        if let ClientMessage::Note(note) = message {
            self.latest = Some(note);
        }
    }

    /// Waits until a note must be stored.
    pub(super) async fn due(&self) {
        match (&self.latest, self.stored) {
            (None, _) => std::future::pending().await,
            (Some(_), None) => {}
            (Some(_), Some(stored)) => tokio::time::sleep_until(stored + NOTE_INTERVAL).await,
        }
    }

    pub(super) fn take(&mut self) -> Option<String> {
        let note = self.latest.take()?;
        self.stored = Some(Instant::now());
        let done = match note.total {
            Some(total) => format!("{} of {}", number(note.done), number(total)),
            None => number(note.done),
        };
        Some(match note.message.as_str() {
            "" => done,
            message => format!("{message} ({done})"),
        })
    }
}

/// A number with at most two decimals.
fn number(number: f64) -> String {
    let rounded = format!("{number:.2}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(done: f64, total: Option<f64>, message: &str) -> ClientMessage {
        ClientMessage::Note(Note {
            done,
            total,
            message: message.to_owned(),
        })
    }

    #[tokio::test]
    async fn the_latest_note_is_stored() {
        let mut notes = Notes::default();
        notes.hear(note(1.0, Some(4.0), ""));
        notes.due().await;
        assert_eq!(notes.take().as_deref(), Some("1 of 4"));
        notes.hear(note(2.0, Some(4.0), "second"));
        notes.hear(note(3.0, None, "third"));
        assert_eq!(notes.take().as_deref(), Some("third (3)"));
        assert_eq!(notes.take(), None);
        for (done, total, wanted) in [
            (0.999_992_370_605_468_8, 2.0, "1 of 2"),
            (0.5, 100.0, "0.5 of 100"),
            (0.0, 0.125, "0 of 0.12"),
        ] {
            notes.hear(note(done, Some(total), ""));
            assert_eq!(notes.take().as_deref(), Some(wanted));
        }
    }
}
