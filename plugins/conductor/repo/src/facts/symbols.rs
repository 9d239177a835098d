//! A lexer for C-like languages: enough to tell code from comments and strings.

use logos::{Lexer, Logos, Skip};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Logos)]
#[logos(skip r"[ \t\r\n\f\v]+")]
pub(super) enum Symbol {
    #[token("//", line_comment)]
    #[token("/*", block_comment)]
    Comment,
    #[regex(r"[A-Za-z_$\u{80}-\u{10ffff}][A-Za-z0-9_$\u{80}-\u{10ffff}]*")]
    Word,
    /// String in quotes, including the quotes.
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Text,
    #[regex(r"'([^'\\\n]|\\[^\n])*'")]
    Quoted,
    /// Raw string in Go, template in JavaScript.
    #[token("`", backquoted)]
    Backquoted,
    /// Text block in Java.
    #[token("\"\"\"", text_block)]
    Block,
    /// Raw string in C++.
    #[token("R\"", raw_string)]
    #[token("u8R\"", raw_string)]
    #[token("LR\"", raw_string)]
    Raw,
    #[regex(r"[0-9]([0-9A-Za-z_.]|'[0-9A-Za-z])*")]
    Number,
    /// Directive; [`include`] reads the rest of the line.
    #[regex(r"#[ \t]*(include|include_next|import)", priority = 20)]
    Include,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token(";")]
    Semicolon,
    #[token(".")]
    Dot,
    #[token("*")]
    Star,
    #[token("@")]
    At,
    #[token(",")]
    Comma,
    #[regex(r"[#\[\]<>=+\-/%&|^!?:~\\]", priority = 1)]
    Other,
}

/// Tokens with their text and position; bytes that match no rule are skipped.
pub(super) fn symbols(text: &str) -> impl Iterator<Item = (Symbol, &str, usize)> {
    let mut lexer = Symbol::lexer(text);
    std::iter::from_fn(move || {
        loop {
            if let Ok(symbol) = lexer.next()? {
                return Some((symbol, lexer.slice(), lexer.span().start));
            }
        }
    })
}

/// Text between the quotes of a token.
pub(super) fn inside(written: &str) -> &str {
    let mut chars = written.chars();
    chars.next();
    chars.next_back();
    chars.as_str()
}

fn line_comment(lexer: &mut Lexer<'_, Symbol>) -> Skip {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
    Skip
}

fn block_comment(lexer: &mut Lexer<'_, Symbol>) -> Skip {
    skip_past(lexer, "*/");
    Skip
}

fn backquoted(lexer: &mut Lexer<'_, Symbol>) {
    skip_past(lexer, "`");
}

fn text_block(lexer: &mut Lexer<'_, Symbol>) {
    skip_past(lexer, "\"\"\"");
}

/// Reads `R"mark( … )mark"`.
fn raw_string(lexer: &mut Lexer<'_, Symbol>) {
    let Some((mark, _)) = lexer.remainder().split_once('(') else {
        return;
    };
    if mark.len() <= 16 && !mark.contains(['"', '\n', ' ']) {
        let end = format!("){mark}\"");
        skip_past(lexer, &end);
    }
}

/// Moves behind the next `end`, or to the end of the text.
fn skip_past(lexer: &mut Lexer<'_, Symbol>, end: &str) {
    let rest = lexer.remainder();
    lexer.bump(rest.find(end).map_or(rest.len(), |at| at + end.len()));
}
