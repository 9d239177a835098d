//! Hostile text made harmless and visible. Control characters and those that change the direction of text are shown as
//! symbols, so that nothing on a page can pose as something else.

use tollgate_core::text::push_visible;
pub(crate) use tollgate_core::text::visible as line;

/// Longest text that a cell of a table shows, in characters.
const MAX_CELL_CHARS: usize = 160;

/// Text of several lines with invisible characters as symbols. Line breaks and tabs are kept.
pub(crate) fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            // Line endings of Windows.
            '\r' => shown.push('␍'),
            other => push_visible(&mut shown, other),
        }
    }
    shown
}

/// A line, cut to what fits into a cell.
pub(crate) fn cell(text: &str) -> String {
    short(text, MAX_CELL_CHARS)
}

/// A line of at most `most` characters, with an ellipsis if it was cut.
pub(crate) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line(&text[..end])),
        None => line(text),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::text::is_hidden;

    use super::*;

    #[test]
    fn whatever_nobody_sees_is_a_symbol() {
        assert_eq!(line("a\u{1b}[31mred\0\u{7f}"), "a␛[31mred␀␡");
        assert_eq!(
            line("gnp\u{202e}exe.\u{200b}x\u{feff}"),
            "gnp⟨U+202E⟩exe.⟨U+200B⟩x⟨U+FEFF⟩"
        );
        assert_eq!(line("two\nlines\tand\r"), "two␊lines␉and␍");
        assert_eq!(lines("two\nlines\tand\r\u{1b}"), "two\nlines\tand␍␛");
        assert_eq!(line("Grüße, 世界 — ✓"), "Grüße, 世界 — ✓");
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let shown = line(&c.to_string());
            assert!(
                !shown.is_empty() && shown.chars().all(|c| !is_hidden(c)),
                "{:x}",
                u32::from(c)
            );
        }
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(short("héllo", 2), "hé…");
        assert_eq!(short("héllo", 5), "héllo");
        assert_eq!(
            cell(&"\u{202e}".repeat(500)).matches("U+202E").count(),
            MAX_CELL_CHARS
        );
    }
}
