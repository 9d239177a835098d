//! JSON text with its style, for inserting and removing members.

use jsonc_parser::ast::{self, ObjectProp};
use jsonc_parser::common::Ranged as _;
use serde_json::Value;

/// Indentation per level, if the text does not show any.
pub(super) const INDENT: &str = "  ";

/// An object or list: the range of its content, and its members.
pub(super) struct Container {
    pub(super) open: usize,
    pub(super) close: usize,
    pub(super) members: Vec<(usize, usize)>,
}

impl Container {
    pub(super) fn of(node: &ast::Value<'_>) -> Option<Container> {
        let range = node.range();
        let members = match node {
            ast::Value::Object(object) => object
                .properties
                .iter()
                .map(|property| (property.range.start, property.range.end))
                .collect(),
            ast::Value::Array(array) => array
                .elements
                .iter()
                .map(|element| (element.range().start, element.range().end))
                .collect(),
            _ => return None,
        };
        Some(Container {
            open: range.start + 1,
            close: range.end.checked_sub(1)?,
            members,
        })
    }
}

/// Origin of a table: created for a member, or already in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    New,
    There,
}

/// A text with its style.
pub(super) struct Text<'a> {
    text: &'a str,
    unit: String,
    line_end: &'static str,
}

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a str, root: &ast::Value<'_>) -> Text<'a> {
        let first = Container::of(root).and_then(|root| root.members.first().copied());
        let unit = first
            .and_then(|(start, _)| own_line(text, start))
            .filter(|indent| !indent.is_empty());
        Text {
            text,
            unit: unit.unwrap_or(INDENT).to_owned(),
            line_end: if text.contains("\r\n") { "\r\n" } else { "\n" },
        }
    }

    pub(super) fn insert(&self, container: &Container, name: &str, member: &Value, is: Is) -> String {
        let inner = &self.text[container.open..container.close];
        let one_line = |spaces: bool| {
            let value = compact(member, spaces);
            if name.is_empty() {
                value
            } else {
                format!("{}: {value}", Value::from(name))
            }
        };
        let Some((_, end)) = container.members.last().copied() else {
            if !inner.contains('\n') {
                return self.splice(&[(container.close, container.close, &one_line(is == Is::New))]);
            }
            let at = container.open + inner.trim_end().len();
            let indent = format!("{}{}", line_indent(self.text, container.open), self.unit);
            return self.splice(&[(at, at, &self.on_a_line(&indent, name, member))]);
        };
        if !inner.contains('\n') {
            return self.splice(&[(end, end, &format!(", {}", one_line(is == Is::New)))]);
        }
        let last = container.members.last().map_or(end, |(start, _)| *start);
        let indent = own_line(self.text, last).map_or_else(
            || format!("{}{}", line_indent(self.text, container.open), self.unit),
            str::to_owned,
        );
        let line = self.on_a_line(&indent, name, member);
        match comma(self.text, end, container.close) {
            Some(comma) => {
                let at = after_comments(self.text, comma + 1, container.close);
                self.splice(&[(at, at, &format!("{line},"))])
            }
            None => {
                let at = after_comments(self.text, end, container.close);
                self.splice(&[(end, end, ","), (at, at, &line)])
            }
        }
    }

    fn on_a_line(&self, indent: &str, name: &str, member: &Value) -> String {
        let value = pretty(member, indent, &self.unit, self.line_end);
        let name = if name.is_empty() {
            String::new()
        } else {
            format!("{}: ", Value::from(name))
        };
        format!("{}{indent}{name}{value}", self.line_end)
    }

    pub(super) fn replace(&self, container: &Container, found: &ObjectProp<'_>, member: &Value) -> String {
        let range = found.value.range();
        let value = if self.text[container.open..container.close].contains('\n') {
            pretty(
                member,
                line_indent(self.text, found.range.start),
                &self.unit,
                self.line_end,
            )
        } else {
            compact(member, false)
        };
        self.splice(&[(range.start, range.end, &value)])
    }

    pub(super) fn cut(&self, container: &Container, index: usize) -> String {
        let (start, end) = container.members[index];
        let text = self.text;
        let after = comma(text, end, container.close);
        let is_last = index + 1 == container.members.len();
        if own_line(text, start).is_some() {
            let from = line_start(text, start);
            return match (
                after,
                index.checked_sub(1).map(|before| container.members[before].1),
            ) {
                (Some(comma), _) => self.splice(&[(from, comma + 1, "")]),
                (None, Some(before)) => match comma(text, before, start) {
                    Some(comma) => self.splice(&[(comma, comma + 1, ""), (from, end, "")]),
                    None => self.splice(&[(from, end, "")]),
                },
                (None, None) => self.splice(&[(from, end, "")]),
            };
        }
        let before = index
            .checked_sub(1)
            .and_then(|before| comma(text, container.members[before].1, start));
        match (before, after) {
            (Some(comma), _) if is_last && text[comma + 1..start].trim().is_empty() => {
                self.splice(&[(comma, end, "")])
            }
            (_, Some(comma)) => {
                let blank = text[comma + 1..container.close].len()
                    - text[comma + 1..container.close]
                        .trim_start_matches([' ', '\t'])
                        .len();
                self.splice(&[(start, comma + 1 + blank, "")])
            }
            (Some(comma), None) => self.splice(&[(comma, comma + 1, ""), (start, end, "")]),
            (None, None) => self.splice(&[(start, end, "")]),
        }
    }

    /// Replaces ranges, which must be in order.
    fn splice(&self, ranges: &[(usize, usize, &str)]) -> String {
        let mut spliced = String::with_capacity(self.text.len());
        let mut at = 0;
        for (start, end, with) in ranges {
            spliced.push_str(&self.text[at..*start]);
            spliced.push_str(with);
            at = *end;
        }
        spliced + &self.text[at..]
    }
}

