//! The tokens of a Rust source that matter, one after the other.

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

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
    Mark(char),
    End,
}

/// All tokens but white space and comments, and a place among them.
pub(super) struct Tokens<'a> {
    tokens: Vec<(Kind<'a>, usize)>,
    next: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Tokens<'a> {
        let skipped = ra_ap_rustc_lexer::strip_shebang(text).unwrap_or(0);
        let source = text.get(skipped..).unwrap_or_default();
        let mut at = skipped;
        let mut tokens = Vec::new();
        for token in tokenize(source, FrontmatterAllowed::Yes) {
            let end = at.saturating_add(usize::try_from(token.len).unwrap_or(usize::MAX));
            let written = text.get(at..end).unwrap_or_default();
            tokens.extend(kind(token.kind, written).map(|kind| (kind, at)));
            at = end;
        }
        let end = text.len();
        Tokens { tokens, next: 0, end }
    }

    /// Whether there are more.
    pub(super) fn left(&self) -> bool {
        self.next < self.tokens.len()
    }

    pub(super) fn peek(&self) -> Kind<'a> {
        self.tokens.get(self.next).map_or(Kind::End, |(kind, _)| *kind)
    }

    pub(super) fn next(&mut self) -> Kind<'a> {
        let kind = self.peek();
        self.next = self.next.saturating_add(1);
        kind
    }

    /// Where the next token starts.
    pub(super) fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(_, at)| *at)
    }

    /// Goes past the next token if it is this one.
    pub(super) fn take(&mut self, kind: Kind<'_>) -> bool {
        let same = self.peek() == kind;
        self.next += usize::from(same);
        same
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.take(Kind::Word(word))
    }

    /// Whether `::` comes next.
    pub(super) fn before_separator(&self) -> bool {
        let second = self.tokens.get(self.next.saturating_add(1));
        self.peek() == Kind::Mark(':') && second.is_some_and(|(kind, _)| *kind == Kind::Mark(':'))
    }

    /// Goes past `::`.
    pub(super) fn take_separator(&mut self) -> bool {
        let both = self.before_separator();
        self.next += if both { 2 } else { 0 };
        both
    }
}

fn kind(kind: TokenKind, written: &str) -> Option<Kind<'_>> {
    Some(match kind {
        TokenKind::Whitespace | TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => {
            return None;
        }
        TokenKind::Ident => Kind::Word(written),
        TokenKind::RawIdent => Kind::Word(written.trim_start_matches("r#")),
        TokenKind::Literal {
            kind: LiteralKind::Str { .. } | LiteralKind::RawStr { .. },
            ..
        } => Kind::Text(inside(written)),
        TokenKind::OpenParen => Kind::Open('('),
        TokenKind::OpenBrace => Kind::Open('{'),
        TokenKind::OpenBracket => Kind::Open('['),
        TokenKind::CloseParen => Kind::Close(')'),
        TokenKind::CloseBrace => Kind::Close('}'),
        TokenKind::CloseBracket => Kind::Close(']'),
        TokenKind::Pound => Kind::Pound,
        _ => Kind::Mark(written.chars().next()?),
    })
}

fn inside(literal: &str) -> &str {
    let start = literal.find('"').map_or(0, |quote| quote + 1);
    let end = literal.rfind('"').filter(|end| *end >= start);
    literal
        .get(start..end.unwrap_or(literal.len()))
        .unwrap_or_default()
}
