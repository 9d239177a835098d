//! Values in messages of assertions: where they end, and which of two is the one that the code under test made.

/// Characters of a text outside of quotes and brackets, with their positions. `None` if a quote stays open, as in a value
/// that was cut.
fn outside(text: &str) -> Option<Vec<(usize, char)>> {
    let mut found = Vec::new();
    let (mut quote, mut depth, mut is_word, mut is_escaped) = (None, 0usize, false, false);
    for (at, c) in text.char_indices() {
        if let Some(open) = quote {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                _ if c == open => quote = None,
                _ => {}
            }
            is_word = false;
            continue;
        }
        if depth == 0 {
            found.push((at, c));
        }
        match c {
            // Not the apostrophe of a word.
            '\'' | '"' | '`' if !is_word => quote = Some(c),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Python writes `b'…'`.
        is_word = c.is_alphanumeric() && (c != 'b' || is_word);
    }
    quote.is_none().then_some(found)
}

/// Splits a text at the first separator outside of quotes and brackets. Each separator begins with a blank; the longer of
/// two comes first.
pub(crate) fn split<'a>(
    text: &'a str,
    separators: &[&'static str],
) -> Option<(&'a str, &'static str, &'a str)> {
    let at = |at: usize| {
        let rest = text.get(at..)?;
        let separator = separators
            .iter()
            .find(|separator| rest.starts_with(**separator))?;
        let left = text.get(..at).filter(|left| !left.trim().is_empty())?;
        Some((left, *separator, rest.get(separator.len()..)?))
    };
    match outside(text) {
        Some(outside) => outside
            .into_iter()
            .filter(|(_, c)| *c == ' ')
            .find_map(|(position, _)| at(position)),
        None => text.match_indices(' ').find_map(|(position, _)| at(position)),
    }
}

/// Position of the first of some characters outside of quotes and brackets, or the end of the text.
pub(crate) fn end(text: &str, ends: &[char]) -> usize {
    let end = match outside(text) {
        Some(outside) => outside.into_iter().find(|(_, c)| ends.contains(c)),
        None => text.char_indices().find(|(_, c)| ends.contains(c)),
    };
    end.map_or(text.len(), |(at, _)| at)
}

/// The inner of a text that is in one pair of parentheses.
pub(super) fn unwrapped(text: &str) -> Option<&str> {
    let outside = outside(text)?;
    let is_pair = outside.len() == 1 || outside.iter().skip(1).all(|(_, c)| c.is_whitespace());
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    is_pair.then_some(inner)
}

/// True if a text looks like a value rather than like words.
pub(super) fn is_value(text: &str) -> bool {
    let text = text.trim();
    let first = text.chars().next();
    matches!(text, "True" | "False" | "None" | "true" | "false" | "null" | "nil" | "undefined")
        || first.is_some_and(|c| c.is_ascii_digit() || "'\"`([{<-".contains(c))
        || text.starts_with("b'")
        || text.starts_with("b\"")
        // `Color.RED`.
        || (!text.contains(' ') && text.contains(|c: char| !c.is_alphabetic()))
        // `Point(x=1, y=2)`.
        || (text.ends_with(')') && end(text, &[' ']) == text.len())
}

/// True if, of a value and what it should be in, the value is the one that was made: `404 not found in (200, 201)`. In a
/// text or a list something that is known is searched for.
pub(super) fn is_member_made(container: &str) -> bool {
    let container = container.trim();
    let is_dict = || container.contains(": ") || container == "{}";
    container.starts_with('(')
        || container.starts_with("frozenset")
        || (container.starts_with('{') && !is_dict())
}
