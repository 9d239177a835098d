//! Relevant tokens of a Rust source, one after the other.

use super::stops::{Keywords, Stops};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// Identifier or keyword, without `r#`.
    Word(&'a str),
    /// Content of a string literal, as written.
    Text(&'a str),
    Open(char),
    Close(char),
    Pound,
    /// `::`.
    Separator,
    Mark(char),
    End,
}

/// Class of a byte: the kind of token that it may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Nothing,
    Word,
    Number,
    /// String, character, lifetime or comment.
    Hides,
    /// Brace or `#`.
    Notable,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Nothing; 256];
    let mut byte = u8::MIN;
    loop {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => Class::Word,
            b'0'..=b'9' => Class::Number,
            b'"' | b'\'' | b'/' => Class::Hides,
            b'{' | b'}' | b'#' => Class::Notable,
            _ => Class::Nothing,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    classes
};

/// Tokens of a text, read on demand.
///
/// Written by hand, because most time is spent here: of a function body without paths, little more than its
/// words are read.
pub(super) struct Tokens<'a> {
    text: &'a str,
    /// Position after the last token.
    place: usize,
    /// Next token and its position, if it was read already.
    read: Option<(Kind<'a>, usize)>,
    stops: Stops<'a>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Tokens<'a> {
        Tokens {
            text,
            place: shebang(text),
            read: None,
            stops: Stops::new(text.as_bytes()),
        }
    }

    /// Next `#`, keyword, word that may begin a path or a macro call, or brace that closes the enclosing item
    /// list; other tokens are skipped. Keywords of items are searched between items, at the depth `top`, or
    /// `everywhere`. Other braces are counted in `depth`, unless they were read before.
    pub(super) fn next_notable(&mut self, everywhere: bool, depth: &mut usize, top: usize) -> Kind<'a> {
        let read = self.read.take();
        let mut kind = read.map_or_else(|| self.leap(everywhere, depth, top), |(kind, _)| kind);
        loop {
            match kind {
                Kind::Word(_) | Kind::Pound | Kind::Open('{') | Kind::Close('}') | Kind::End => return kind,
                _ => kind = self.leap(everywhere, depth, top),
            }
        }
    }

    /// Next token that may matter to a reader of words.
    fn leap(&mut self, everywhere: bool, depth: &mut usize, top: usize) -> Kind<'a> {
        let bytes = self.text.as_bytes();
        let mut from = self.place;
        self.place = loop {
            // Inside an item, other items define nothing that files could be found by.
            let keywords = match everywhere || *depth == top {
                true => Keywords::Items,
                false => Keywords::Imports,
            };
            let stop = self.stops.next(from, keywords);
            let passed = bytes.get(self.place..stop).unwrap_or_default();
            match bytes.get(stop) {
                Some(b'{') => {
                    *depth += 1;
                    self.place = stop + 1;
                    from = self.place;
                }
                Some(b'}') if *depth > top => {
                    *depth -= 1;
                    self.place = stop + 1;
                    from = self.place;
                }
                None | Some(b'}' | b'\'') => break stop,
                Some(b'"' | b'#') => break stop - word_before(passed),
                // White space may precede these after a word.
                Some(b'/') => break stop - reach_back(passed),
                Some(b':' | b'!') => match reach_back(passed) {
                    0 => from = stop + 1,
                    back => break stop - back,
                },
                Some(_) => {
                    let end = stop + part(bytes, stop);
                    let starts = !passed.last().is_some_and(|byte| is_part(*byte));
                    if starts && is_keyword(bytes.get(stop..end).unwrap_or_default()) {
                        self.place = end;
                        return Kind::Word(self.slice(stop, end));
                    }
                    from = end;
                }
            }
        };
        self.scan()
    }

    pub(super) fn peek(&mut self) -> Kind<'a> {
        self.look().0
    }

    pub(super) fn next(&mut self) -> Kind<'a> {
        let (kind, _) = self.look();
        self.read = None;
        kind
    }

    /// Position of the next token.
    pub(super) fn at(&mut self) -> usize {
        self.look().1
    }

    /// Skips the next token if it is this one.
    pub(super) fn take(&mut self, kind: Kind<'_>) -> bool {
        let same = self.peek() == kind;
        if same {
            self.read = None;
        }
        same
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.take(Kind::Word(word))
    }

    fn look(&mut self) -> (Kind<'a>, usize) {
        if let Some(read) = self.read {
            return read;
        }
        let bytes = self.text.as_bytes();
        let read = loop {
            while self
                .byte(0)
                .is_some_and(|byte| byte.is_ascii_whitespace() || byte == 0x0b)
            {
                self.place += 1;
            }
            let at = self.place;
            if at >= bytes.len() {
                break (Kind::End, at);
            }
            if self.byte(0) != Some(b'/') || !self.comment() {
                break (self.scan(), at);
            }
        };
        self.read = Some(read);
        read
    }

    /// Reads the token at this position; a comment is a mark.
    fn scan(&mut self) -> Kind<'a> {
        let Some(byte) = self.byte(0) else {
            return Kind::End;
        };
        match class(byte) {
            Class::Word => self.word(),
            Class::Number => {
                self.place += self.run(0, is_part);
                Kind::Mark('0')
            }
            Class::Hides if byte == b'"' => self.string(0),
            Class::Hides if byte == b'\'' => self.quoted(),
            Class::Hides if self.comment() => Kind::Mark('/'),
            _ => self.mark(byte),
        }
    }

    fn mark(&mut self, byte: u8) -> Kind<'a> {
        self.place += 1;
        match byte {
            b'(' | b'{' | b'[' => Kind::Open(char::from(byte)),
            b')' | b'}' | b']' => Kind::Close(char::from(byte)),
            b'#' => Kind::Pound,
            b':' if self.byte(0) == Some(b':') => {
                self.place += 1;
                Kind::Separator
            }
            _ => Kind::Mark(char::from(byte)),
        }
    }

    /// Reads a word, or the literal that it is the prefix of.
    fn word(&mut self) -> Kind<'a> {
        let length = part(self.text.as_bytes(), self.place);
        let word = self.slice(self.place, self.place + length);
        match (self.byte(length), word) {
            (Some(b'"'), "b" | "c") => return self.string(length),
            (Some(b'"' | b'#'), "r" | "br" | "cr") => {
                let hashes = self.run(length, |byte| byte == b'#');
                match self.byte(length + hashes) {
                    Some(b'"') => return self.raw_string(length, hashes),
                    Some(byte) if word == "r" && hashes == 1 && class(byte) == Class::Word => {
                        self.place += length + 1;
                        return self.word();
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        self.place += length;
        Kind::Word(word)
    }

    /// Reads to the next quote that is not escaped.
    fn string(&mut self, prefix: usize) -> Kind<'a> {
        let start = self.place + prefix + 1;
        let bytes = self.text.as_bytes();
        let mut at = start;
        while let Some(found) = bytes
            .get(at..)
            .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
        {
            at += found;
            if bytes.get(at) == Some(&b'"') {
                self.place = at + 1;
                return Kind::Text(self.slice(start, at));
            }
            at += 2;
        }
        self.place = bytes.len();
        Kind::Text(self.slice(start, bytes.len()))
    }

    /// Reads to the quote that is followed by as many `#` as preceded the string.
    fn raw_string(&mut self, prefix: usize, hashes: usize) -> Kind<'a> {
        let start = self.place + prefix + hashes + 1;
        let bytes = self.text.as_bytes();
        let rest = bytes.get(start..).unwrap_or_default();
        let closes = |at: &usize| {
            let behind = rest.get(at + 1..).unwrap_or_default().iter();
            behind.take(hashes).filter(|byte| **byte == b'#').count() == hashes
        };
        let end = memchr::memchr_iter(b'"', rest).find(closes);
        self.place = end.map_or(bytes.len(), |end| start + end + 1 + hashes);
        Kind::Text(self.slice(start, end.map_or(bytes.len(), |end| start + end)))
    }

    /// Reads a character, a lifetime, or a quote that is neither.
    fn quoted(&mut self) -> Kind<'a> {
        let rest = self.text.get(self.place + 1..).unwrap_or_default();
        let mut chars = rest.chars();
        let first = chars.next();
        let length = match first {
            Some('\\') => {
                let escaped = chars.next().map_or(0, char::len_utf8);
                let behind = rest.get(1 + escaped..).unwrap_or_default();
                let end = behind.bytes().position(|byte| matches!(byte, b'\'' | b'\n'));
                end.filter(|end| behind.as_bytes().get(*end) == Some(&b'\''))
                    .map(|end| 1 + escaped + end + 1)
            }
            Some(c) if c != '\'' && c != '\n' && chars.next() == Some('\'') => Some(c.len_utf8() + 1),
            _ => None,
        };
        self.place += 1 + length.unwrap_or_else(|| self.run(1, is_part));
        Kind::Mark('\'')
    }

    /// Skips a comment, if one starts here.
    fn comment(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let rest = bytes.get(self.place..).unwrap_or_default();
        match rest.get(..2) {
            Some(b"//") => self.place += memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            Some(b"/*") => self.place += block_comment(rest),
            _ => return false,
        }
        true
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.place + ahead).copied()
    }

    /// Number of consecutive bytes of a kind, from an offset.
    fn run(&self, ahead: usize, is: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.as_bytes().get(self.place + ahead..).unwrap_or_default();
        rest.iter().position(|byte| !is(*byte)).unwrap_or(rest.len())
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }
}

