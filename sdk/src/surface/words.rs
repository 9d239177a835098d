//! Words of a description, and whether they explain anything.

use std::ops::RangeInclusive;

/// Least that the description of a tool says: more than its name.
pub(super) const OF_TOOL: Least = Least { length: 25, words: 1 };
/// Least that the description of a parameter says: what the value is and where it comes from.
pub(super) const OF_PARAMETER: Least = Least { length: 25, words: 2 };
/// Least that the description of a field of the reply says: more than its name.
pub(super) const OF_FIELD: Least = Least { length: 10, words: 1 };
/// Words that explain nothing, in any description.
const EMPTY_WORDS: [&str; 10] = ["a", "an", "the", "this", "is", "its", "of", "s", "value", "given"];
/// First words of descriptions that nobody has written yet.
const PLACEHOLDERS: [&str; 3] = ["todo", "tbd", "fixme"];
/// Characters that no reader sees: those that Unicode calls ignorable by default, and annotations.
const INVISIBLE: [RangeInclusive<char>; 17] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Least that a description says.
#[derive(Clone, Copy)]
pub(super) struct Least {
    /// Visible characters.
    length: usize,
    /// Distinct words beside those of the name and [`EMPTY_WORDS`].
    words: usize,
}

/// Returns whether a description explains nothing beyond the name, or is a placeholder.
pub(super) fn is_vague(name: &str, description: &str, least: Least) -> bool {
    let said = words(description);
    let Some(first) = said.first() else {
        return true;
    };
    if length(description) < least.length || PLACEHOLDERS.contains(&first.to_lowercase().as_str()) {
        return true;
    }
    let mut known = parts(&words(name));
    known.push(known.concat());
    let mut further: Vec<String> = Vec::new();
    for word in parts(&said) {
        let is_known = known
            .iter()
            .chain(&further)
            .any(|other| is_form(&word, other) || is_form(other, &word));
        if !is_known && !EMPTY_WORDS.contains(&word.as_str()) {
            further.push(word);
        }
        if further.len() == least.words {
            return false;
        }
    }
    true
}

/// Returns whether a description has no visible word.
pub(super) fn is_silent(description: &str) -> bool {
    words(description).is_empty()
}

/// Text that readers see, with one space for all white space between two words.
fn visible(text: &str) -> String {
    let is_visible = |c: &char| {
        // The table is long, and most text is ASCII.
        let is_hidden = !c.is_ascii() && INVISIBLE.iter().any(|range| range.contains(c));
        !is_hidden && (!c.is_control() || c.is_whitespace())
    };
    let text: String = text.chars().filter(is_visible).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Number of visible characters. Dots, spaces and other signs in a row count as two at most.
fn length(text: &str) -> usize {
    let mut signs = 0;
    let text = visible(text);
    let counted = text.chars().filter(|c| {
        signs = if c.is_alphanumeric() { 0 } else { signs + 1 };
        signs <= 2
    });
    counted.count()
}

/// Visible words of a text.
fn words(text: &str) -> Vec<String> {
    let text = visible(text);
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Lower-case parts of words, which `camelCase` joins.
fn parts(words: &[String]) -> Vec<String> {
    let mut parts = Vec::new();
    for word in words {
        let mut part = String::new();
        let mut was_lower = false;
        for c in word.chars() {
            if was_lower && c.is_uppercase() {
                parts.push(std::mem::take(&mut part));
            }
            was_lower = c.is_lowercase();
            part.extend(c.to_lowercase());
        }
        parts.push(part);
    }
    parts
}

/// Returns whether a word is another one or its plural.
fn is_form(word: &str, other: &str) -> bool {
    match word.strip_prefix(other) {
        Some(end) => matches!(end, "" | "s" | "es"),
        None => other
            .strip_suffix('y')
            .is_some_and(|stem| word.strip_suffix("ies") == Some(stem)),
    }
}
