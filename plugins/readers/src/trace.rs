//! Exceptions, panics and their stacks, as the languages write them.

pub(crate) mod go;
pub(crate) mod js;
pub(crate) mod python;
pub(crate) mod rust;

use crate::fingerprint::detail;
use crate::normalise::Normaliser;
use crate::report::Failure;
use crate::source::{Made, Place};
use crate::text;

/// Most frames of a stack.
const MAX_FRAMES: usize = 30;
/// Longest frame, in characters.
const MAX_FRAME: usize = 200;
/// Most lines of a message.
const MAX_LINES: usize = 4;
/// Longest message, in characters.
const MAX_MESSAGE: usize = 300;
/// Longest message before normalisation, in characters.
const MAX_RAW_MESSAGE: usize = 1_000;
/// Longest message without the values that were made, in characters.
const MAX_EXPECTATION: usize = 2_000;
/// Longest type of an exception, in characters.
const MAX_KIND: usize = 100;

/// Details of a failure besides its name. Only the frames are normalised.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    pub kind: Option<String>,
    pub message: String,
    pub frames: Vec<String>,
    /// Positions of the frames, as far as the tool prints them.
    pub places: Vec<Place>,
    pub order: Order,
}

/// Order of a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nobody knows which frame is the test's.
    #[default]
    Unknown,
    /// The test's own frame comes first.
    TestFirst,
    /// The test's own frame comes last.
    TestLast,
    /// The first frame is where an assertion failed, or where the code under test gave up.
    Panic,
}

impl Trace {
    /// Adds the frame of a function in a file. Frames of the language and of test tools are skipped, because
    /// they differ between versions. A recursion counts once.
    pub(crate) fn push(&mut self, normaliser: &Normaliser, raw: &str, function: Option<&str>) {
        let path = normaliser.path(raw);
        let function = function
            .map(|function| normaliser.text(function.trim()))
            .unwrap_or_default();
        if is_runtime(&path, &function) {
            return;
        }
        if self.places.len() < MAX_FRAMES {
            self.places.extend(Place::read(raw));
        }
        self.keep(match (path.is_empty(), function.is_empty()) {
            (_, true) => path,
            (true, false) => function,
            (false, false) => format!("{path} in {function}"),
        });
    }

    /// Adds a normalised substitute for a frame.
    pub(crate) fn keep(&mut self, frame: String) {
        let (frame, _) = text::head(&frame, MAX_FRAME);
        let repeats = self.frames.last().is_some_and(|last| last == frame);
        if self.frames.len() < MAX_FRAMES && !frame.is_empty() && !repeats {
            self.frames.push(frame.to_owned());
        }
    }

    /// Returns whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.kind.is_none() && self.message.trim().is_empty() && self.frames.is_empty()
    }

    /// Frames of the test itself, the assertion last. What failed outside of an assertion may have failed in code that is
    /// edited, so that only the test's outermost frame counts.
    fn of_test(&self) -> Vec<Place> {
        let kind = self.kind.as_deref().unwrap_or_default();
        let is_assertion = kind.contains("Assertion") || kind.starts_with("panic: assertion");
        let outermost = match self.order {
            Order::Unknown => None,
            Order::Panic => self.places.first().filter(|_| is_assertion),
            Order::TestFirst => self.places.first(),
            Order::TestLast => self.places.last(),
        };
        let Some(outermost) = outermost else {
            return Vec::new();
        };
        if !is_assertion || self.order == Order::Panic {
            return vec![outermost.clone()];
        }
        let of_file = self.places.iter().filter(|place| place.path == outermost.path);
        match self.order {
            Order::TestLast => of_file.rev().cloned().collect(),
            _ => of_file.cloned().collect(),
        }
    }

    /// Makes the failure of the test or file `name`.
    pub(crate) fn failure(self, normaliser: &Normaliser, name: &str) -> Failure {
        // Such a message tells of itself which assertion it is.
        let first = self.message.lines().map(str::trim).find(|line| !line.is_empty());
        let is_source = first.is_some_and(detail::is_source);
        let places = match is_source {
            true => Vec::new(),
            false => self.of_test(),
        };
        let kind = self.kind.map(|kind| normaliser.kind(&kind));
        let expectation = |made: Made| {
            let kept = detail::without_actual_values(kind.as_deref(), &self.message, made);
            text::head(&normaliser.text(&kept), MAX_EXPECTATION).0.to_owned()
        };
        let by_source = match places.is_empty() {
            true => Vec::new(),
            false => [Made::Left, Made::Right, Made::Both]
                .map(|made| (made, expectation(made)))
                .to_vec(),
        };
        let expectation = expectation(Made::Unknown);
        Failure {
            name: normaliser.name(name),
            exception_type: kind
                .as_deref()
                .map(|kind| text::head(kind, MAX_KIND).0.to_owned())
                .filter(|kind| !kind.is_empty()),
            message_head: first_lines(
                &normaliser.text(&first_lines(&self.message, MAX_RAW_MESSAGE)),
                MAX_MESSAGE,
            ),
            expectation,
            stack: self.frames,
            places,
            by_source,
            assertion: is_source.then(String::new),
        }
    }
}

/// First non-blank lines of a message, at most `limit` characters.
fn first_lines(message: &str, limit: usize) -> String {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.take(MAX_LINES).collect();
    text::head(&lines.join("\n"), limit).0.to_owned()
}

/// Prefixes of paths of frames in a language or test tool.
const RUNTIME_PATHS: &[&str] = &[
    "node:",
    "internal/",
    "native",
    "<anonymous>",
    "index ",
    "library/",
    "rustc/",
    "_pytest/",
    "pluggy/",
    "xdist/",
    "python/importlib/",
    "python/unittest/",
    "python/runpy.py",
    "<frozen ",
    "go/testing/",
    "go/runtime/",
    "_testmain.go",
    "node_modules/jest",
    "node_modules/@jest/",
    "node_modules/vitest/",
    "node_modules/@vitest/",
    "node_modules/tape/",
    "node_modules/tap/",
    "node_modules/@tapjs/",
    "node_modules/@babel/",
];

/// Prefixes of functions in a language or test tool.
const RUNTIME_FUNCTIONS: &[&str] = &[
    "core::",
    "std::",
    "alloc::",
    "test::",
    "__rustc",
    "rust_begin_unwind",
    "<fn() -> ",
    "testing.",
    "runtime.",
    "panic(",
];

fn is_runtime(path: &str, function: &str) -> bool {
    RUNTIME_PATHS.iter().any(|start| path.starts_with(start))
        || RUNTIME_FUNCTIONS.iter().any(|start| function.starts_with(start))
}

/// Trace of a failure in any language.
pub(crate) fn any(text: &str, normaliser: &Normaliser) -> Trace {
    let languages = [rust::read, go::read, python::read, js::read];
    languages
        .iter()
        .find_map(|read| read(text, normaliser))
        .unwrap_or_else(|| Trace {
            message: text.to_owned(),
            ..Trace::default()
        })
}

/// Returns whether a word is the name of a type such as `calc.RatioError`.
pub(crate) fn is_type(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'))
}
