//! JavaScript and TypeScript: `import`, `export … from`, `import()`, `require`, `new URL`, `import.meta.glob` and
//! `require.context`.

pub(crate) mod tokens;

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::{Facts, Import, Lines, MAX_IMPORTS, What};
use tokens::{Token, TokenAt, tokens};

/// Maximum number of tokens between `import` and its `from`.
const MAX_CLAUSE: usize = 4_000;

/// Maximum number of tokens of a template or a list of patterns.
const MAX_TEMPLATE: usize = 60;

/// Reads a JavaScript or TypeScript source.
pub(super) fn read(text: &str) -> Facts {
    let mut reading = Reading {
        tokens: tokens(text, last_specifier(text.as_bytes())),
        lines: Lines::new(text),
        facts: Facts::default(),
        depth: 0,
        tries: Vec::new(),
    };
    let mut at = 0;
    while at < reading.tokens.len() && reading.facts.imports.len() < MAX_IMPORTS {
        reading.token(at);
        at += 1;
    }
    reading.facts
}

/// Minimum size of a bundle, and of its lines on average. Code that people write has lines of 30 to 50 bytes.
const BUNDLE_BYTES: usize = 8_000;
const BUNDLE_LINE: usize = 400;

/// Beginnings of the code that bundlers put before modules.
static BUNDLE_MARKS: LazyLock<[Finder<'_>; 6]> = LazyLock::new(|| {
    [
        "function(require,module,exports)",
        "function (require, module, exports)",
        "webpackBootstrap",
        "__webpack_require__",
        "parcelRequire",
        "__commonJS",
    ]
    .map(Finder::new)
});

/// Beginning of the first module of a bundle that may be small.
static BROWSERIFY_MARK: LazyLock<Finder<'_>> =
    LazyLock::new(|| Finder::new("[function(require,module,exports)"));

/// Size of the head in which a bundler leaves its mark.
const BUNDLE_HEAD: usize = 8_000;

/// Checks whether a bundler or minifier wrote a text. Its imports are those of other files.
pub(super) fn is_bundle(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < BUNDLE_BYTES {
        return BROWSERIFY_MARK.find(bytes).is_some();
    }
    let lines = memchr::memchr_iter(b'\n', bytes).count() + 1;
    let head = bytes.get(..BUNDLE_HEAD).unwrap_or(bytes);
    bytes.len() / lines > BUNDLE_LINE || BUNDLE_MARKS.iter().any(|mark| mark.find(head).is_some())
}

/// Position of the last literal that may name a file: nothing after it has to be read. Most files import at
/// their top, and literals are rarer than the words that may precede one.
fn last_specifier(text: &[u8]) -> usize {
    let mut quotes = memchr::memchr3_iter(b'\'', b'"', b'`', text);
    let last = quotes.rfind(|quote| may_name(text.get(..*quote).unwrap_or_default()));
    last.unwrap_or(0)
}

/// Checks whether a literal after this text may be a specifier. One after a comment may be.
fn may_name(before: &[u8]) -> bool {
    let trimmed = before.trim_ascii_end();
    let space = before.get(trimmed.len()..).unwrap_or_default();
    match trimmed.last() {
        Some(b'm') => trimmed.ends_with(b"from"),
        Some(b't') => trimmed.ends_with(b"import"),
        Some(b'(') => calls(trimmed),
        // The first of several patterns.
        Some(b'[') => {
            let before = trimmed
                .get(..trimmed.len() - 1)
                .unwrap_or_default()
                .trim_ascii_end();
            before.ends_with(b"(") && calls(before)
        }
        Some(b'/') if trimmed.ends_with(b"*/") => true,
        Some(_) if space.contains(&b'\n') => {
            let line = memchr::memrchr(b'\n', trimmed).map_or(0, |end| end + 1);
            memchr::memmem::find(trimmed.get(line..).unwrap_or_default(), b"//").is_some()
        }
        _ => false,
    }
}

/// Checks whether a text that ends with a bracket calls a function that takes a specifier.
fn calls(before: &[u8]) -> bool {
    let callee = before
        .get(..before.len() - 1)
        .unwrap_or_default()
        .trim_ascii_end();
    let names: [&[u8]; 7] = [
        b"import",
        b"require",
        b"resolve",
        b"URL",
        b"glob",
        b"globEager",
        b"context",
    ];
    // Types may come before the bracket.
    let tail = callee.get(callee.len().saturating_sub(100)..).unwrap_or_default();
    names.iter().any(|name| callee.ends_with(name))
        || (callee.ends_with(b">") && memchr::memmem::find(tail, b".glob<").is_some())
}

struct Reading<'a> {
    tokens: Vec<TokenAt<'a>>,
    lines: Lines<'a>,
    facts: Facts,
    depth: usize,
    /// Depths of the `try` blocks around this position.
    tries: Vec<usize>,
}

