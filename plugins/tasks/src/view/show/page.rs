//! Division of parts into pages by bytes.

use std::fmt;
use std::str::FromStr;

use tollgate_sdk::{DbError, ToolError};

use super::Part;
use crate::limits::json_bytes;
use crate::scope::Scope;
use crate::store::body;

/// Place in the parts: the number of a part, and of characters of its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    part: usize,
    character: usize,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.part, self.character)
    }
}

/// Reason why text is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotACursor;

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Cursor, NotACursor> {
        let (part, character) = text.split_once('.').ok_or(NotACursor)?;
        let number = |text: &str| text.parse().map_err(|_| NotACursor);
        Ok(Cursor {
            part: number(part)?,
            character: number(character)?,
        })
    }
}

/// Parts that fit, and where the next page starts.
#[derive(Debug)]
pub(crate) struct Page {
    pub parts: Vec<Part>,
    pub next: Option<Cursor>,
    /// Bytes of the first part, or of the shortest piece of it, if not even that fits.
    pub least: Option<usize>,
}

/// The parts from a cursor on that fit into a number of bytes. A text that does not fit is divided.
pub(crate) fn page(scope: &Scope<'_>, all: &[Part], from: Cursor, bytes: usize) -> Result<Page, ToolError> {
    let mut page = Page {
        parts: Vec::new(),
        next: None,
        least: None,
    };
    let mut left = bytes;
    let mut character = from.character;
    for (place, part) in all.iter().enumerate().skip(from.part) {
        let mut shown = part.clone();
        shown.from = character;
        shown.text = rest(scope, part, character, left)?;
        let size = json_bytes(&shown) + 1;
        if size <= left {
            left -= size;
            character = 0;
            page.parts.push(shown);
            continue;
        }
        let text = std::mem::take(&mut shown.text);
        shown.text = "x".to_owned();
        let around = json_bytes(&shown);
        shown.text = fitting(&text, left.saturating_sub(around));
        let taken = shown.text.chars().count();
        page.next = Some(Cursor {
            part: place,
            character: character + taken,
        });
        if taken > 0 {
            page.parts.push(shown);
        } else if page.parts.is_empty() {
            let first = text.chars().next();
            shown.text = first.map(String::from).unwrap_or_default();
            page.least = Some(json_bytes(&shown) + 1);
        }
        return Ok(page);
    }
    Ok(page)
}

/// The text of a part from a character on: all of it, or of a stored body at least as much as fits.
fn rest(scope: &Scope<'_>, part: &Part, from: usize, bytes: usize) -> Result<String, DbError> {
    let Some(stored) = &part.body else {
        return Ok(part.text.chars().skip(from).collect());
    };
    // One character more than fits shows that there is more.
    let most = bytes.saturating_add(1);
    let slice = body::slice(
        scope.db(),
        &scope.workspace,
        (&stored.root, &stored.evidence),
        from,
        most,
    )?;
    Ok(slice.unwrap_or_default())
}

/// The longest start of a text whose JSON has at most that many bytes, without its quotes.
fn fitting(text: &str, bytes: usize) -> String {
    let mut left = bytes;
    let mut end = 0;
    for (start, character) in text.char_indices() {
        let size = json_bytes(&character).saturating_sub(2);
        if size > left {
            break;
        }
        left -= size;
        end = start + character.len_utf8();
    }
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_divided_by_their_bytes_in_json() {
        for (text, bytes, fits) in [
            ("abc", 2, "ab"),
            ("a\"b", 2, "a"),
            ("a\"b", 3, "a\""),
            ("äb", 1, ""),
            ("äb", 2, "ä"),
            ("", 9, ""),
        ] {
            assert_eq!(fitting(text, bytes), fits, "{text} {bytes}");
        }
    }

    #[test]
    fn cursors_are_two_numbers() {
        let cursor: Cursor = "3.17".parse().unwrap();
        assert_eq!(cursor.to_string(), "3.17");
        for text in ["", "3", "3.", ".1", "-1.0", "a.b", "1.2.3"] {
            assert_eq!(text.parse::<Cursor>(), Err(NotACursor), "{text}");
        }
    }
}
