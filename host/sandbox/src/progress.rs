//! Messages of a running call to its client, at a bounded rate: its progress and its component's log. If a policy
//! judges the call's result, the client first gets only the progress in percent, and no text of the component.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tollgate_core::text;

use crate::process::{Sink, Stream};

/// Least time between two notes.
const NOTE_INTERVAL: Duration = Duration::from_millis(250);
/// Least time between two notes about a program that runs.
const PROGRAM_NOTE_INTERVAL: Duration = Duration::from_secs(1);
/// Longest message, in bytes.
const MAX_MESSAGE: usize = 200;
/// Notes that are buffered before more are dropped.
const BUFFERED_NOTES: usize = 8;
/// Most lines of a log that one call sends.
const MAX_LINES: u32 = 100;
/// Most lines and most bytes of one call in the operator's log.
const MAX_LOGGED: u32 = 1_000;
const MAX_LOGGED_BYTES: usize = 256 << 10;

/// Progress note for a client. `done` grows from note to note.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Amount that is done.
    pub done: f64,
    /// Total amount, if known.
    pub total: Option<f64>,
    /// Message about the current work.
    pub message: String,
}

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Details for debugging.
    Debug,
    /// Information.
    Info,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
}

/// One line of a component's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Severity of the line.
    pub severity: Severity,
    /// Pack of the line.
    pub pack: String,
    /// Text of the line.
    pub text: String,
}

/// Message for the client of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage {
    /// Progress of the call.
    Note(Note),
    /// Line of the component's log.
    Line(Line),
}

/// Messages that a client requested for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// True if the client wants progress notes.
    pub notes: bool,
    /// Least severity of log lines that the client wants.
    pub lines: Option<Severity>,
}

/// Receiver of a call's notes and lines. The default has no listener.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    listener: Option<mpsc::Sender<ClientMessage>>,
    wanted: Wanted,
    lines: u32,
    /// True if a policy judges the result first.
    is_judged: bool,
    /// Lines that are held back until then.
    deferred_lines: Vec<Line>,
    last: Option<Instant>,
    done: u64,
    total: Option<u64>,
    /// Notes since `done` last grew.
    repeats: u32,
    logged: u32,
    logged_bytes: usize,
    left_out: u64,
}

impl Progress {
    /// Progress of a call, and the messages that its client requested.
    pub fn listened(wanted: Wanted) -> (Progress, mpsc::Receiver<ClientMessage>) {
        let (sender, messages) = mpsc::channel(BUFFERED_NOTES);
        let progress = Progress {
            listener: (wanted != Wanted::default()).then_some(sender),
            wanted,
            ..Progress::default()
        };
        (progress, messages)
    }

    /// Progress that also sends lines of this severity.
    #[must_use]
    pub fn with_lines(mut self, lines: Option<Severity>) -> Progress {
        self.wanted.lines = lines;
        self
    }

    /// Sends a log line of the call's component, if its client requested it.
    pub fn log(&mut self, severity: Severity, pack: &str, text: &str) {
        let Some(listener) = &self.listener else { return };
        if self.wanted.lines.is_none_or(|least| severity < least) || self.lines >= MAX_LINES {
            return;
        }
        let line = Line {
            severity,
            pack: pack.to_owned(),
            text: text.to_owned(),
        };
        if self.is_judged {
            self.deferred_lines.push(line);
            self.lines += 1;
            return;
        }
        // A client that does not read its lines misses some. The operator's log has more.
        if listener.try_send(ClientMessage::Line(line)).is_ok() {
            self.lines += 1;
        }
    }

    /// True if a line of this many bytes fits into the operator's log. Counts the line.
    pub fn is_logged(&mut self, bytes: usize) -> bool {
        let is_room = self.logged < MAX_LOGGED && self.logged_bytes + bytes <= MAX_LOGGED_BYTES;
        if is_room {
            self.logged += 1;
            self.logged_bytes += bytes;
        } else {
            self.left_out += 1;
        }
        is_room
    }

    /// Number of lines that are missing in the operator's log.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Holds back the component's words from now on, because a policy judges the result first.
    pub fn hold_back(&mut self) {
        self.is_judged = true;
    }

    /// The lines that were held back.
    pub fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.deferred_lines)
    }

    /// Reports progress, unless it was reported very recently.
    pub fn tell(&mut self, done: u64, total: Option<u64>, message: &str) {
        let (done, total, message) = if self.is_judged {
            let (done, total) = percent(done, total);
            (done, total, "")
        } else {
            (done, total, message)
        };
        self.total = total;
        if done > self.done {
            self.done = done;
            self.repeats = 0;
        }
        self.note(NOTE_INTERVAL, message);
    }

    /// Sends a note, if enough time has passed since the last one. Clients require each note to be further than the
    /// one before, so a note without progress advances by half of what is left of a unit.
    fn note(&mut self, pace: Duration, message: &str) {
        let Some(listener) = self.listener.as_ref().filter(|_| self.wanted.notes) else {
            return;
        };
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
        // A client that does not read its notes misses some.
        if listener.try_send(ClientMessage::Note(note)).is_ok() {
            self.last = Some(Instant::now());
            self.repeats = self.repeats.saturating_add(1);
        }
    }
}

