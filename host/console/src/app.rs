//! Results of tools for clients that show pages (MCP Apps, SEP-1865), from the renderer of the console.

use maud::{DOCTYPE, PreEscaped, html};
use serde_json::{Map, Value};

use crate::structured::{self, Entry};

/// Page that shows a result: one document that loads nothing. Clients pass it the result, with the markup from
/// [`result`].
pub fn page(title: &str) -> String {
    let style = include_str!("../assets/console.css");
    let script = include_str!("../assets/app.js");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { main #main {} script { (PreEscaped(script)) } }
        }
    }
    .into_string()
}

/// Markup of a result: its lists as tables, the use of limits as bars, everything else as facts. All text is escaped,
/// and nothing is a link.
pub fn result(title: &str, lists: &[String], reply: &Map<String, Value>) -> String {
    // The same content as in the text for people without the page.
    let shown: Vec<&str> = lists.iter().map(String::as_str).chain(["text"]).collect();
    html! {
        h1 { (crate::visible::short(structured::title_of(reply).unwrap_or(title), 120)) }
        (structured::facts(reply, &shown))
        @for list in lists {
            @let entries: Vec<Entry<'_>> = reply.get(list).and_then(Value::as_array).into_iter().flatten().map(Entry::plain).collect();
            @if !entries.is_empty() { section.card { (structured::table(&entries, title)) } }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_has_bars_and_no_markup_of_somebody_else() {
        let reply = json!({
            "envelope": {"label": "<script>alert(1)</script>", "counters": {"mutation_count": 7}, "limits": {"max_mutations": 20}},
            "steps": [{"tool": "test_run", "times": 6}],
            "text": "as a person would tell it",
        });
        let made = result("Report", &["steps".to_owned()], reply.as_object().unwrap());
        for part in ["<meter", "7 of 20", "test_run", "&lt;script&gt;"] {
            assert!(made.contains(part), "{part} is not in {made}");
        }
        assert!(!made.contains("<script") && !made.contains("href"), "{made}");
    }

    #[test]
    fn the_page_loads_nothing() {
        let page = page("Report");
        for other in ["src=", "href=", "@import", "url(", "http:", "https:"] {
            assert!(!page.contains(other), "{other}");
        }
    }
}