fn class(byte: u8) -> Class {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(Class::Nothing)
}

/// Checks whether a word begins something relevant. The length is tested first, because every word is tested.
fn is_keyword(word: &[u8]) -> bool {
    match (word.len(), word.first()) {
        (2, Some(b'f')) => word == b"fn",
        (3, Some(b'm')) => word == b"mod",
        (3, Some(b'u')) => word == b"use",
        (4, Some(b'e')) => word == b"enum",
        (4, Some(b't')) => word == b"type",
        (5, Some(b'c')) => word == b"const",
        (5, Some(b't')) => word == b"trait",
        (5, Some(b'u')) => word == b"union",
        (6, Some(b'e')) => word == b"extern",
        (6, Some(b's')) => word == b"static" || word == b"struct",
        (7 | 11 | 13, Some(b'i')) => word.starts_with(b"include"),
        _ => false,
    }
}

/// Length of the word at the end of these bytes; 0 for one that begins with a digit.
fn word_before(bytes: &[u8]) -> usize {
    let word = bytes.iter().rev().take_while(|byte| is_part(**byte)).count();
    let first = bytes.get(bytes.len() - word).copied();
    match first.map(class) {
        Some(Class::Word) => word,
        _ => 0,
    }
}

/// Length of the word at the end, including white space after it, if there is a word.
fn reach_back(bytes: &[u8]) -> usize {
    let bare = bytes.trim_ascii_end();
    match word_before(bare) {
        0 => 0,
        word => word + bytes.len() - bare.len(),
    }
}

