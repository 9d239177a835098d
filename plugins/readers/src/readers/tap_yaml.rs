//! YAML block that describes a TAP point, as far as tools use it.

use crate::normalise::Normaliser;
use crate::text;
use crate::trace::{Order, Trace, is_type, js};

/// Trace from the lines of a block.
pub(super) fn trace(block: &[&str], normaliser: &Normaliser) -> Trace {
    let entries = entries(block);
    let get = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| {
            entries
                .iter()
                .find(|(name, value)| name == key && !value.trim().is_empty())
        });
        found.map(|(_, value)| value.trim())
    };
    let kind = get(&["name", "type"]).filter(|kind| is_type(kind) && *kind != "suite" && *kind != "test");
    let mut trace = Trace {
        kind: kind.map(str::to_owned),
        message: get(&["message", "error"]).unwrap_or("").to_owned(),
        ..Trace::default()
    };
    for line in get(&["stack"]).unwrap_or("").lines() {
        let line = line.trim();
        if let Some((path, function)) = js::frame(line.strip_prefix("at ").unwrap_or(line)) {
            trace.push(normaliser, path, function);
        }
    }
    if !trace.places.is_empty() {
        trace.order = Order::TestLast;
    }
    if trace.frames.is_empty() {
        let place = get(&["at", "location"]).map(|place| js::frame(place).unwrap_or((place, None)));
        if let Some((path, function)) = place {
            trace.push(normaliser, path, function);
        }
    }
    if trace.message.is_empty() {
        trace.message = get(&["operator", "compare"]).unwrap_or("").to_owned();
    }
    trace
}

/// Keys and values at any nesting. A multi-line value keeps its text without indentation.
fn entries<'a>(block: &[&'a str]) -> Vec<(&'a str, String)> {
    let mut entries: Vec<(&str, String)> = Vec::new();
    // Indentation of the key of an open value.
    let mut open: Option<usize> = None;
    for line in block {
        let indent = text::indent(line);
        if let Some(key) = open {
            if line.trim().is_empty() || indent > key {
                if let Some((_, value)) = entries.last_mut() {
                    value.push_str(line.trim_start());
                    value.push('\n');
                }
                continue;
            }
            open = None;
        }
        let Some((key, value)) = line.trim_start().split_once(':') else {
            continue;
        };
        let value = value.trim();
        let spans = matches!(value, "|" | "|-" | "|+" | ">" | ">-");
        open = spans.then_some(indent);
        entries.push((key, if spans { String::new() } else { unquoted(value) }));
    }
    entries
}

fn unquoted(value: &str) -> String {
    let quoted = |quote: char| {
        value
            .strip_prefix(quote)
            .and_then(|value| value.strip_suffix(quote))
    };
    match (quoted('\''), quoted('"')) {
        (Some(inner), _) => inner.replace("''", "'"),
        (None, Some(_)) => serde_json::from_str(value).unwrap_or_else(|_| value.trim_matches('"').to_owned()),
        (None, None) => value.to_owned(),
    }
}
