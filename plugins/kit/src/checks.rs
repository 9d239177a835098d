//! Checks of arguments that schemas cannot express.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::refusals::{Reason, Refusals};

impl<R: Reason> Refusals<R> {
    /// Checks that free text is not blank, not too long, and has no invisible characters.
    pub fn text(&mut self, field: &str, text: &str, max: usize) {
        self.not_blank(field, text);
        self.prose(field, text, max);
    }

    /// Checks optional free text like [`Refusals::text`].
    pub fn optional_text(&mut self, field: &str, text: Option<&str>, max: usize) {
        if let Some(text) = text {
            self.text(field, text, max);
        }
    }

    /// Checks a list of free texts like [`Refusals::text`], and that it has at most `most` entries.
    pub fn texts(&mut self, field: &str, texts: &[String], most: usize, max: usize) {
        self.at_most(field, texts.len(), most, "entries");
        for (place, text) in texts.iter().enumerate().take(most) {
            self.text(&format!("{field}[{place}]"), text, max);
        }
    }

    /// Checks that text is not blank.
    pub fn not_blank(&mut self, field: &str, text: &str) {
        if is_blank(text) {
            self.fault(field, "is blank");
        }
    }

    /// Checks free text that may be blank.
    pub fn prose(&mut self, field: &str, text: &str, max: usize) {
        if let Some(fault) = R::fault_of(text) {
            self.fault(field, fault);
        }
        self.characters(field, text, max);
        self.printable(field, text);
    }

    /// Checks that text has no invisible characters, and none that change how the rest is displayed. Line breaks and
    /// tabs are allowed.
    pub fn printable(&mut self, field: &str, text: &str) {
        if let Some(hidden) = unprintable(text, &['\n', '\r', '\t']) {
            self.hidden(field, hidden);
        }
    }

    /// Checks one line that is not blank.
    pub fn line(&mut self, field: &str, text: &str, max: usize) {
        if is_blank(text) {
            self.fault(field, "is blank");
        } else if text.trim() != text {
            self.fault(field, "starts or ends with whitespace");
        }
        self.one_line(field, text, max);
    }

    /// Checks that text is at most one line.
    pub fn one_line(&mut self, field: &str, text: &str, max: usize) {
        if text.contains(LINE_BREAKS) {
            self.fault(field, "has a line break");
        } else if let Some(hidden) = unprintable(text, &[]) {
            self.hidden(field, hidden);
        }
        self.characters(field, text, max);
    }

    /// Checks that there are at most `max` items of a kind.
    pub fn at_most(&mut self, field: &str, count: usize, max: usize, what: &str) {
        if count > max {
            let verb = if max == 1 { "is" } else { "are" };
            self.fault(field, format!("has {count} {what}; at most {max} {verb} allowed"));
        }
    }

    /// Checks that a number is within a range.
    pub fn within<N: Display + PartialOrd>(&mut self, field: &str, number: N, range: RangeInclusive<N>) {
        if !range.contains(&number) {
            let (least, most) = range.into_inner();
            self.fault(field, format!("is {number}, not within {least} to {most}"));
        }
    }

    /// Checks that a value is not too large as JSON.
    pub fn json(&mut self, field: &str, value: &impl Serialize, max: usize) {
        self.at_most(field, json_bytes(value), max, "bytes");
    }

    fn characters(&mut self, field: &str, text: &str, max: usize) {
        self.at_most(field, text.chars().count(), max, "characters");
    }

    fn hidden(&mut self, field: &str, hidden: char) {
        let code = u32::from(hidden);
        self.fault(field, format!("has the control character U+{code:04X}"));
    }
}

/// Characters that end a line.
const LINE_BREAKS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// First unprintable character of a text that is not allowed.
fn unprintable(text: &str, allowed: &[char]) -> Option<char> {
    // Most texts are plain ASCII. Without an early end, this loop compares many bytes at once.
    let may_break = allowed.contains(&'\n');
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') || may_break && *byte == b'\n';
    if text
        .as_bytes()
        .iter()
        .fold(true, |all, byte| all & is_plain(byte))
    {
        return None;
    }
    let is_hidden = |c: &char| is_unprintable(*c) && !allowed.contains(c);
    text.chars().find(is_hidden)
}