/// Start of the line break before a position.
fn line_start(text: &str, at: usize) -> usize {
    let line = text[..at].rfind('\n').unwrap_or_default();
    if text[..line].ends_with('\r') {
        line - 1
    } else {
        line
    }
}

fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |line| line + 1)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Indentation of a position, if nothing precedes it on its line.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let begins = text[..at].rfind('\n')? + 1;
    text[begins..at]
        .trim_matches([' ', '\t'])
        .is_empty()
        .then(|| &text[begins..at])
}

/// Comma after a position, skipping blanks and comments.
fn comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    while at < to {
        let rest = &text[at..to];
        if rest.starts_with("//") {
            at += rest.find('\n')?;
        } else if rest.starts_with("/*") {
            at += rest.find("*/")? + 2;
        } else if rest.starts_with(',') {
            return Some(at);
        } else {
            at += rest.chars().next().filter(|c| c.is_whitespace())?.len_utf8();
        }
    }
    None
}

/// End of the comments that follow a position on its line.
fn after_comments(text: &str, from: usize, to: usize) -> usize {
    let (mut at, mut end) = (from, from);
    while at < to {
        let rest = &text[at..to];
        if rest.starts_with("//") {
            let line = rest.find('\n').unwrap_or(rest.len());
            return at + rest[..line].trim_end_matches('\r').len();
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |found| found + 2);
            end = at;
        } else if rest.starts_with([' ', '\t']) {
            at += 1;
        } else {
            break;
        }
    }
    end
}

/// JSON on one line. `spaces` inside the outer braces mark an object that was created for one member.
fn compact(value: &Value, spaces: bool) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Object(map) => {
            let members = list(
                map.iter()
                    .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), compact(value, false)))
                    .collect(),
            );
            if spaces {
                format!("{{ {members} }}")
            } else {
                format!("{{{members}}}")
            }
        }
        Value::Array(items) if spaces => format!(
            "[ {} ]",
            list(items.iter().map(|item| compact(item, false)).collect())
        ),
        Value::Array(items) => format!(
            "[{}]",
            list(items.iter().map(|item| compact(item, false)).collect())
        ),
        other => other.to_string(),
    }
}

/// JSON on several lines. Lists of plain values stay on one line.
pub(super) fn pretty(value: &Value, indent: &str, unit: &str, line_end: &str) -> String {
    let inner = format!("{indent}{unit}");
    let lines = |open: char, members: Vec<String>, close: char| {
        let members: Vec<String> = members
            .into_iter()
            .map(|member| format!("{line_end}{inner}{member}"))
            .collect();
        format!("{open}{}{line_end}{indent}{close}", members.join(","))
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            let member = |(key, value): (&String, &Value)| {
                format!(
                    "{}: {}",
                    Value::from(key.as_str()),
                    pretty(value, &inner, unit, line_end)
                )
            };
            lines('{', map.iter().map(member).collect(), '}')
        }
        Value::Array(items) if items.iter().any(Value::is_object) => lines(
            '[',
            items
                .iter()
                .map(|item| pretty(item, &inner, unit, line_end))
                .collect(),
            ']',
        ),
        other => compact(other, false),
    }
}
