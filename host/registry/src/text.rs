//! Untrusted text, made safe to show.

/// Maximum characters of one shown text.
const MAX_CHARS: usize = 400;

/// A text on one line, without control characters and those that change the writing direction, cut to a maximum length.
pub fn plain(text: &str) -> String {
    let mut shown = on_one_line(text);
    if let Some((end, _)) = shown.char_indices().nth(MAX_CHARS) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

/// Like [`plain`], but without a maximum length, for text that must be read to its end.
pub(crate) fn on_one_line(text: &str) -> String {
    let shown = text.chars().map(|c| if is_harmless(c) { c } else { '\u{fffd}' });
    shown.collect()
}

fn is_harmless(c: char) -> bool {
    let is_invisible = matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !is_invisible
}

/// Returns whether a text matches a pattern, in which `*` matches any characters.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_is_shown() {
        assert_eq!(
            plain("a\u{1b}[31mb\u{202e}c\nd"),
            "a\u{fffd}[31mb\u{fffd}c\u{fffd}d"
        );
        assert_eq!(plain(&"x".repeat(1000)).chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn patterns_cover_the_whole_text() {
        for (pattern, text, is) in [
            ("ghcr.io/team/*", "ghcr.io/team/hello", true),
            ("ghcr.io/team/*", "ghcr.io/teamster/hello", false),
            ("ghcr.io/team", "ghcr.io/team/hello", false),
            ("*", "anything", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*bc*bc", "abc", false),
            ("*@example.org", "ada@example.org", true),
            ("*@example.org", "ada@example.org.evil", false),
        ] {
            assert_eq!(fits(pattern, text), is, "{pattern} {text}");
        }
    }
}