impl<'a> Reading<'a> {
    fn token(&mut self, at: usize) {
        match self.get(at) {
            (Token::Open, "{") => {
                self.depth += 1;
                if at > 0 && self.get(at - 1) == (Token::Word, "try") {
                    self.tries.push(self.depth);
                }
            }
            (Token::Close, "}") => {
                self.tries.retain(|depth| *depth < self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            (Token::Word, word) if at == 0 || self.get(at - 1).1 != "." => self.word(at, word),
            _ => {}
        }
    }

    fn word(&mut self, at: usize, word: &str) {
        match (word, self.get(at + 1)) {
            ("import" | "require", (Token::Open, "(")) => self.called(at, at + 2, false),
            ("require", (_, ".")) if self.get(at + 2).1 == "resolve" => self.called(at, at + 4, true),
            ("require", (_, ".")) if self.get(at + 2).1 == "context" => self.context(at, at + 4),
            ("import", (_, ".")) if matches!(self.get(at + 4).1, "glob" | "globEager") => {
                self.globs(at, at + 5)
            }
            ("import", (Token::Text, _)) => self.push(at, at + 1, false),
            ("import", (Token::Word | Token::Open | Token::Star, _)) => self.clause(at),
            ("export", (Token::Star, _) | (Token::Open, "{")) => self.clause(at),
            ("export", (Token::Word, "type")) if matches!(self.get(at + 2).1, "{" | "*") => self.clause(at),
            ("URL", (Token::Open, "(")) if self.get(at + 3).1 == "," && self.get(at + 4).1 == "import" => {
                self.called(at, at + 2, false);
            }
            _ => {}
        }
    }

    /// Reads a call whose first argument is a literal.
    fn called(&mut self, at: usize, argument: usize, resolves: bool) {
        if self.get(argument).0 == Token::Template && !resolves {
            return self.template(at, argument);
        }
        let is_call = self.get(argument - 1) == (Token::Open, "(");
        if is_call && matches!(self.get(argument + 1).1, ")" | ",") {
            self.push(at, argument, resolves);
        }
    }

    /// Reads `import(`./x/${name}.js`)`, which bundlers take as a pattern.
    fn template(&mut self, at: usize, argument: usize) {
        let start = self.get(argument).1.trim_matches('`').trim_end_matches("${");
        let end = (argument + 1..argument + MAX_TEMPLATE).map(|place| self.get(place));
        let end = end
            .map(|(_, written)| written)
            .find(|written| written.len() > 1 && written.ends_with('`'));
        if let Some(end) = end {
            let end = end.trim_start_matches('}').trim_end_matches('`');
            self.glob(at, format!("{start}*{end}"));
        }
    }

    /// Reads `require.context("./x", …)`: all files below a directory.
    fn context(&mut self, at: usize, argument: usize) {
        if let (Token::Text, written) = self.get(argument) {
            let directory = tokens::inside(written).trim_end_matches('/');
            self.glob(at, format!("{directory}/**/*"));
        }
    }

    /// Reads the patterns of `import.meta.glob`, one or a list, behind any types.
    fn globs(&mut self, at: usize, from: usize) {
        let places = from..from + MAX_TEMPLATE;
        let open = places
            .clone()
            .find(|place| self.get(*place) == (Token::Open, "("));
        for place in open.into_iter().flat_map(|open| open + 1..open + MAX_TEMPLATE) {
            match self.get(place) {
                (Token::Text, written) => self.glob(at, tokens::inside(written).to_owned()),
                (Token::Open, "[") | (Token::Mark, ",") => {}
                _ => return,
            }
        }
    }

    /// Adds a pattern. One without a fixed directory would fit everything.
    fn glob(&mut self, at: usize, pattern: String) {
        let is_fixed =
            pattern.starts_with(['.', '/', '@', '~', '#']) && !pattern.contains(['\n', '\\', '\0']);
        if is_fixed && pattern.len() <= 200 {
            let line = self.lines.of(self.tokens.get(at).map_or(0, |place| place.at));
            let what = What::JavaScriptGlob { pattern };
            self.facts.imports.push(Import { line, what });
        }
    }

    /// Reads from `import` or `export` to the literal after `from`.
    fn clause(&mut self, at: usize) {
        for place in at + 1..at.saturating_add(MAX_CLAUSE) {
            match self.get(place) {
                (Token::Word, "from") if self.get(place + 1).0 == Token::Text => {
                    return self.push(at, place + 1, false);
                }
                (Token::Word | Token::Star | Token::Text, _) | (Token::Open, "{") | (Token::Close, "}") => {}
                (Token::Mark, ",") => {}
                _ => return,
            }
        }
    }

    fn push(&mut self, at: usize, literal: usize, resolves: bool) {
        let (token, written) = self.get(literal);
        let specifier = tokens::inside(written);
        if token != Token::Text || specifier.is_empty() || specifier.contains(['\n', '\\']) {
            return;
        }
        let line = self.lines.of(self.tokens.get(at).map_or(0, |place| place.at));
        let what = What::JavaScript {
            specifier: specifier.to_owned(),
            optional: resolves || !self.tries.is_empty(),
        };
        self.facts.imports.push(Import { line, what });
    }

    fn get(&self, at: usize) -> (Token, &'a str) {
        self.tokens
            .get(at)
            .map_or((Token::End, ""), |place| (place.token, place.written))
    }
}
