//! How far a call is, told to its client at a bounded rate.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::process::{Sink, Stream};
use crate::text;

/// Least time between two notes.
const PACE: Duration = Duration::from_millis(250);
/// Least time between two notes about a program that runs.
const NARRATION: Duration = Duration::from_secs(1);
/// Longest message, in bytes.
const MAX_MESSAGE: usize = 200;
/// Notes that wait to be sent before more are dropped.
const WAITING: usize = 8;

/// One note for a client. `done` grows from note to note.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// How much is done.
    pub done: f64,
    /// Of how much, if that is known.
    pub total: Option<f64>,
    /// What is going on.
    pub message: String,
}

/// Where a call's notes go. By default nobody listens.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    listener: Option<mpsc::Sender<Note>>,
    last: Option<Instant>,
    done: u64,
    total: Option<u64>,
    /// Notes since `done` last grew.
    repeats: u32,
}

impl Progress {
    /// A call's progress, and its notes.
    pub fn listened() -> (Progress, mpsc::Receiver<Note>) {
        let (sender, notes) = mpsc::channel(WAITING);
        let progress = Progress {
            listener: Some(sender),
            ..Progress::default()
        };
        (progress, notes)
    }

    /// Tells how far the call is, unless it told that just now.
    pub fn tell(&mut self, done: u64, total: Option<u64>, message: &str) {
        self.total = total;
        if done > self.done {
            self.done = done;
            self.repeats = 0;
        }
        self.note(PACE, message);
    }

    /// Sends a note, if the last one was long enough ago. Clients want each note to be further than
    /// the one before: those that are not go half of what is left of a unit.
    fn note(&mut self, pace: Duration, message: &str) {
        let Some(listener) = &self.listener else { return };
        if self.last.is_some_and(|last| last.elapsed() < pace) {
            return;
        }
        let part = 1.0 - 0.5_f64.powi(i32::try_from(self.repeats).unwrap_or(i32::MAX).min(40));
        #[allow(clippy::cast_precision_loss, reason = "a count that is shown")]
        let note = Note {
            done: self.done as f64 + part,
            total: self.total.map(|total| total as f64),
            message: text::clean(text::cut(message, MAX_MESSAGE)),
        };
        // A client that does not take its notes misses some.
        if listener.try_send(note).is_ok() {
            self.last = Some(Instant::now());
            self.repeats = self.repeats.saturating_add(1);
        }
    }
}

/// Tells of a running program: for how long, and the last line it printed.
pub struct Narrator<'a> {
    progress: &'a mut Progress,
    program: &'a str,
    started: Instant,
    line: Vec<u8>,
    last_line: String,
}

impl<'a> Narrator<'a> {
    /// Tells of a program that starts now.
    pub fn new(progress: &'a mut Progress, program: &'a str) -> Narrator<'a> {
        Narrator {
            progress,
            program,
            started: Instant::now(),
            line: Vec::new(),
            last_line: String::new(),
        }
    }
}

impl Sink for Narrator<'_> {
    fn bytes(&mut self, _stream: Stream, bytes: &[u8]) {
        if self.progress.listener.is_none() {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_MESSAGE - self.line.len();
            self.line.extend(piece.iter().take(room));
            if piece.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.line).trim().to_owned();
                self.line.clear();
                if !line.is_empty() {
                    self.last_line = line;
                }
            }
        }
    }

    fn tick(&mut self) {
        if self.started.elapsed() < NARRATION || self.progress.listener.is_none() {
            return;
        }
        let message = format!(
            "{}, {} s: {}",
            self.program,
            self.started.elapsed().as_secs(),
            self.last_line
        );
        self.progress.note(NARRATION, &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_grow_even_if_the_count_does_not() {
        let (mut progress, mut notes) = Progress::listened();
        for done in [1, 1, 0, 2, 2] {
            progress.last = None;
            progress.tell(done, Some(4), "one\ntwo");
        }
        // Too soon after the last.
        progress.tell(3, Some(4), "dropped");
        let mut seen = Vec::new();
        while let Ok(note) = notes.try_recv() {
            seen.push(note.done);
        }
        assert_eq!(seen, [1.0, 1.5, 1.75, 2.0, 2.5]);
    }
}
