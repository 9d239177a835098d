//! Text from outside, made fit for logs and listings.

/// Text without control, ANSI and bidirectional formatting characters; line breaks become spaces.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .filter(|c| !is_formatting(*c))
        .collect()
}

/// Like [`clean`], but line breaks stay: for text of several lines.
pub fn clean_lines(text: &str) -> String {
    text.chars()
        .filter(|c| *c == '\n' || !is_formatting(*c))
        .collect()
}

fn is_formatting(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// At most so many bytes of text, cut between characters.
pub fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// An error with all its causes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_overrides_are_dropped() {
        assert_eq!(clean("a\u{1b}[31mb\n\u{202e}c"), "a[31mb c");
    }

    #[test]
    fn cutting_keeps_characters_whole() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 9), "aé");
    }
}
