//! Diffs, logs and JSON of artifacts as markup: lines with their kind, cut to what a person reads.

use maud::{Markup, html};
use serde_json::Value;

use crate::visible;

/// Most lines that are shown.
const LINES: usize = 1_200;
/// Longest line in characters.
const WIDTH: usize = 600;

/// A unified diff, its lines coloured by their kind.
pub(crate) fn diff(text: &str) -> Markup {
    let kind = |line: &str| match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "file",
        [b'+', ..] => "more",
        [b'-', ..] => "less",
        [b'@', b'@', ..] => "place",
        [b'd', b'i', b'f', b'f', ..] => "file",
        _ => "same",
    };
    block(text, "diff", kind)
}

/// Plain text.
pub(crate) fn text(text: &str) -> Markup {
    block(text, "text", |_| "same")
}

/// JSON, indented; as it is if it is none.
pub(crate) fn json(text: &str) -> Markup {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => self::text(&serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned())),
        Err(_) => self::text(text),
    }
}

fn block(text: &str, class: &str, kind: impl Fn(&str) -> &'static str) -> Markup {
    let lines = text.lines().count();
    html! {
        pre class=(class) tabindex="0" {
            @for line in text.lines().take(LINES) {
                span class=(kind(line)) { (visible::short(line, WIDTH)) } "\n"
            }
        }
        @if lines > LINES { p.hint { "Only the first " (LINES) " of " (lines) " lines are shown." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_kinds_and_nothing_in_them_is_markup() {
        let shown = diff("--- a\n+++ b\n@@ -1 +1 @@\n-<b>old\n+\u{1b}[2J new\n same\u{202e}").into_string();
        assert!(
            shown.contains(r#"<span class="less">-&lt;b&gt;old</span>"#),
            "{shown}"
        );
        assert!(
            shown.contains(r#"<span class="more">+␛[2J new</span>"#),
            "{shown}"
        );
        assert!(shown.contains(r#"<span class="file">+++ b</span>"#), "{shown}");
        assert!(json(r#"{"a":"<i>"}"#).into_string().contains("&lt;i&gt;"));
        assert!(
            text(&"x\n".repeat(LINES + 1))
                .into_string()
                .contains("Only the first")
        );
    }
}
