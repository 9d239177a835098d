//! Sanitizing of untrusted text for logs, listings and terminals.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

use serde_json::{Map, Value};

/// Text on one line without invisible characters: control, ANSI, bidirectional and other format characters, variation
/// selectors, tags and fillers. Line breaks and tabs become spaces.
pub fn clean(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| match c {
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c => c,
        })
        .filter(|c| !is_hidden(*c))
        .collect()
}

/// Text on one line in quotation marks, so that nothing in it can be taken for words around it.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in clean(text).chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// Name or path for use in a sentence: unchanged, or in quotation marks if it contains blanks, quotes or invisible
/// characters.
pub fn named(name: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !is_hidden(c) && !matches!(c, '"' | '\'' | '`' | '\\');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// Like [`clean`], but keeps line breaks: for a component's multi-line descriptions of itself.
pub fn clean_lines(text: &str) -> String {
    if text.split('\n').all(is_plain) {
        return text.to_owned();
    }
    text.chars()
        .map(line_break)
        .filter(|c| *c == '\n' || !is_hidden(*c))
        .collect()
}

/// Like [`clean_lines`], but symbols keep the joiner or the variation selector that belongs to them: for content, in
/// which people write emoji. Of several in a row, which could hide a message, at most one stays.
pub fn clean_prose(text: &str) -> String {
    prose(text, |_, _| {})
}

/// Like [`clean_prose`], but invisible characters become symbols: for a person's words, which must not change
/// unnoticed.
pub fn visible_prose(text: &str) -> String {
    prose(text, push_visible)
}

/// Text on one line in which every invisible character is a symbol: `␛` for escape, `⟨U+202E⟩` for an override.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(&mut shown, c));
    shown
}

/// Appends a character, or its symbol if the character is invisible.
pub fn push_visible(shown: &mut String, c: char) {
    match c {
        // Unicode has a picture of each control of ASCII.
        '\u{0}'..='\u{1f}' => shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('�')),
        '\u{7f}' => shown.push('␡'),
        c if is_hidden(c) => {
            let _ = write!(shown, "⟨U+{:04X}⟩", u32::from(c));
        }
        c => shown.push(c),
    }
}

/// Prose in which `hidden` replaces each invisible character.
fn prose(text: &str, hidden: impl Fn(&mut String, char)) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut last = None;
    let mut rest = text.chars().map(line_break).peekable();
    while let Some(c) = rest.next() {
        let is_kept = match c {
            '\n' => true,
            '\u{fe0e}' | '\u{fe0f}' => last.is_some_and(is_symbol),
            // A joiner belongs between two symbols. The first may be followed by a variation selector.
            '\u{200d}' => {
                last.is_some_and(|last| is_symbol(last) || last == '\u{fe0f}')
                    && rest.peek().copied().is_some_and(is_symbol)
            }
            c => !is_hidden(c),
        };
        if is_kept {
            clean.push(c);
            last = Some(c);
        } else {
            hidden(&mut clean, c);
        }
    }
    clean
}

/// True if text holds invisible characters, line breaks and tabs aside.
pub fn hides(text: &str) -> bool {
    if is_plain(text) {
        return false;
    }
    let is_suspect = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    text.chars().any(is_suspect) && {
        let shown: String = text.chars().filter(|c| !matches!(c, '\r' | '\t')).collect();
        clean_prose(&shown) != shown
    }
}

