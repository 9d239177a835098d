//! Lexer that classifies each word of a text.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use crate::refusal::{Refusal, not_allowed};
use crate::{MAX_NAME, MAX_PARAMETERS};

/// Splits a text into tokens.
pub(super) struct Lexer<'a> {
    text: &'a str,
    pub(super) at: usize,
    line: u64,
    line_start: usize,
    /// Highest parameter number so far: a bare `?` gets the next one.
    pub(super) last_parameter: u16,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
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

    /// Skips white space and comments, up to the next token.
    pub(super) fn skip(&mut self) -> usize {
        loop {
            let length = match self.peek(0) {
                b' ' | b'\t' | b'\r' | b'\x0c' | b'\n' => 1,
                b'-' if self.peek(1) == b'-' => self.rest().find('\n').unwrap_or(self.rest().len()),
                b'/' if self.peek(1) == b'*' => match self.rest()[2..].find("*/") {
                    Some(end) => end + 4,
                    // The slash is refused as a token.
                    None => return self.at,
                },
                _ => return self.at,
            };
            self.advance(length);
        }
    }

    /// Continues after an invalid token.
    pub(super) fn recover(&mut self, start: usize) {
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

    pub(super) fn next(&mut self) -> Result<Option<TokenWithSpan>, Refusal> {
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
            (b'/', b'*') => return not_allowed("a comment is not terminated"),
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
                    "`{}` is not allowed; use names of ASCII letters, digits and `_`, numbers, 'texts', \
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
        if let Some(letter) = rest[length..]
            .chars()
            .next()
            .filter(|next| is_part_of_a_name(*next))
        {
            return not_allowed(format!(
                "`{}` in a name is not allowed; names consist of ASCII letters, digits and `_`",
                letter.escape_default()
            ));
        }
        self.at += length;
        let upper = word.to_ascii_uppercase();
        if let Some(reserved) = RESERVED.iter().find(|reserved| **reserved == upper) {
            return not_allowed(format!(
                "{reserved} is not allowed; put it in quotes to use it as a name"
            ));
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
        if !name.chars().all(plain)
            || name.is_empty()
            || name.starts_with(|first: char| first.is_ascii_digit())
        {
            return not_allowed(format!(
                "\"{}\" is not a valid name: names consist of ASCII letters, digits and `_`; put texts in single quotes",
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

    /// Text between quotes, with doubled quotes as one.
    fn quoted(&mut self, quote: char) -> Result<String, Refusal> {
        let rest = &self.rest()[1..];
        let mut value = String::new();
        let mut from = 0;
        loop {
            let Some(end) = rest[from..].find(quote) else {
                return not_allowed("a text or name in quotes is not terminated");
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
            return not_allowed("x'…' must contain pairs of hexadecimal digits");
        }
        Ok(Token::HexStringLiteral(digits))
    }

    fn number(&mut self) -> Result<Token, Refusal> {
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| {
            bytes[from..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count()
        };
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
        if self.rest()[length..]
            .chars()
            .next()
            .is_some_and(is_part_of_a_name)
        {
            return not_allowed(format!("`{number}` is followed by a letter; numbers are decimal"));
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

/// Words outside the subset that have a meaning for an engine and could be taken as names.
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
        /// Keywords of the subset, sorted.
        pub(super) const KEYWORDS: &[(&str, Keyword)] = &[$((stringify!($word), Keyword::$word)),*];
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
