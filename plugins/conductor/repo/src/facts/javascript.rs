//! JavaScript and TypeScript: `import`, `export … from`, `import()`, `require` and `new URL`.

mod tokens;

use super::{Facts, Import, Lines, MAX_IMPORTS, What};
use tokens::{Place, Token, tokens};

/// Maximum number of tokens between `import` and its `from`.
const MAX_CLAUSE: usize = 4_000;

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
        Some(b'(') => {
            let callee = trimmed
                .get(..trimmed.len() - 1)
                .unwrap_or_default()
                .trim_ascii_end();
            let names: [&[u8]; 4] = [b"import", b"require", b"resolve", b"URL"];
            names.iter().any(|name| callee.ends_with(name))
        }
        Some(b'/') if trimmed.ends_with(b"*/") => true,
        Some(_) if space.contains(&b'\n') => {
            let line = memchr::memrchr(b'\n', trimmed).map_or(0, |end| end + 1);
            memchr::memmem::find(trimmed.get(line..).unwrap_or_default(), b"//").is_some()
        }
        _ => false,
    }
}

struct Reading<'a> {
    tokens: Vec<Place<'a>>,
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
        let is_call = self.get(argument - 1) == (Token::Open, "(");
        if is_call && matches!(self.get(argument + 1).1, ")" | ",") {
            self.push(at, argument, resolves);
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