/// Progress as a percentage, which reveals nothing else.
fn percent(done: u64, total: Option<u64>) -> (u64, Option<u64>) {
    match total {
        Some(total) if total > 0 => {
            let percent = u128::from(done.min(total)) * 100 / u128::from(total);
            (u64::try_from(percent).unwrap_or(100), Some(100))
        }
        _ => (0, None),
    }
}

/// Reports on a running program: its duration, and its last line of output.
pub struct Narrator<'a> {
    progress: &'a mut Progress,
    program: &'a str,
    started: Instant,
    line: Vec<u8>,
    last_line: String,
}

impl<'a> Narrator<'a> {
    /// Reports on a program that starts now.
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
        if !self.progress.wanted.notes {
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
        if self.started.elapsed() < PROGRAM_NOTE_INTERVAL || !self.progress.wanted.notes {
            return;
        }
        let seconds = self.started.elapsed().as_secs();
        let message = if self.progress.is_judged {
            format!("{}, {seconds} s", self.program)
        } else {
            format!("{}, {seconds} s: {}", self.program, self.last_line)
        };
        self.progress.note(PROGRAM_NOTE_INTERVAL, &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_grow_even_if_the_count_does_not() {
        let wanted = Wanted {
            notes: true,
            lines: None,
        };
        let (mut progress, mut messages) = Progress::listened(wanted);
        for done in [1, 1, 0, 2, 2] {
            progress.last = None;
            progress.tell(done, Some(4), "one\ntwo");
        }
        // Too soon after the last.
        progress.tell(3, Some(4), "dropped");
        progress.log(Severity::Error, "pack", "not wanted");
        let mut seen = Vec::new();
        while let Ok(message) = messages.try_recv() {
            let ClientMessage::Note(note) = message else {
                panic!("{message:?}")
            };
            seen.push(note.done);
        }
        assert_eq!(seen, [1.0, 1.5, 1.75, 2.0, 2.5]);
    }

    #[test]
    fn a_call_fills_no_log() {
        let mut progress = Progress::default();
        assert_eq!((0..5_000).filter(|_| progress.is_logged(10)).count(), 1_000);
        assert_eq!(progress.left_out(), 4_000);
        let mut progress = Progress::default();
        assert_eq!((0..5_000).filter(|_| progress.is_logged(4 << 10)).count(), 64);
        // One that fits is not lost to one that did not.
        assert!(!progress.is_logged(1) && progress.left_out() == 4_937);
    }

    #[test]
    fn a_call_that_is_judged_tells_percent_and_no_words() {
        let wanted = Wanted {
            notes: true,
            lines: Some(Severity::Info),
        };
        let (mut progress, mut messages) = Progress::listened(wanted);
        progress.hold_back();
        for (done, total) in [(0x6768_705f, Some(u64::MAX)), (u64::MAX, Some(3)), (9, None)] {
            progress.last = None;
            progress.tell(done, total, "a secret");
        }
        progress.log(Severity::Info, "pack", "another");
        let mut seen = Vec::new();
        while let Ok(message) = messages.try_recv() {
            let ClientMessage::Note(note) = message else {
                panic!("{message:?}")
            };
            assert_eq!(note.message, "");
            seen.push((note.done, note.total));
        }
        assert_eq!(seen, [(0.0, Some(100.0)), (100.0, Some(100.0)), (100.5, None)]);
        let lines: Vec<String> = progress.take_lines().into_iter().map(|line| line.text).collect();
        assert_eq!(lines, ["another"]);
    }

    #[test]
    fn lines_are_those_that_matter_and_not_too_many() {
        let wanted = Wanted {
            notes: false,
            lines: Some(Severity::Warning),
        };
        let (mut progress, mut messages) = Progress::listened(wanted);
        progress.tell(1, None, "not wanted");
        progress.log(Severity::Info, "pack", "too little");
        let mut heard = 0;
        for _ in 0..2 * MAX_LINES {
            progress.log(Severity::Error, "pack", "a fault");
            while let Ok(ClientMessage::Line(line)) = messages.try_recv() {
                assert_eq!((line.severity, line.text.as_str()), (Severity::Error, "a fault"));
                heard += 1;
            }
        }
        assert_eq!(heard, MAX_LINES);
    }
}
