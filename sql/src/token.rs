//! From text to words, and the bounds of what is parsed.
//!
//! The parser gets words of ours instead of a text. It knows no keyword but those of the subset: anything else
//! is a name to it, so most of its grammar cannot be reached. What it gets is short, shallow and without the
//! shapes that it would try in several ways.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use crate::refusal::{Refusal, not_allowed};
use crate::{MAX_COMPOUND, MAX_NAME, MAX_NESTING, MAX_PARAMETERS, MAX_TEXT};

/// Words in a row without a comma, at one depth: what bounds trees that lean to one side.
const MAX_RUN: usize = 800;
/// Compound operators in one statement, those of its subqueries included.
const MAX_COMPOUNDS: usize = 10 * MAX_COMPOUND;

/// One statement of a text.
pub(crate) struct Piece<'a> {
    pub(crate) tokens: Vec<TokenWithSpan>,
    /// What is wrong with its words.
    pub(crate) refused: Option<Refusal>,
    /// Its text, from the first word to the last.
    pub(crate) text: &'a str,
}

impl Piece<'_> {
    /// How it begins, for messages.
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

    /// The table it is about, as far as its words tell.
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

/// The statements of a text.
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
            // The statements after it are still looked at.
            Err(refusal) => {
                lexer.recover(start);
                current.refuse(refusal, start, lexer.at);
            }
        }
    }
    current.finish(text, &mut pieces);
    Ok(pieces)
}

/// The statement that is being collected, and how deep it is.
#[derive(Default)]
struct Current {
    tokens: Vec<TokenWithSpan>,
    start: usize,
    end: usize,
    levels: Vec<Level>,
    base: Level,
    compounds: usize,
    /// The last word opened parentheses in the place of a table.
    place_opened: bool,
    /// What is wrong with it, the first thing.
    refused: Option<Refusal>,
}

/// What is known at one depth of parentheses.
#[derive(Default, Clone, Copy)]
struct Level {
    /// Words since the last comma.
    run: usize,
    /// Among the tables of FROM.
    tables: bool,
    is_case: bool,
}

impl Current {
    fn push(&mut self, token: TokenWithSpan, start: usize, end: usize) {
        self.reach(start, end);
        if self.refused.is_none() {
            self.refused = self.bound(&token.token).err();
        }
        self.tokens.push(token);
    }

    fn refuse(&mut self, refusal: Refusal, start: usize, end: usize) {
        self.reach(start, end);
        self.refused.get_or_insert(refusal);
    }

    fn reach(&mut self, start: usize, end: usize) {
        if self.tokens.is_empty() && self.refused.is_none() {
            self.start = start;
        }
        self.end = end;
    }

    fn bound(&mut self, token: &Token) -> Result<(), Refusal> {
        let keyword = keyword_of(token);
        let is_place = self.in_place();
        if std::mem::take(&mut self.place_opened)
            && !matches!(keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES)
        {
            // A query or a join: the parser would try both.
            return not_allowed("tables in parentheses are not allowed; write the joins one after the other");
        }
        let level = self.level();
        level.run += 1;
        if level.run > MAX_RUN {
            return not_allowed("an expression or a clause is too long");
        }
        match token {
            Token::Comma => level.run = 0,
            Token::LParen => {
                self.place_opened = is_place;
                self.open(false)?;
            }
            Token::RParen => while self.levels.pop().is_some_and(|level| level.is_case) {},
            _ => self.keyword(keyword)?,
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: Keyword) -> Result<(), Refusal> {
        match keyword {
            Keyword::CASE => self.open(true)?,
            Keyword::END if self.level().is_case => drop(self.levels.pop()),
            // `IS DISTINCT FROM` has no tables.
            Keyword::FROM => self.level().tables = self.last_keyword() != Keyword::DISTINCT,
            Keyword::JOIN => self.level().tables = true,
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => {
                self.level().tables = false;
                self.compounds += 1;
                if self.compounds > MAX_COMPOUNDS {
                    return not_allowed(format!("at most {MAX_COMPOUND} queries are put together"));
                }
            }
            Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::SET
            | Keyword::SELECT
            | Keyword::RETURNING
            | Keyword::VALUES => self.level().tables = false,
            _ => {}
        }
        Ok(())
    }

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().unwrap_or(&mut self.base)
    }

