//! Python: `import` and `from` at any position, and modules imported by name.

use std::iter::Peekable;
use std::sync::LazyLock;

use logos::{Lexer, Logos};
use memchr::memmem::Finder;

use super::{Facts, Import, Lines, What, last_of};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Logos)]
#[logos(skip r"[ \t\r\f]+")]
#[logos(skip r"\\\r?\n")]
#[logos(skip(r"#[^\n]*", allow_greedy = true))]
enum Token {
    #[token("\n")]
    Newline,
    #[regex(r"[A-Za-z_\u{80}-\u{10ffff}][A-Za-z0-9_\u{80}-\u{10ffff}]*")]
    Word,
    #[regex(r#"[rRbBuUfFtT]{0,2}"([^"\\\n]|\\[^\n]|\\\n)*""#)]
    #[regex(r"[rRbBuUfFtT]{0,2}'([^'\\\n]|\\[^\n]|\\\n)*'")]
    Text,
    #[regex("[rRbBuUfFtT]{0,2}\"\"\"", long_text)]
    #[regex("[rRbBuUfFtT]{0,2}'''", long_text)]
    LongText,
    #[regex(r"[\(\[\{]")]
    Open,
    #[regex(r"[\)\]\}]")]
    Close,
    #[token(".")]
    Dot,
    #[token("...")]
    Dots,
    #[token(",")]
    Comma,
    #[token("*")]
    Star,
    #[token(";")]
    #[token(":")]
    Start,
    #[regex(r"[0-9][0-9A-Za-z_.]*")]
    #[regex(r"[=+\-/%&|^!?~@<>`$]", priority = 1)]
    Other,
}

/// Moves behind the closing quotes; a string that never ends takes the rest.
fn long_text(lexer: &mut Lexer<'_, Token>) {
    let quotes = lexer.slice().get(lexer.slice().len() - 3..).unwrap_or_default();
    let rest = lexer.remainder();
    let mut from = 0;
    let end = loop {
        let Some(at) = rest
            .get(from..)
            .and_then(|rest| rest.find(quotes))
            .map(|at| at + from)
        else {
            break rest.len();
        };
        let escapes = rest
            .get(..at)
            .map_or(0, |text| text.len() - text.trim_end_matches('\\').len());
        if escapes % 2 == 0 {
            break at + quotes.len();
        }
        from = at + 1;
    };
    lexer.bump(end);
}

static MAIN: LazyLock<[Finder<'_>; 1]> = LazyLock::new(|| [Finder::new("__main__")]);

/// Reads a Python source.
pub(super) fn read(text: &str) -> Facts {
    let mut lexer = Token::lexer(text);
    let tokens = std::iter::from_fn(move || {
        let token = lexer.next()?.unwrap_or(Token::Other);
        Some((token, lexer.slice(), lexer.span().start))
    });
    let mut reading = Reading {
        tokens: tokens.peekable(),
        lines: Lines::new(text),
        facts: Facts::default(),
        last: last_import(text.as_bytes()).max(last_of(text, &*MAIN)),
    };
    reading.all();
    let mut facts = reading.facts;
    serves(text, &mut facts);
    facts
}

/// Packages whose applications a server imports by name.
const SERVED_PACKAGES: [&str; 12] = [
    "fastapi",
    "flask",
    "starlette",
    "sanic",
    "quart",
    "litestar",
    "falcon",
    "bottle",
    "dash",
    "connexion",
    "celery",
    "dramatiq",
];

/// Constructors and factories of such applications.
const APPLICATION_FACTORIES: [&str; 14] = [
    "FastAPI",
    "Flask",
    "Starlette",
    "Sanic",
    "Quart",
    "Litestar",
    "App",
    "API",
    "Bottle",
    "Dash",
    "FlaskApp",
    "Celery",
    "create_app",
    "make_app",
];

/// Marks files with `app = FastAPI(…)` on the left margin, which a server runs, and with tasks, which a worker
/// finds. Only files that import such a package are searched.
fn serves(text: &str, facts: &mut Facts) {
    let is_served = |import: &Import| match &import.what {
        What::Python { module, names, .. } => {
            let first = module.split('.').next().unwrap_or_default();
            SERVED_PACKAGES.contains(&first)
                || names
                    .iter()
                    .any(|name| APPLICATION_FACTORIES.contains(&name.as_str()))
        }
        _ => false,
    };
    if !facts.imports.iter().any(is_served) {
        return;
    }
    for line in text.lines() {
        facts.runs |= is_application(line);
        let decorator = line
            .strip_prefix('@')
            .map(|line| line.split('(').next().unwrap_or_default());
        let name = decorator.and_then(|line| line.rsplit('.').next());
        facts.registers |= name.is_some_and(|name| matches!(name.trim(), "task" | "shared_task" | "actor"));
    }
}

/// Checks for `name = Application(` without any indentation.
fn is_application(line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else {
        return false;
    };
    let name = name.split(':').next().unwrap_or_default().trim_end();
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let called = value.trim_start().split_once('(').map(|(called, _)| called);
    let last = called.and_then(|called| called.rsplit('.').next());
    is_word && last.is_some_and(|last| APPLICATION_FACTORIES.contains(&last))
}

/// Position of the last `import` that is a word, or the end of `__import__` or the start of `import_module`.
fn last_import(text: &[u8]) -> usize {
    const IMPORT: &[u8] = b"import";
    let is_word = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        let behind = text.get(at + IMPORT.len());
        before.is_none_or(|byte| !byte.is_ascii_alphanumeric())
            && behind.is_none_or(|byte| !byte.is_ascii_alphanumeric())
    };
    static FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(IMPORT));
    FINDER.find_iter(text).filter(is_word).last().unwrap_or(0)
}

