//! Edits of JSON with comments that leave all other bytes unchanged.
//!
//! A member is inserted into the text and cut out again. The style follows the text: a table on one line stays on one
//! line, and indentation, line endings and trailing commas are kept.

mod text;

use jsonc_parser::ast::{self, ObjectProp};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use text::{Container, INDENT, Is, Text, pretty};

/// Comments and trailing commas are accepted, and no other extensions of JSON.
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
/// Value of a text. `null` if the text has no content.
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
                // Parsers differ in which of two duplicates they use.
                if map.insert(name, to_value(&property.value)?).is_some() {
                    return Err(format!("`{}` occurs twice", property.name.as_str()));
                }
            }
            Value::Object(map)
        }
    })
}

/// Sets a member of the object at `path`, or appends to a list if the name is empty. Missing objects and lists are
/// created.
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

/// Removes a member of the object or list at `path`. Also removes the object or list if it was created for the member.
/// `which` finds the member.
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
        // The parent's bytes before this member are unchanged.
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
        (Some(_), Some(_)) => Err(format!("`{name}` occurs twice")),
        (first, _) => Ok(first),
    }
}

/// Members with their names. Elements of lists have none.
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

/// Returns whether an empty table was created by [`Text::insert`]: on its own lines, or with two spaces on one line.
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
