//! Bytes a program wrote, as text that can be read line by line.

/// Output of a program as valid text, without colours and with uniform line ends.
#[must_use]
pub fn clean(bytes: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(bytes);
    strip_ansi(lossy.strip_prefix('\u{feff}').unwrap_or(&lossy))
}

/// Removes escape sequences and control characters. Carriage returns end lines, as progress bars use them.
#[must_use]
pub fn strip_ansi(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.peek() {
                Some('[') => {
                    chars.next();
                    skip_control_sequence(&mut chars);
                }
                Some(']' | 'P' | '^' | '_') => skip_string_sequence(&mut chars),
                _ => skip_short_sequence(&mut chars),
            },
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => plain.push('\n'),
            '\n' | '\t' => plain.push(c),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips parameters up to and with the final letter. A line end means that the sequence was cut.
fn skip_control_sequence(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| !matches!(c, '\n' | '\r' | '\u{1b}')) {
        if matches!(c, '@'..='~') {
            return;
        }
    }
}

/// Skips a title or a link, which ends with a bell or with `ESC \`.
fn skip_string_sequence(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| !matches!(c, '\n' | '\r')) {
        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
            return;
        }
    }
}

fn skip_short_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
    chars.next_if(|c| matches!(c, '0'..='~'));
}

/// At most `limit` characters of a text, and whether that is all of it.
#[must_use]
pub fn head(text: &str, limit: usize) -> (&str, bool) {
    match text.char_indices().nth(limit) {
        Some((end, _)) => (text.get(..end).unwrap_or(text), false),
        None => (text, true),
    }
}

/// Number at the start of a text, and the rest. Numbers are limited to 32 bits, so that their sums fit.
#[must_use]
pub fn number(text: &str) -> Option<(u64, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.strip_suffix(rest)?;
    Some((number.parse::<u32>().ok()?.into(), rest))
}

/// The numbers and words in `1 failed, 3 passed`, whatever separates them.
pub fn counted(text: &str) -> impl Iterator<Item = (u64, &str)> {
    text.split([',', '|', ';']).filter_map(|part| {
        let (count, word) = number(part.trim())?;
        Some((count, word.trim()))
    })
}

/// Number of leading spaces of a line.
#[must_use]
pub fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_go_and_the_text_stays() {
        for (given, plain) in [
            ("\u{1b}[1m\u{1b}[91merror\u{1b}[0m: x", "error: x"),
            ("\u{1b}]8;;file:///a\u{1b}\\link\u{1b}]8;;\u{7}", "link"),
            ("\u{1b}(Bplain\u{1b}=", "plain"),
            ("10%\r100%\r\ndone", "10%\n100%\ndone"),
            ("cut \u{1b}[38;5\nnext", "cut \nnext"),
            ("bell\u{7} back\u{8} nul\0", "bell back nul"),
            ("\u{9b}31mred", "red"),
        ] {
            assert_eq!(strip_ansi(given), plain, "{given:?}");
        }
    }

    #[test]
    fn broken_encoding_is_marked_not_refused() {
        assert_eq!(clean(b"\xef\xbb\xbfcaf\xe9\r\n"), "caf\u{fffd}\n");
    }

    #[test]
    fn numbers_are_read_with_their_words() {
        let all: Vec<_> = counted("1 failed | 3 passed, x, 99999999999 none").collect();
        assert_eq!(all, [(1, "failed"), (3, "passed")]);
        assert_eq!(number("12ms"), Some((12, "ms")));
        assert_eq!(number("ms"), None);
    }

    #[test]
    fn a_head_ends_between_characters() {
        assert_eq!(head("größe", 3), ("grö", false));
        assert_eq!(head("größe", 5), ("größe", true));
    }
}