    fn open(&mut self, is_case: bool) -> Result<(), Refusal> {
        if self.levels.len() == MAX_NESTING {
            return not_allowed(format!(
                "parentheses and CASE nest at most {MAX_NESTING} deep"
            ));
        }
        self.levels.push(Level {
            is_case,
            ..Level::default()
        });
        Ok(())
    }

    /// Whether a table or a subquery comes next.
    fn in_place(&self) -> bool {
        let level = self.levels.last().unwrap_or(&self.base);
        level.tables
            && self.tokens.last().is_some_and(|last| {
                last.token == Token::Comma || matches!(keyword_of(&last.token), Keyword::FROM | Keyword::JOIN)
            })
    }

    fn last_keyword(&self) -> Keyword {
        self.tokens
            .last()
            .map_or(Keyword::NoKeyword, |last| keyword_of(&last.token))
    }

    /// A trigger has statements of its own, up to its END. It is refused as one.
    fn is_open_trigger(&self) -> bool {
        let mut words = self.tokens.iter().map_while(|token| match &token.token {
            Token::Word(word) => Some(word.value.to_ascii_lowercase()),
            _ => None,
        });
        words.next().is_some_and(|word| word == "create")
            && words.take(2).any(|word| word == "trigger")
            && self.last_keyword() != Keyword::END
    }

    fn finish<'a>(&mut self, text: &'a str, pieces: &mut Vec<Piece<'a>>) {
        let current = std::mem::take(self);
        if !current.tokens.is_empty() || current.refused.is_some() {
            pieces.push(Piece {
                tokens: current.tokens,
                refused: current.refused,
                text: text.get(current.start..current.end).unwrap_or_default(),
            });
        }
    }
}

