//! Tokenizer, and the limits on what is parsed.
//!
//! The parser gets these tokens instead of a text. It knows only the keywords of the subset and treats any other word
//! as a name, so most of its grammar cannot be reached. Its input is short and shallow, and contains no construct
//! that the parser would try in several ways.

mod bound;
mod lexer;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::MAX_TEXT;
use crate::refusal::{Refusal, not_allowed};
use bound::Current;
use lexer::Lexer;

/// One statement of a text.
pub(crate) struct Piece<'a> {
    pub(crate) tokens: Vec<TokenWithSpan>,
    /// Refused words.
    pub(crate) refused: Vec<Refusal>,
    /// Its text, from the first word to the last.
    pub(crate) text: &'a str,
}

impl Piece<'_> {
    /// First words, for messages.
    pub(crate) fn words(&self) -> String {
        let mut words = self.text.split_whitespace();
        let mut start = String::new();
        for word in words.by_ref().take(5) {
            if !start.is_empty() {
                start.push(' ');
            }
            start.extend(word.chars().take(40));
        }
        if words.next().is_some() {
            start.push_str(" …");
        }
        start
    }

    /// Table that it is about, as far as its tokens show.
    pub(crate) fn table(&self) -> Option<String> {
        let words: Vec<&Word> = self
            .tokens
            .iter()
            .filter_map(|token| match &token.token {
                Token::Word(word) => Some(word),
                _ => None,
            })
            .collect();
        let leads = [
            Keyword::TABLE,
            Keyword::INTO,
            Keyword::UPDATE,
            Keyword::FROM,
            Keyword::ON,
        ];
        let at = words.iter().position(|word| leads.contains(&word.keyword))?;
        let skipped = [Keyword::IF, Keyword::NOT, Keyword::EXISTS];
        words[at + 1..]
            .iter()
            .find(|word| !skipped.contains(&word.keyword))
            .map(|word| word.value.clone())
    }
}

/// Splits a text into its statements.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Refusal> {
    if text.len() > MAX_TEXT {
        return not_allowed(format!("a text has at most {MAX_TEXT} bytes"));
    }
    let mut lexer = Lexer::new(text);
    let mut pieces = Vec::new();
    let mut current = Current::default();
    loop {
        let start = lexer.skip();
        match lexer.next() {
            Ok(None) => break,
            Ok(Some(token)) if token.token == Token::SemiColon && !current.is_open_trigger() => {
                current.finish(text, &mut pieces);
                lexer.last_parameter = 0;
            }
            Ok(Some(token)) => current.push(token, start, lexer.at),
            // Later statements are still checked.
            Err(refusal) => {
                lexer.recover(start);
                current.refuse(refusal, start, lexer.at);
            }
        }
    }
    current.finish(text, &mut pieces);
    Ok(pieces)
}

pub(crate) fn keyword_of(token: &Token) -> Keyword {
    match token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

#[cfg(test)]
mod tests {
    use super::lexer::KEYWORDS;
    use super::pieces;

    #[test]
    fn keywords_are_sorted_so_that_they_are_found() {
        assert!(KEYWORDS.is_sorted_by(|(one, _), (other, _)| one < other));
    }

    #[test]
    fn a_text_is_taken_apart_at_semicolons_outside_of_quotes_comments_and_triggers() {
        let texts = |text| -> Vec<String> {
            let pieces = pieces(text).unwrap();
            pieces.iter().map(|piece| piece.text.to_owned()).collect()
        };
        assert_eq!(
            texts("-- ;\nSELECT ';' ; /* ; */ SELECT 2;;"),
            ["SELECT ';'", "SELECT 2"]
        );
        assert_eq!(
            texts("CREATE TRIGGER t BEFORE UPDATE ON x BEGIN SELECT 1; DELETE FROM y; END; SELECT 1"),
            [
                "CREATE TRIGGER t BEFORE UPDATE ON x BEGIN SELECT 1; DELETE FROM y; END",
                "SELECT 1"
            ]
        );
    }

    #[test]
    fn what_is_no_word_is_refused() {
        for text in [
            "SELECT `a`",
            "SELECT [a]",
            "SELECT $1",
            "SELECT :a",
            "SELECT @a",
            "SELECT ?0",
            "SELECT ?101",
            "SELECT ?99999999999",
            "SELECT ?1a",
            "SELECT 1a",
            "SELECT 0x10",
            "SELECT 1_000",
            "SELECT 'a",
            "SELECT \"a",
            "SELECT \"a b\"",
            "SELECT \"\"",
            "SELECT x'0'",
            "SELECT x'zz'",
            "SELECT ä",
            "SELECT aä",
            "SELECT a\u{0}",
            "SELECT 'a\u{0}'",
            "SELECT 1 /* ",
            "SELECT 1 & 2",
            "SELECT 1 << 2",
            "SELECT a -> 1",
            "SELECT a::text",
            "SELECT ~1",
            "SELECT a\\b",
            "SELECT \u{a0}1",
        ] {
            let pieces = pieces(text).unwrap();
            assert!(pieces.iter().any(|piece| !piece.refused.is_empty()), "{text}");
        }
    }
}