/// Length of the word or number at a position.
fn part(bytes: &[u8], place: usize) -> usize {
    let rest = bytes.get(place..).unwrap_or_default();
    rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len())
}

fn is_part(byte: u8) -> bool {
    matches!(class(byte), Class::Word | Class::Number)
}

/// Length of a `#!` line, which is not an attribute.
fn shebang(text: &str) -> usize {
    let is_attribute = |rest: &str| rest.trim_start().starts_with('[');
    match text.strip_prefix("#!") {
        Some(rest) if !is_attribute(rest) => text.find('\n').unwrap_or(text.len()),
        _ => 0,
    }
}

/// Length of a comment. Comments may be nested.
fn block_comment(text: &[u8]) -> usize {
    let (mut depth, mut at) = (1_usize, 2);
    while depth > 0 {
        let found = text.get(at..).and_then(|rest| memchr::memchr2(b'*', b'/', rest));
        let Some(found) = found.map(|found| found + at) else {
            return text.len();
        };
        let (step, change) = match text.get(found..found + 2) {
            Some(b"/*") => (2, 1),
            Some(b"*/") => (2, -1),
            _ => (1, 0),
        };
        at = found + step;
        depth = depth.saturating_add_signed(change);
    }
    at
}

#[cfg(test)]
mod tests;