struct Reading<'a, I: Iterator<Item = (Token, &'a str, usize)>> {
    tokens: Peekable<I>,
    lines: Lines<'a>,
    facts: Facts,
    /// Position of the last word that may begin an import.
    last: usize,
}

impl<'a, I: Iterator<Item = (Token, &'a str, usize)>> Reading<'a, I> {
    fn all(&mut self) {
        let (mut depth, mut starts, mut after_name) = (0_usize, true, 0_u8);
        while let Some((token, written, at)) = self.tokens.next() {
            if at > self.last {
                break;
            }
            let started = std::mem::replace(&mut starts, false);
            after_name = after_name.saturating_sub(1);
            match (token, written) {
                (Token::Open, _) => depth += 1,
                (Token::Close, _) => depth = depth.saturating_sub(1),
                (Token::Newline | Token::Start, _) => starts = depth == 0,
                (Token::Word, "import") if started => self.import(at),
                (Token::Word, "from") if started => self.from(at),
                // A statement inside brackets: an earlier bracket was left open.
                (Token::Word, "def" | "class") if written_first(self.lines.text, at) => depth = 0,
                (Token::Word, "import_module" | "__import__") => self.import_by_name(at),
                (Token::Word, "__name__") => after_name = 4,
                (Token::Text, text) if text.contains("__main__") => self.facts.runs |= after_name > 0,
                _ => {}
            }
        }
    }

    /// Reads `import a.b as c, d`.
    fn import(&mut self, at: usize) {
        loop {
            let module = self.dotted();
            if module.is_empty() {
                return;
            }
            self.push(at, module, 0, Vec::new());
            self.alias();
            if self.take(Token::Comma).is_none() {
                return;
            }
        }
    }

    /// Reads `from ..a import b as c, d`, with or without brackets.
    fn from(&mut self, at: usize) {
        let mut level = 0_u32;
        loop {
            if self.take(Token::Dot).is_some() {
                level = level.saturating_add(1);
            } else if self.take(Token::Dots).is_some() {
                level = level.saturating_add(3);
            } else {
                break;
            }
        }
        let mut module = String::new();
        if self.tokens.peek().is_some_and(|next| next.1 != "import") {
            module = self.dotted();
        }
        if (module.is_empty() && level == 0) || self.tokens.next_if(|next| next.1 == "import").is_none() {
            return;
        }
        let names = self.names();
        self.push(at, module, level, names);
    }

    fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        let in_brackets = self.take(Token::Open).is_some();
        loop {
            while in_brackets && self.take(Token::Newline).is_some() {}
            if self.take(Token::Star).is_some() {
                names.push("*".to_owned());
            } else if let Some(name) = self.take(Token::Word) {
                names.push(name.to_owned());
                self.alias();
            } else {
                break;
            }
            while in_brackets && self.take(Token::Newline).is_some() {}
            if self.take(Token::Comma).is_none() {
                break;
            }
        }
        if in_brackets {
            self.take(Token::Close);
        }
        names
    }

    /// Reads `import_module("a.b")`. Only literal names are known.
    fn import_by_name(&mut self, at: usize) {
        if self.take(Token::Open).is_none() {
            return;
        }
        let Some(text) = self.take(Token::Text) else {
            return;
        };
        let name = text
            .trim_start_matches(|c: char| c.is_ascii_alphabetic())
            .trim_matches(['"', '\'']);
        let module = name.trim_start_matches('.');
        let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
        if module.split('.').all(is_name) {
            let level = u32::try_from(name.len() - module.len()).unwrap_or(0);
            self.push(at, module.to_owned(), level, Vec::new());
        }
    }

    fn dotted(&mut self) -> String {
        let mut path = self.take(Token::Word).unwrap_or_default().to_owned();
        while self.take(Token::Dot).is_some() {
            path.push('.');
            path.push_str(self.take(Token::Word).unwrap_or_default());
        }
        path
    }

    fn alias(&mut self) {
        if self.tokens.next_if(|next| next.1 == "as").is_some() {
            self.take(Token::Word);
        }
    }

    fn take(&mut self, token: Token) -> Option<&'a str> {
        self.tokens.next_if(|next| next.0 == token).map(|next| next.1)
    }

    fn push(&mut self, at: usize, module: String, level: u32, names: Vec<String>) {
        let line = self.lines.of(at);
        let what = What::Python { module, level, names };
        self.facts.imports.push(Import { line, what });
    }
}

/// Checks whether a word starts its line without any indentation.
fn written_first(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n')
}