pub(crate) fn keyword_of(token: &Token) -> Keyword {
    match token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u64,
    line_start: usize,
    last_parameter: u16,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            text,
            at: 0,
            line: 1,
            line_start: 0,
            last_parameter: 0,
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Goes over white space and comments, to where a word starts.
    fn skip(&mut self) -> usize {
        loop {
            let length = match self.peek(0) {
                b' ' | b'\t' | b'\r' | b'\x0c' | b'\n' => 1,
                b'-' if self.peek(1) == b'-' => self.rest().find('\n').unwrap_or(self.rest().len()),
                b'/' if self.peek(1) == b'*' => match self.rest()[2..].find("*/") {
                    Some(end) => end + 4,
                    // The slash is refused as a word.
                    None => return self.at,
                },
                _ => return self.at,
            };
            self.advance(length);
        }
    }

    /// Goes on after what is no word.
    fn recover(&mut self, start: usize) {
        if self.at == start {
            let first = self.rest().chars().next();
            let open = matches!(first, Some('\'' | '"')) || self.rest().starts_with("/*");
            let length = first.filter(|_| !open).map_or(self.rest().len(), char::len_utf8);
            self.advance(length);
        }
    }

    fn advance(&mut self, length: usize) {
        let end = self.at + length;
        for (place, byte) in self.text.as_bytes()[self.at..end].iter().enumerate() {
            if *byte == b'\n' {
                self.line += 1;
                self.line_start = self.at + place + 1;
            }
        }
        self.at = end;
    }

    fn next(&mut self) -> Result<Option<TokenWithSpan>, Refusal> {
        if self.at >= self.text.len() {
            return Ok(None);
        }
        let column = (self.at - self.line_start + 1) as u64;
        let location = Location::new(self.line, column);
        let token = self.token()?;
        Ok(Some(TokenWithSpan::new(token, Span::new(location, location))))
    }

    fn token(&mut self) -> Result<Token, Refusal> {
        let first = self.peek(0);
        match first {
            b'x' | b'X' if self.peek(1) == b'\'' => self.blob(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            b'\'' => self.quoted('\'').map(Token::SingleQuotedString),
            b'"' => self.quoted_name(),
            b'?' => self.parameter(),
            _ => self.symbol(),
        }
    }

    fn symbol(&mut self) -> Result<Token, Refusal> {
        let (token, length) = match (self.peek(0), self.peek(1)) {
            (b'<', b'>') | (b'!', b'=') => (Token::Neq, 2),
            (b'<', b'=') => (Token::LtEq, 2),
            (b'>', b'=') => (Token::GtEq, 2),
            (b'=', b'=') => (Token::Eq, 2),
            (b'|', b'|') => (Token::StringConcat, 2),
            (b'<', next) if next != b'<' => (Token::Lt, 1),
            (b'>', next) if next != b'>' => (Token::Gt, 1),
            (b'-', next) if next != b'>' => (Token::Minus, 1),
            (b'=', _) => (Token::Eq, 1),
            (b'+', _) => (Token::Plus, 1),
            (b'*', _) => (Token::Mul, 1),
            (b'/', b'*') => return not_allowed("a comment does not end"),
            (b'/', _) => (Token::Div, 1),
            (b'%', _) => (Token::Mod, 1),
            (b'(', _) => (Token::LParen, 1),
            (b')', _) => (Token::RParen, 1),
            (b',', _) => (Token::Comma, 1),
            (b';', _) => (Token::SemiColon, 1),
            (b'.', _) => (Token::Period, 1),
            _ => {
                let symbol: String = self.rest().chars().take(2).collect();
                return not_allowed(format!(
                    "`{}` is not allowed; there are names of ASCII letters, digits and `_`, numbers, 'texts', \
                     x'00' and the operators = <> < <= > >= + - * / % ||",
                    symbol.escape_default()
                ));
            }
        };
        self.at += length;
        Ok(token)
    }

    fn word(&mut self) -> Result<Token, Refusal> {
        let rest = self.rest();
        let length = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(rest.len());
        let word = &rest[..length];
        if let Some(letter) = rest[length..].chars().next().filter(|next| is_part_of_a_name(*next)) {
            return not_allowed(format!(
                "`{}` in a name is not allowed; names are of ASCII letters, digits and `_`",
                letter.escape_default()
            ));
        }
        self.at += length;
        let upper = word.to_ascii_uppercase();
        if let Some(reserved) = RESERVED.iter().find(|reserved| **reserved == upper) {
            return not_allowed(format!("{reserved} is not allowed; in quotes it is a name"));
        }
        let keyword = KEYWORDS
            .binary_search_by(|(name, _)| (*name).cmp(upper.as_str()))
            .map_or(Keyword::NoKeyword, |place| KEYWORDS[place].1);
        name_fits(word)?;
        Ok(Token::Word(Word {
            value: word.to_owned(),
            quote_style: None,
            keyword,
        }))
    }

    fn quoted_name(&mut self) -> Result<Token, Refusal> {
        let name = self.quoted('"')?;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !name.chars().all(plain) || name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit())
        {
            return not_allowed(format!(
                "\"{}\" is no name: names are of ASCII letters, digits and `_`; texts stand in single quotes",
                name.chars().take(40).collect::<String>().escape_default()
            ));
        }
        name_fits(&name)?;
        Ok(Token::Word(Word {
            value: name,
            quote_style: Some('"'),
            keyword: Keyword::NoKeyword,
        }))
    }

    /// What stands between quotes, with doubled quotes as one.
    fn quoted(&mut self, quote: char) -> Result<String, Refusal> {
        let rest = &self.rest()[1..];
        let mut value = String::new();
        let mut from = 0;
        loop {
            let Some(end) = rest[from..].find(quote) else {
                return not_allowed("a text or name in quotes does not end");
            };
            value.push_str(&rest[from..from + end]);
            from += end + 1;
            if !rest[from..].starts_with(quote) {
                break;
            }
            value.push(quote);
            from += 1;
        }
        if value.contains('\0') {
            return not_allowed("a NUL character in a text is not allowed");
        }
        self.advance(from + 1);
        Ok(value)
    }

    fn blob(&mut self) -> Result<Token, Refusal> {
        self.at += 1;
        let digits = self.quoted('\'')?;
        if digits.len() % 2 == 1 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return not_allowed("between the quotes of x'…' are pairs of hexadecimal digits");
        }
        Ok(Token::HexStringLiteral(digits))
    }

    fn number(&mut self) -> Result<Token, Refusal> {
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut length = digits(0);
        if bytes.get(length) == Some(&b'.') {
            length += 1;
            length += digits(length);
        }
        if matches!(bytes.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            let exponent = digits((length + 1 + sign).min(bytes.len()));
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        let number = self.rest()[..length].to_owned();
        if self.rest()[length..].chars().next().is_some_and(is_part_of_a_name) {
            return not_allowed(format!("`{number}` goes on with a letter; numbers are decimal"));
        }
        self.at += length;
        Ok(Token::Number(number, false))
    }

    fn parameter(&mut self) -> Result<Token, Refusal> {
        let rest = &self.rest()[1..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = if length == 0 {
            Some(self.last_parameter + 1)
        } else {
            rest[..length].parse().ok()
        };
        let Some(number) = number.filter(|number| (1..=MAX_PARAMETERS).contains(number)) else {
            return not_allowed(format!("parameters are ?1 to ?{MAX_PARAMETERS}"));
        };
        if rest[length..].chars().next().is_some_and(is_part_of_a_name) {
            return not_allowed("parameters are numbered, as in ?1");
        }
        self.last_parameter = self.last_parameter.max(number);
        self.at += 1 + length;
        Ok(Token::Placeholder(format!("?{number}")))
    }
}

fn is_part_of_a_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '$' || !letter.is_ascii()
}

