//! The tokens of a Rust source that matter, one after the other.

use logos::{Lexer, Logos, Skip};

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// An identifier or keyword, without `r#`.
    Word(&'a str),
    /// The inside of a string literal, as written.
    Text(&'a str),
    Open(char),
    Close(char),
    Pound,
    /// `::`.
    Separator,
    Mark(char),
    End,
}

/// All tokens but white space and comments, and a place among them.
pub(super) struct Tokens<'a> {
    lexer: Lexer<'a, Token>,
    skipped: usize,
    next: Kind<'a>,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Tokens<'a> {
        let skipped = shebang(text);
        let mut tokens = Tokens {
            lexer: Token::lexer(text.get(skipped..).unwrap_or_default()),
            skipped,
            next: Kind::End,
            at: skipped,
        };
        tokens.next();
        tokens
    }

    /// Whether there are more.
    pub(super) fn left(&self) -> bool {
        self.next != Kind::End
    }

    pub(super) fn peek(&self) -> Kind<'a> {
        self.next
    }

    pub(super) fn next(&mut self) -> Kind<'a> {
        let kind = self.next;
        self.next = loop {
            match self.lexer.next() {
                None => break Kind::End,
                Some(Ok(token)) => break kind_of(token, self.lexer.slice()),
                Some(Err(())) => {}
            }
        };
        self.at = self.skipped + self.lexer.span().start;
        kind
    }

    /// Where the next token starts.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes past the next token if it is this one.
    pub(super) fn take(&mut self, kind: Kind<'_>) -> bool {
        let same = self.next == kind;
        if same {
            self.next();
        }
        same
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.take(Kind::Word(word))
    }
}

/// How long a line for the shell is, which an attribute is not.
fn shebang(text: &str) -> usize {
    let is_attribute = |rest: &str| rest.trim_start().starts_with('[');
    match text.strip_prefix("#!") {
        Some(rest) if !is_attribute(rest) => text.find('\n').unwrap_or(text.len()),
        _ => 0,
    }
}

fn kind_of(token: Token, written: &str) -> Kind<'_> {
    match token {
        Token::Word => Kind::Word(written),
        Token::RawWord => Kind::Word(written.trim_start_matches("r#")),
        Token::Text | Token::RawText => Kind::Text(inside(written)),
        Token::OpenParen => Kind::Open('('),
        Token::OpenBrace => Kind::Open('{'),
        Token::OpenBracket => Kind::Open('['),
        Token::CloseParen => Kind::Close(')'),
        Token::CloseBrace => Kind::Close('}'),
        Token::CloseBracket => Kind::Close(']'),
        Token::Pound => Kind::Pound,
        Token::Separator => Kind::Separator,
        Token::Comment | Token::Quoted | Token::Lifetime | Token::Number | Token::Other => {
            Kind::Mark(written.chars().next().unwrap_or_default())
        }
    }
}

fn inside(literal: &str) -> &str {
    let start = literal.find('"').map_or(0, |quote| quote + 1);
    let end = literal.rfind('"').filter(|end| *end >= start);
    literal
        .get(start..end.unwrap_or(literal.len()))
        .unwrap_or_default()
}

/// One token as the lexer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Logos)]
#[logos(skip r"[ \t\r\n\f\v]+")]
pub(super) enum Token {
    #[token("//", line_comment)]
    #[token("/*", block_comment)]
    Comment,
    #[regex(r"[A-Za-z_\u{80}-\u{10ffff}][A-Za-z0-9_\u{80}-\u{10ffff}]*")]
    Word,
    #[regex(r"r#[A-Za-z_\u{80}-\u{10ffff}][A-Za-z0-9_\u{80}-\u{10ffff}]*")]
    RawWord,
    #[regex(r#"[bc]?""#, text)]
    Text,
    #[regex(r##"[bc]?r#*""##, raw_text)]
    RawText,
    /// A character or byte.
    #[regex(r"b?'([^'\\\n]|\\[^\n][^'\n]*)'")]
    Quoted,
    #[regex(r"'[A-Za-z_\u{80}-\u{10ffff}][A-Za-z0-9_\u{80}-\u{10ffff}]*")]
    Lifetime,
    #[regex(r"[0-9][0-9A-Za-z_]*")]
    Number,
    #[token("(")]
    OpenParen,
    #[token("{")]
    OpenBrace,
    #[token("[")]
    OpenBracket,
    #[token(")")]
    CloseParen,
    #[token("}")]
    CloseBrace,
    #[token("]")]
    CloseBracket,
    #[token("#")]
    Pound,
    #[token("::")]
    Separator,
    #[regex(r"[!$%&*+,\-./:;<=>?@\\^`|~']", priority = 1)]
    Other,
}

fn line_comment(lexer: &mut Lexer<'_, Token>) -> Skip {
    let rest = lexer.remainder();
    lexer.bump(memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len()));
    Skip
}

/// Comments may lie inside each other.
fn block_comment(lexer: &mut Lexer<'_, Token>) -> Skip {
    let rest = lexer.remainder().as_bytes();
    let (mut depth, mut at) = (1_usize, 0);
    while depth > 0 {
        let found = rest.get(at..).and_then(|rest| memchr::memchr2(b'*', b'/', rest));
        let Some(found) = found.map(|found| found + at) else {
            at = rest.len();
            break;
        };
        let (step, change) = match rest.get(found..found + 2) {
            Some(b"/*") => (2, 1),
            Some(b"*/") => (2, -1),
            _ => (1, 0),
        };
        at = found + step;
        depth = depth.saturating_add_signed(change);
    }
    lexer.bump(at);
    Skip
}

/// To the next quote that no backslash hides.
fn text(lexer: &mut Lexer<'_, Token>) {
    let rest = lexer.remainder().as_bytes();
    let mut at = 0;
    while let Some(found) = rest.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if rest.get(at - 1) == Some(&b'"') {
            return lexer.bump(at);
        }
        at += 1;
    }
    lexer.bump(rest.len());
}

/// To the quote with as many `#` behind it as stood in front.
fn raw_text(lexer: &mut Lexer<'_, Token>) {
    let hashes = lexer.slice().bytes().filter(|byte| *byte == b'#').count();
    let rest = lexer.remainder();
    let end = format!("\"{}", "#".repeat(hashes));
    let found = memchr::memmem::find(rest.as_bytes(), end.as_bytes());
    lexer.bump(found.map_or(rest.len(), |at| at + end.len()));
}