/// Returns whether a character is a control character, a line separator, a change of text direction, or a byte order
/// mark.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

/// Returns whether a text shows nothing: only blanks and invisible characters.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || is_unprintable(c) || shows_nothing(c))
}

/// Returns whether Unicode lets programs ignore a character when displaying text.
fn shows_nothing(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Number of bytes of a value as JSON.
#[must_use]
pub fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        // A value that cannot be serialised exceeds every limit.
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[derive(Debug)]
    struct Fault(String);

    impl Display for Fault {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    impl Reason for Fault {
        fn argument(field: String, fault: String) -> Fault {
            Fault(format!("{field} {fault}"))
        }

        fn code(&self) -> &'static str {
            "INVALID_ARGUMENTS"
        }

        fn remediation(&self) -> &'static str {
            "Correct the argument."
        }

        fn fault_of(text: &str) -> Option<&'static str> {
            (text == "TBD").then_some("is a placeholder")
        }
    }

    fn faults(check: impl Fn(&mut Refusals<Fault>)) -> String {
        let mut refusals = Refusals::default();
        check(&mut refusals);
        match refusals.finish() {
            Ok(()) => "fine\n".to_owned(),
            Err(err) => err
                .blockers
                .iter()
                .map(|blocker| blocker.message.clone() + "\n")
                .collect(),
        }
    }

    #[test]
    fn what_shows_nothing_is_blank() {
        for blank in [
            "",
            " \n",
            "\u{200b}",
            "\u{feff} \u{ad}",
            "\u{2800}\u{3164}",
            "\u{e0020}",
        ] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for text in ["a", "\u{200b}-", "0", "\u{2764}\u{fe0f}"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }

    #[test]
    fn each_check_names_what_is_wrong() {
        let list = ["a".to_owned(), String::new(), "c".to_owned()];
        let log = [
            faults(|r| r.text("text", "  TBD", 4)),
            faults(|r| r.text("text", "TBD", 4)),
            faults(|r| r.optional_text("text", None, 4)),
            faults(|r| r.texts("list", &list, 2, 4)),
            faults(|r| r.line("line", " a", 4)),
            faults(|r| r.one_line("line", "a\u{2028}b", 4)),
            faults(|r| r.within("limit", 0_u32, 1..=200)),
            faults(|r| r.within("limit", 200_i64, 1..=200)),
            faults(|r| r.json("data", &json!({"a": 1}), 6)),
            faults(|r| r.at_most("paths", 2, 1, "paths")),
        ];
        expect![[r#"
            text has 5 characters; at most 4 are allowed
            text is a placeholder
            fine
            list has 3 entries; at most 2 are allowed
            list[1] is blank
            line starts or ends with whitespace
            line has a line break
            limit is 0, not within 1 to 200
            fine
            data has 7 bytes; at most 6 are allowed
            paths has 2 paths; at most 1 is allowed
        "#]]
        .assert_eq(&log.concat());
    }

    /// Escape sequences control terminals, and direction overrides display text as something else.
    #[test]
    fn what_is_not_shown_is_refused_in_text_and_lines() {
        for hidden in [
            '\0', '\u{1b}', '\u{85}', '\u{61c}', '\u{202e}', '\u{2066}', '\u{2028}', '\u{feff}',
        ] {
            let text = format!("a{hidden}b");
            let code = format!("U+{:04X}", u32::from(hidden));
            assert!(faults(|r| r.text("text", &text, 9)).contains(&code), "{code}");
            assert_ne!(faults(|r| r.line("line", &text, 9)), "fine\n", "{code}");
        }
        assert_eq!(
            faults(|r| r.text("text", "one\r\n\ttwo größer 漢字 🦀\u{200d}", 99)),
            "fine\n"
        );
        assert_ne!(faults(|r| r.line("line", "one\ttwo", 99)), "fine\n");
    }
}
