//! Text from callers, shortened for use in messages, and counts with their nouns.

use std::fmt::Display;

/// Maximum characters of an identifier or name in a message.
const CLIP_CHARACTERS: usize = 80;

/// Shortens an identifier or name for a message.
#[must_use]
pub fn clip(text: &str) -> String {
    clip_to(text, CLIP_CHARACTERS)
}

/// First characters of a text, with a mark if there were more.
#[must_use]
pub fn clip_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// First characters of a text's first line, with a mark if there was more.
#[must_use]
pub fn clip_line(text: &str, most: usize) -> String {
    let line = text.split(['\n', '\r']).next().unwrap_or_default();
    match clip_to(line, most) {
        clipped if clipped.len() == line.len() && line.len() < text.len() => format!("{line}…"),
        clipped => clipped,
    }
}

/// Number with a noun, for example `1 step` or `2 steps`. The plural of the noun must be formed with `s`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let told = [0_u32, 1, 2].map(|count| counted(count, "more step"));
        assert_eq!(told, ["0 more steps", "1 more step", "2 more steps"]);
    }

    #[test]
    fn what_is_cut_is_marked() {
        assert_eq!(clip_to("größe", 3), "grö…");
        assert_eq!(clip_to("größe", 5), "größe");
        assert_eq!(clip(&"x".repeat(81)), format!("{}…", "x".repeat(80)));
        assert_eq!(clip_line("one\ntwo", 5), "one…");
        assert_eq!(clip_line("one", 5), "one");
        assert_eq!(clip_line("größe!\nx", 3), "grö…");
    }
}
