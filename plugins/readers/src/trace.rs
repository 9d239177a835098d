//! Exceptions, panics and their stacks, as the languages write them.

pub(crate) mod go;
pub(crate) mod js;
pub(crate) mod python;
pub(crate) mod rust;

use crate::fingerprint::detail;
use crate::normalise::Normaliser;
use crate::report::Failure;
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
}

impl Trace {
    /// Adds the frame of a function in a file. Frames of the language and of test tools are skipped, because
    /// they differ between versions. A recursion counts once.
    pub(crate) fn push(&mut self, normaliser: &Normaliser, path: &str, function: Option<&str>) {
        let path = normaliser.path(path);
        let function = function
            .map(|function| normaliser.text(function.trim()))
            .unwrap_or_default();
        if is_runtime(&path, &function) {
            return;
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

    /// Makes the failure of the test or file `name`.
    pub(crate) fn failure(self, normaliser: &Normaliser, name: &str) -> Failure {
        let kind = self.kind.map(|kind| normaliser.kind(&kind));
        let expectation = normaliser.text(&detail::without_actual_values(kind.as_deref(), &self.message));
        Failure {
            name: normaliser.name(name),
            exception_type: kind
                .map(|kind| text::head(&kind, MAX_KIND).0.to_owned())
                .filter(|kind| !kind.is_empty()),
            message_head: first_lines(
                &normaliser.text(&first_lines(&self.message, MAX_RAW_MESSAGE)),
                MAX_MESSAGE,
            ),
            expectation: text::head(&expectation, MAX_EXPECTATION).0.to_owned(),
            stack: self.frames,
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
