//! Diffs, logs and JSON of artifacts as markup: lines with their kind, limited to a readable length.

use maud::{Markup, html};
use serde_json::Value;

use crate::visible;

/// Maximum number of shown lines.
const MAX_LINES: usize = 1_200;
/// Longest line in characters.
const MAX_LINE_CHARS: usize = 600;

/// A unified diff with lines coloured by kind. Within a hunk, only the first character decides the kind, because an
/// added line can look like a file header.
pub(crate) fn diff(text: &str) -> Markup {
    let mut left = (0, 0);
    block(text, "diff", |line| {
        let (kind, (old, new)) = match (line.as_bytes(), left) {
            ([b'@', b'@', ..], (0, 0)) => {
                left = lengths(line).unwrap_or_default();
                ("place", (0, 0))
            }
            ([b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..], (0, 0)) => {
                ("file", (0, 0))
            }
            // Marks the previous line as lacking a line ending.
            ([b'\\', ..], _) => ("same", (0, 0)),
            ([b'+', ..], _) => ("more", (0, 1)),
            ([b'-', ..], _) => ("less", (1, 0)),
            _ => ("same", (1, 1)),
        };
        left = (left.0.saturating_sub(old), left.1.saturating_sub(new));
        kind
    })
}

/// Numbers of old and new lines in a hunk, from its header: `@@ -1,4 +1,5 @@`.
fn lengths(heading: &str) -> Option<(u32, u32)> {
    let mut ranges = heading.split(' ').skip(1);
    let mut length = |mark| {
        let range = ranges.next()?.strip_prefix(mark)?;
        match range.split_once(',') {
            Some((_, length)) => length.parse().ok(),
            None => Some(1),
        }
    };
    Some((length('-')?, length('+')?))
}

/// Plain text.
pub(crate) fn text(text: &str) -> Markup {
    block(text, "text", |_| "same")
}

/// JSON, indented. Text that is not JSON is unchanged.
pub(crate) fn json(text: &str) -> Markup {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => self::text(&serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned())),
        Err(_) => self::text(text),
    }
}

fn block(text: &str, class: &str, mut kind: impl FnMut(&str) -> &'static str) -> Markup {
    let lines = text.lines().count();
    html! {
        pre class=(class) tabindex="0" {
            @for line in text.lines().take(MAX_LINES) {
                span class=(kind(line)) { (visible::short(line, MAX_LINE_CHARS)) } "\n"
            }
        }
        @if lines > MAX_LINES { p.hint { "Only the first " (MAX_LINES) " of " (lines) " lines are shown." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(page: &str, part: &str) {
        assert!(page.contains(part), "{part} in {page}");
    }

    #[test]
    fn lines_have_kinds_and_nothing_in_them_is_markup() {
        let shown = diff("--- a\n+++ b\n@@ -1 +1 @@\n-<b>old\n+\u{1b}[2J new\n same\u{202e}").into_string();
        has(&shown, r#"<span class="less">-&lt;b&gt;old</span>"#);
        has(&shown, r#"<span class="more">+␛[2J new</span>"#);
        has(&shown, r#"<span class="file">+++ b</span>"#);
        let shown = diff(
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/README.md\n+++ b/README.md\n end\n--- a/y\n+++ b/y",
        );
        let shown = shown.into_string();
        has(&shown, r#"<span class="more">+++ b/README.md</span>"#);
        has(&shown, r#"<span class="less">--- a/README.md</span>"#);
        has(&shown, r#"<span class="file">+++ b/y</span>"#);
        assert!(json(r#"{"a":"<i>"}"#).into_string().contains("&lt;i&gt;"));
        assert!(
            text(&"x\n".repeat(MAX_LINES + 1))
                .into_string()
                .contains("Only the first")
        );
    }
}