fn name_fits(name: &str) -> Result<(), Refusal> {
    if name.len() > MAX_NAME {
        return not_allowed(format!("a name has at most {MAX_NAME} characters"));
    }
    Ok(())
}

/// Words that mean something to an engine, are not in the subset, and could be taken for a name.
const RESERVED: &[&str] = &[
    "AUTOINCREMENT",
    "COLLATE",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "DEFERRABLE",
    "INDEXED",
    "ISNULL",
    "LATERAL",
    "NATURAL",
    "NOTNULL",
    "WINDOW",
];

macro_rules! keywords {
    ($($word:ident)*) => {
        /// The keywords of the subset, sorted.
        const KEYWORDS: &[(&str, Keyword)] = &[$((stringify!($word), Keyword::$word)),*];
    };
}

keywords! {
    ACTION ADD ALL ALTER AND AS ASC BETWEEN BIGINT BLOB BY CASCADE CASE CAST CHECK COLUMN CONFLICT CONSTRAINT
    CREATE CROSS CURRENT DEFAULT DELETE DESC DISTINCT DO DOUBLE DROP ELSE END ESCAPE EXCEPT EXISTS FALSE FILTER
    FIRST FOLLOWING FOREIGN FROM FULL GROUP GROUPS HAVING IF IN INDEX INNER INSERT INT INTEGER INTERSECT INTO
    IS JOIN KEY LAST LEFT LIKE LIMIT MATERIALIZED NO NOT NOTHING NULL NULLS OFFSET ON OR ORDER OUTER OVER
    PARTITION PRECEDING PRECISION PRIMARY RANGE REAL RECURSIVE REFERENCES RENAME RESTRICT RETURNING RIGHT ROW
    ROWS SELECT SET TABLE TEXT THEN TO TRUE UNBOUNDED UNION UNIQUE UPDATE USING VALUES WHEN WHERE WITH
}

#[cfg(test)]
mod tests {
    use super::{KEYWORDS, pieces};

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
            assert!(pieces.iter().any(|piece| piece.refused.is_some()), "{text}");
        }
    }
}
