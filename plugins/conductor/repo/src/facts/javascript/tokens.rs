//! A lexer for JavaScript that tells regular expressions and templates from code.
//!
//! There is no grammar, so that no nesting is too deep. The previous token decides whether `/` divides or
//! starts a regular expression.

use logos::{Lexer, Logos, Skip};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Logos)]
#[logos(extras = State)]
#[logos(skip r"[ \t\r\n\f\v]+")]
pub(crate) enum Token {
    #[token("//", line_comment)]
    #[token("#!", line_comment)]
    #[token("/*", block_comment)]
    Comment,
    #[regex(r"[#]?[A-Za-z_$\u{80}-\u{10ffff}][A-Za-z0-9_$\u{80}-\u{10ffff}]*")]
    Word,
    /// String, or template without substitutions.
    #[regex(r#""([^"\\\n]|\\[^\n]|\\\n)*""#)]
    #[regex(r"'([^'\\\n]|\\[^\n]|\\\n)*'")]
    Text,
    #[token("`", template)]
    Template,
    #[regex(r"[0-9][0-9A-Za-z_.]*")]
    Number,
    #[token("/", slash)]
    Slash,
    #[token("{", open_brace)]
    #[regex(r"[\(\[]")]
    Open,
    #[token("}", close_brace)]
    #[regex(r"[\)\]]")]
    Close,
    #[token("*")]
    Star,
    #[regex(r"[<>=+\-%&|^!?:~,;.@\\#]", priority = 1)]
    Mark,
    /// End of the text.
    End,
}

/// State that decides how the next `/` and `}` are read.
#[derive(Default)]
pub(crate) struct State {
    /// True after the end of a value, where `/` divides.
    after_value: bool,
    braces: usize,
    /// Number of open braces at each `${`.
    templates: Vec<usize>,
}

/// A token with its position.
pub(crate) struct TokenAt<'a> {
    pub(crate) token: Token,
    pub(crate) written: &'a str,
    pub(crate) at: usize,
}

/// Maximum number of tokens read after the last relevant word.
const LOOKAHEAD_TOKENS: usize = 16;

/// All tokens up to `last` and a few more; bytes that match no rule are skipped.
pub(crate) fn tokens(text: &str, last: usize) -> Vec<TokenAt<'_>> {
    let mut lexer = Token::lexer(text);
    let mut places = Vec::new();
    let mut left = LOOKAHEAD_TOKENS;
    while let Some(token) = lexer.next() {
        let Ok(mut token) = token else {
            continue;
        };
        let (written, at) = (lexer.slice(), lexer.span().start);
        lexer.extras.after_value = ends_value(token, written);
        if token == Token::Template && !written.contains("${") && written.starts_with('`') {
            token = Token::Text;
        }
        places.push(TokenAt { token, written, at });
        left -= usize::from(at > last);
        if left == 0 {
            break;
        }
    }
    places
}

/// Text between the quotes of a token.
pub(crate) fn inside(written: &str) -> &str {
    let mut chars = written.chars();
    chars.next();
    chars.next_back();
    chars.as_str()
}

fn ends_value(token: Token, written: &str) -> bool {
    match token {
        Token::Word => !matches!(
            written,
            "return"
                | "typeof"
                | "instanceof"
                | "in"
                | "of"
                | "new"
                | "delete"
                | "void"
                | "throw"
                | "case"
                | "do"
                | "else"
                | "yield"
                | "await"
        ),
        Token::Text | Token::Number => true,
        Token::Template => written.ends_with('`'),
        Token::Slash => written.len() > 1,
        Token::Close => written != "}" && !written.ends_with("${"),
        Token::Comment | Token::Open | Token::Star | Token::Mark | Token::End => false,
    }
}

fn line_comment(lexer: &mut Lexer<'_, Token>) -> Skip {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
    Skip
}

fn block_comment(lexer: &mut Lexer<'_, Token>) -> Skip {
    let rest = lexer.remainder();
    lexer.bump(rest.find("*/").map_or(rest.len(), |at| at + 2));
    Skip
}

fn open_brace(lexer: &mut Lexer<'_, Token>) {
    lexer.extras.braces += 1;
}

/// Continues the template after a brace that ends `${…}`.
fn close_brace(lexer: &mut Lexer<'_, Token>) {
    let ends_substitution = lexer.extras.templates.last() == Some(&lexer.extras.braces);
    lexer.extras.braces = lexer.extras.braces.saturating_sub(1);
    if ends_substitution {
        lexer.extras.templates.pop();
        template(lexer);
    }
}

/// Reads to the end of the template, or to the next `${` in it.
fn template(lexer: &mut Lexer<'_, Token>) {
    let rest = lexer.remainder().as_bytes();
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 1,
            b'`' => return lexer.bump(at + 1),
            b'$' if rest.get(at + 1) == Some(&b'{') => {
                lexer.extras.braces += 1;
                let braces = lexer.extras.braces;
                lexer.extras.templates.push(braces);
                return lexer.bump(at + 2);
            }
            _ => {}
        }
        at += 1;
    }
    lexer.bump(rest.len());
}

/// Reads a regular expression where no value ends, if it is closed on the same line.
fn slash(lexer: &mut Lexer<'_, Token>) {
    if lexer.extras.after_value {
        return;
    }
    let rest = lexer.remainder().as_bytes();
    let (mut at, mut in_class) = (0, false);
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\n' => return,
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return lexer.bump(at + 1),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<&str> {
        let places = tokens(text, text.len());
        places.iter().map(|place| place.written).collect()
    }

    #[test]
    fn templates_end_where_they_do_in_javascript() {
        for (text, expected) in [
            ("`a` b", &["`a`", "b"][..]),
            ("`a${x}b` c", &["`a${", "x", "}b`", "c"]),
            ("`${x}-${y}` c", &["`${", "x", "}-${", "y", "}`", "c"]),
            (
                "`${x}${y}${z}` c",
                &["`${", "x", "}${", "y", "}${", "z", "}`", "c"],
            ),
            ("`${{}}-${{}}` c", &["`${", "{", "}", "}-${", "{", "}", "}`", "c"]),
            (
                "`${`${x}${y}`}${z}` c",
                &["`${", "`${", "x", "}${", "y", "}`", "}${", "z", "}`", "c"],
            ),
            ("{`${x}${y}`} c", &["{", "`${", "x", "}${", "y", "}`", "}", "c"]),
            (
                "`${x}${/`/}` / 2 / c",
                &["`${", "x", "}${", "/`/", "}`", "/", "2", "/", "c"],
            ),
            ("`\\${x}` c", &["`\\${x}`", "c"]),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
    }
}