/// True if a name or a string anywhere in JSON holds invisible characters.
pub fn hides_in(members: &Map<String, Value>) -> bool {
    fn is_hiding(value: &Value) -> bool {
        match value {
            Value::String(text) => hides(text),
            Value::Array(items) => items.iter().any(is_hiding),
            Value::Object(members) => hides_in(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    members
        .iter()
        .any(|(name, value)| hides(name) || is_hiding(value))
}

/// Cleans all names and strings of JSON that explains something. Not for data that must be returned unchanged.
pub fn clean_values(members: Map<String, Value>) -> Map<String, Value> {
    fn cleaned(value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(clean_prose(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(cleaned).collect()),
            Value::Object(members) => Value::Object(clean_values(members)),
            plain => plain,
        }
    }
    let members = members.into_iter();
    members
        .map(|(name, value)| (clean(&name), cleaned(value)))
        .collect()
}

/// JSON text in which every invisible character is escaped: equal for every parser, and harmless on a terminal. Line
/// breaks between its parts stay.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_raw = |c: char| is_hidden(c) && c != '\n';
    if !json.chars().any(is_raw) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_raw(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// True for printable ASCII on one line, which needs no cleaning: nearly all text of components.
fn is_plain(text: &str) -> bool {
    // Without an early end, this loop compares many bytes at once.
    text.bytes()
        .fold(true, |all, byte| all & matches!(byte, b' '..=b'~'))
}

/// Separators of lines and paragraphs are line breaks by another name.
fn line_break(c: char) -> char {
    if matches!(c, '\u{2028}' | '\u{2029}') {
        '\n'
    } else {
        c
    }
}

/// True for a character that is invisible to people but read by programs and models: Unicode's controls (Cc), format
/// characters (Cf), separators of lines and paragraphs, and all characters with the property
/// Default_Ignorable_Code_Point. The number signs of Arabic, Syriac and Kaithi are format characters too, but
/// visible.
pub fn is_hidden(c: char) -> bool {
    // Fast path: nearly all text is ASCII or starts with it.
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
        || is_nobodys(c)
}

/// True for code points that Unicode promises never to assign to a character.
fn is_nobodys(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// True if a variation selector or a joiner after this character has a meaning: symbols, emoji, and the keys `0` to
/// `9`, `*` and `#`.
fn is_symbol(c: char) -> bool {
    matches!(c, '#' | '*' | '0'..='9' | '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{214f}'
        | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Stable UPPER_SNAKE code from any text of a component.
pub fn code(said: &str) -> String {
    let clean: String = said
        .chars()
        .filter(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_')
        .take(64)
        .collect();
    if clean.is_empty() {
        "UNNAMED_ERROR".to_owned()
    } else {
        clean
    }
}

/// Text cut to at most this many bytes, between characters.
pub fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Known name that was probably meant by a misspelled one, if one is similar enough.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.map(|known| (strsim::damerau_levenshtein(known, name), known));
    let (distance, nearest) = distances.min()?;
    (distance <= 3).then_some(nearest)
}

/// Number with a noun, for example `1 tool` or `2 tools`. The plural of the noun must be formed with `s`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Error message with all its causes.
pub fn chain(err: &dyn std::error::Error) -> String {
    let mut text = err.to_string();
    let mut source = err.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// True for a text that can be the name of a workspace, a pack or a test command.
pub fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_is_singular() {
        let told = [0_i64, 1, 2].map(|count| counted(count, "row"));
        assert_eq!(told, ["0 rows", "1 row", "2 rows"]);
    }

    #[test]
    fn escapes_and_overrides_are_dropped() {
        assert_eq!(clean("a\u{1b}[31mb\n\u{202e}c"), "a[31mb c");
    }

    #[test]
    fn characters_that_nobody_sees_are_dropped_wherever_unicode_has_them() {
        for hidden in [
            "\u{7f}",
            "\u{85}",
            "\u{9b}31m",
            "\u{ad}",
            "\u{34f}",
            "\u{61c}",
            "\u{115f}",
            "\u{180e}",
            "\u{200b}",
            "\u{200d}",
            "\u{202e}",
            "\u{2066}",
            "\u{206f}",
            "\u{3164}",
            "\u{fe0f}\u{fe0f}",
            "\u{feff}",
            "\u{ffa0}",
            "\u{fff9}",
            "\u{fffb}",
            "\u{13430}",
            "\u{1bca0}",
            "\u{1d173}",
            "\u{e0001}",
            "\u{e0041}\u{e007f}",
            "\u{e0100}",
            "\u{e01ef}",
            "\u{fdd0}",
            "\u{10ffff}",
        ] {
            let text = format!("a{hidden}b");
            let left = format!("a{}b", hidden.trim_start_matches(is_hidden));
            assert_eq!(clean(&text), left, "{hidden:?}");
            assert_eq!(clean_lines(&text), left, "{hidden:?}");
            assert_eq!(clean_prose(&text), left, "{hidden:?}");
            assert!(hides(&text), "{hidden:?}");
        }
        for plain in [
            "naïve",
            "日本語",
            "עברית",
            "a\r\n\tb",
            "\u{600}12",
            "👍🏽",
            "1️⃣",
            "❤️",
            "👩‍💻",
        ] {
            assert!(!hides(plain), "{plain:?}");
        }
    }

    #[test]
    fn separators_are_line_breaks() {
        assert_eq!(clean("a\u{2028}b\u{2029}c"), "a b c");
        assert_eq!(clean_lines("a\u{2028}b\u{2029}c"), "a\nb\nc");
    }

    #[test]
    fn content_keeps_emoji_and_no_message_between_them() {
        assert_eq!(clean_prose("❤️ 👩‍💻 🏳️‍🌈"), "❤️ 👩‍💻 🏳️‍🌈");
        assert_eq!(
            clean_prose("❤\u{fe0f}\u{fe0e}\u{fe0f}a\u{fe0f}\u{200d}b"),
            "❤\u{fe0f}ab"
        );
        assert_eq!(clean_prose("👩\u{200d}\u{200d}\u{200d}x"), "👩x");
        assert_eq!(clean("❤️"), "❤");
    }

    #[test]
    fn a_name_in_a_sentence_is_quoted_unless_it_is_plain() {
        for plain in [
            "src/[id]/a-b_c.tsx",
            "naïve.py",
            "token:ada@example.org",
            "(group)/page.ts",
        ] {
            assert_eq!(named(plain), plain);
        }
        for (name, shown) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a\nOpened", r#""a Opened""#),
            ("a\u{202e}b", r#""ab""#),
            ("a\u{a0}b", "\"a\u{a0}b\""),
            (r#"a"; b\"#, r#""a\"; b\\""#),
        ] {
            assert_eq!(named(name), shown);
        }
    }

    #[test]
    fn escaped_json_is_the_same_json() {
        let value = json!({"a\u{9b}": "\u{202e}\u{7f}\u{e0041}\n\u{1b}", "b": ["\u{feff}"]});
        let pretty = format!("{value:#}");
        let escaped = escape_json(&pretty);
        assert!(!escaped.chars().any(|c| c != '\n' && is_hidden(c)), "{escaped}");
        assert!(escaped.contains("\\udb40\\udc41"), "{escaped}");
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        assert!(matches!(escape_json("{\"plain\": 1}"), Cow::Borrowed(_)));
    }

    #[test]
    fn cutting_keeps_characters_whole() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 9), "aé");
    }
}
