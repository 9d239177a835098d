//! Edits of JSON with comments that leave every other byte as it is.
//!
//! A member is spliced into the text and cut out of it again. Style follows the text: a table on one line stays on
//! one line, and indentation, line ends and trailing commas are those that are there.

use jsonc_parser::ast::{self, ObjectProp};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

/// Comments and trailing commas, and nothing else that is not JSON.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};
/// Spaces of a level, where the text has none to follow.
const INDENT: &str = "  ";

/// Value of a text; `null` for one without content.
pub(super) fn value(text: &str) -> Result<Value, String> {
    match parse(text)? {
        None => Ok(Value::Null),
        Some(root) => to_value(&root),
    }
}

fn parse(text: &str) -> Result<Option<ast::Value<'_>>, String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|err| err.to_string())?;
    Ok(parsed.value)
}

fn to_value(node: &ast::Value<'_>) -> Result<Value, String> {
    Ok(match node {
        ast::Value::StringLit(text) => Value::String(text.value.to_string()),
        ast::Value::NumberLit(number) => serde_json::from_str(number.value).map_err(|err| err.to_string())?,
        ast::Value::BooleanLit(flag) => Value::Bool(flag.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => {
            Value::Array(array.elements.iter().map(to_value).collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => {
            let mut map = Map::new();
            for property in &object.properties {
                let name = property.name.as_str().to_owned();
                // Readers differ in which of the two they take.
                if map.insert(name, to_value(&property.value)?).is_some() {
                    return Err(format!("`{}` is there twice", property.name.as_str()));
                }
            }
            Value::Object(map)
        }
    })
}

/// Sets a member of the object that `path` leads to, or appends to a list (with an empty name). Objects and lists that
/// are missing are made.
pub(super) fn set(text: &str, path: &[&str], name: &str, member: &Value) -> Result<String, String> {
    let Some(root) = parse(text)? else {
        let whole = path
            .iter()
            .rev()
            .fold(single(name, member), |inner, key| single(key, &inner));
        let comments = text.trim_end();
        let line_end = if comments.is_empty() { "" } else { "\n" };
        return Ok(format!(
            "{comments}{line_end}{}\n",
            pretty(&whole, "", INDENT, "\n")
        ));
    };
    let text = Text::new(text, &root);
    let mut container = Container::of(&root).ok_or("the file is not an object")?;
    let mut node = &root;
    for (depth, key) in path.iter().enumerate() {
        match property(node, key)? {
            Some(found) => {
                node = &found.value;
                container = Container::of(node).ok_or_else(|| format!("`{key}` is not an object"))?;
            }
            None => {
                let rest = &path[depth + 1..];
                let inner = rest
                    .iter()
                    .rev()
                    .fold(single(name, member), |inner, key| single(key, &inner));
                return Ok(text.insert(&container, key, &inner, Is::New));
            }
        }
    }
    match property(node, name)? {
        Some(found) if !name.is_empty() => Ok(text.replace(&container, found, member)),
        _ => Ok(text.insert(&container, name, member, Is::There)),
    }
}

/// Takes out a member of the object or list that `path` leads to, and the object or list with it where it was made
/// for the member. `which` finds the member.
pub(super) fn cut(
    text: &str,
    path: &[&str],
    which: impl Fn(&str, &Value) -> bool,
) -> Result<Option<String>, String> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let mut node = &root;
    let mut parents = Vec::new();
    for key in path {
        let Some(found) = property(node, key)? else {
            return Ok(None);
        };
        parents.push((
            Container::of(node).ok_or("the file is not an object")?,
            found.range.start,
        ));
        node = &found.value;
    }
    let container = Container::of(node).ok_or("the servers are not an object")?;
    let mut index = None;
    for (at, (name, value)) in names(node)?.iter().enumerate() {
        if which(name, value) {
            index = Some(at);
        }
    }
    let Some(index) = index else { return Ok(None) };
    let mut left = Text::new(text, &root).cut(&container, index);
    let mut was_last = container.members.len() == 1;
    for (parent, start) in parents.into_iter().rev() {
        // The parent's own bytes up to this member are as they were.
        let at = parent
            .members
            .iter()
            .position(|(from, _)| *from == start)
            .unwrap_or_default();
        if !was_last || !is_made_for_one(&left, start)? {
            break;
        }
        let Some(root) = parse(&left)? else { break };
        let Some(again) = container_at(&root, parent.open) else {
            break;
        };
        was_last = again.members.len() == 1;
        left = Text::new(&left, &root).cut(&again, at);
    }
    Ok(Some(left))
}

fn single(name: &str, member: &Value) -> Value {
    if name.is_empty() {
        return Value::Array(vec![member.clone()]);
    }
    Value::Object(Map::from_iter([(name.to_owned(), member.clone())]))
}

fn property<'a, 'b>(node: &'b ast::Value<'a>, name: &str) -> Result<Option<&'b ObjectProp<'a>>, String> {
    let Some(object) = node.as_object() else {
        return Ok(None);
    };
    let mut found = object
        .properties
        .iter()
        .filter(|property| property.name.as_str() == name);
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(format!("`{name}` is there twice")),
        (first, _) => Ok(first),
    }
}

/// Members with their names, which elements of lists do not have.
fn names(node: &ast::Value<'_>) -> Result<Vec<(String, Value)>, String> {
    match node {
        ast::Value::Object(object) => object
            .properties
            .iter()
            .map(|property| Ok((property.name.as_str().to_owned(), to_value(&property.value)?)))
            .collect(),
        ast::Value::Array(array) => array
            .elements
            .iter()
            .map(|element| Ok((String::new(), to_value(element)?)))
            .collect(),
        _ => Ok(Vec::new()),
    }
}

/// An emptied table that [`Text::insert`] made: on lines of its own, or with the two spaces of one on one line.
fn is_made_for_one(text: &str, start: usize) -> Result<bool, String> {
    let Some(root) = parse(text)? else {
        return Ok(false);
    };
    let Some(found) = property_at(&root, start) else {
        return Ok(false);
    };
    let Some(container) = Container::of(&found.value) else {
        return Ok(false);
    };
    let inner = &text[container.open..container.close];
    Ok(container.members.is_empty() && inner.trim().is_empty() && (inner == "  " || inner.contains('\n')))
}

fn property_at<'a, 'b>(node: &'b ast::Value<'a>, start: usize) -> Option<&'b ObjectProp<'a>> {
    let properties = &node.as_object()?.properties;
    properties.iter().find_map(|property| {
        if property.range.start == start {
            return Some(property);
        }
        property_at(&property.value, start)
    })
}

fn container_at(node: &ast::Value<'_>, open: usize) -> Option<Container> {
    let container = Container::of(node)?;
    if container.open == open {
        return Some(container);
    }
    let properties = &node.as_object()?.properties;
    properties
        .iter()
        .find_map(|property| container_at(&property.value, open))
}

/// An object or list: where its inside begins and ends, and where its members are.
struct Container {
    open: usize,
    close: usize,
    members: Vec<(usize, usize)>,
}

impl Container {
    fn of(node: &ast::Value<'_>) -> Option<Container> {
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

/// Origin of a table: made for a member, or in the file before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    New,
    There,
}

/// A text with its style.
struct Text<'a> {
    text: &'a str,
    unit: String,
    line_end: &'static str,
}

impl<'a> Text<'a> {
    fn new(text: &'a str, root: &ast::Value<'_>) -> Text<'a> {
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

    fn insert(&self, container: &Container, name: &str, member: &Value, is: Is) -> String {
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

    fn replace(&self, container: &Container, found: &ObjectProp<'_>, member: &Value) -> String {
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

    fn cut(&self, container: &Container, index: usize) -> String {
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

    /// Replaces ranges, which are in order.
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

/// Start of the line end before a position.
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

/// Indentation of a position that begins its line.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let begins = text[..at].rfind('\n')? + 1;
    text[begins..at]
        .trim_matches([' ', '\t'])
        .is_empty()
        .then(|| &text[begins..at])
}

/// The comma after a position, past blanks and comments.
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

/// JSON on one line. `spaces` within the outer braces mark an object that is made for one member.
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

/// JSON on lines of its own; lists of plain values stay on one.
fn pretty(value: &Value, indent: &str, unit: &str, line_end: &str) -> String {
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
