//! Messages of Python's assertions: those of `unittest`, and those that pytest explains.

use super::values::{end, is_member_made, is_value, split, unwrapped};
use super::{ACTUAL, MAX_KEPT};
use crate::source::Made;

/// Deepest nesting of an expression that is read.
const MAX_DEPTH: usize = 8;
/// Operators of an assertion that pytest explains.
const OPERATORS: &[&str] = &[
    " == ", " != ", " is not ", " is ", " not in ", " in ", " <= ", " >= ", " < ", " > ",
];
/// Words between the two values of an assertion of `unittest`. Before the first of them is what was made.
const COMPARISONS: &[&str] = &[
    " != ",
    " == ",
    " not less than or equal to ",
    " not less than ",
    " not greater than or equal to ",
    " not greater than ",
    " not found in ",
    " unexpectedly found in ",
    " is not an instance of ",
    " is not ",
    " is an instance of ",
];
/// Functions of the language, whose arguments are as much made as their results.
const BUILTINS: &[&str] = &[
    "len",
    "sum",
    "sorted",
    "set",
    "list",
    "dict",
    "tuple",
    "isinstance",
    "issubclass",
    "hasattr",
    "type",
    "abs",
    "max",
    "min",
    "str",
    "repr",
    "any",
    "all",
    "round",
    "int",
    "float",
    "bool",
    "callable",
];
/// First lines of messages of `unittest` after which only values follow.
const LIST_MESSAGES: &[&str] = &[
    "Items in the first set but not the second:",
    "Items in the second set but not the first:",
    "Element counts were not equal:",
];

/// A message of an `AssertionError`, without the values that were made. `None` if no assertion of Python wrote it.
pub(super) fn without_actual(lines: &[&str], of: Made) -> Option<Vec<String>> {
    if let Some(at) = lines.iter().position(|line| line.starts_with("assert ")) {
        // Before it is the message of the test's author.
        let mut kept: Vec<String> = lines
            .iter()
            .take(at.min(MAX_KEPT))
            .map(|line| super::line(line, Made::Unknown))
            .collect();
        let reasons = lines.iter().skip(at + 1).filter_map(|line| reason(line));
        let reasons: Vec<&str> = reasons.take(MAX_KEPT).collect();
        let made: Vec<&str> = reasons
            .iter()
            .filter_map(|reason| split(reason, &[" = "]))
            .map(|(made, _, _)| made.trim())
            .collect();
        let asserted = lines.get(at).and_then(|line| line.strip_prefix("assert "));
        let asserted = expression(asserted.unwrap_or_default(), (&made, of), 0);
        kept.push(format!("assert {asserted}"));
        kept.extend(reasons.iter().map(|reason| source(reason)));
        return Some(kept);
    }
    let first = lines.first()?;
    if LIST_MESSAGES.contains(first) {
        return Some(vec![match first.starts_with("Items") {
            true => "other items".to_owned(),
            false => (*first).to_owned(),
        }]);
    }
    // What follows is the difference between the two values.
    compared(first, of).map(|line| vec![line])
}

/// Content of a line such as `+  where 2 = add(1, 1)`, without the mark.
fn reason(line: &str) -> Option<&str> {
    let line = line.strip_prefix('+')?.trim_start();
    line.strip_prefix("where ").or_else(|| line.strip_prefix("and "))
}

/// `6 == 5` as `<actual> == 5`. `made` are values that pytest says the origin of, and what the source says.
fn expression(text: &str, made: (&[&str], Made), depth: usize) -> String {
    if depth > MAX_DEPTH {
        return ACTUAL.to_owned();
    }
    if let Some(mut rest) = unwrapped(text) {
        let mut parts = String::new();
        while let Some((left, word, right)) = split(rest, &[" and ", " or "]) {
            parts += &expression(left, made, depth + 1);
            parts += word;
            rest = right;
        }
        return parts + &expression(rest, made, depth + 1);
    }
    if let Some(inner) = text.strip_prefix("not ") {
        return format!("not {}", expression(inner, made, depth + 1));
    }
    match split(text, OPERATORS) {
        Some(compared) => comparison(compared, made),
        None => ACTUAL.to_owned(),
    }
}

fn comparison((left, operator, right): (&str, &str, &str), (origins, made): (&[&str], Made)) -> String {
    let is_made = |value: &str| origins.contains(&value.trim());
    let is_right_made = match operator {
        _ if made == Made::Right => true,
        _ if made == Made::Left => false,
        _ if made == Made::Both => return format!("{ACTUAL}{operator}{ACTUAL}"),
        " in " | " not in " => !is_made(left) && (is_made(right) || !is_member_made(right)),
        _ => !is_made(left) && is_made(right),
    };
    match is_right_made {
        true => format!("{left}{operator}{ACTUAL}"),
        false => format!("{ACTUAL}{operator}{right}"),
    }
}

/// `2 = len([1, 1])` as `<actual> = len(<actual>)`: the expression that made a value.
fn source(reason: &str) -> String {
    let Some((_, _, source)) = split(reason, &[" = "]) else {
        return ACTUAL.to_owned();
    };
    let source = source.trim();
    let name = source.split_once('(').map_or("", |(name, _)| name);
    if BUILTINS.contains(&name) {
        return format!("{ACTUAL} = {name}({ACTUAL})");
    }
    // `'apple'.startswith`, `<Response [404]>.status_code`, `<built-in method startswith of str object>('q')`.
    let is_object = source.starts_with(|c: char| c.is_ascii_digit() || "'\"([{<-".contains(c));
    let rest = match source.strip_prefix('<').and_then(|rest| rest.rsplit_once('>')) {
        Some((_, rest)) => rest,
        None if is_object => source.get(end(source, &['.'])..).unwrap_or_default(),
        None => return format!("{ACTUAL} = {source}"),
    };
    format!("{ACTUAL} = {ACTUAL}{rest}")
}

/// `6 != 5` as `<actual> != 5`, if the line compares values.
fn compared(line: &str, made: Made) -> Option<String> {
    let (title, text) = match line.split_once(": ") {
        Some((title, text)) if title.ends_with(" differ") || title.starts_with("Regex ") => (title, text),
        _ => ("", line),
    };
    if title == "Regex matched" {
        let (_, _, found) = split(text, &[" matches "])?;
        let pattern = split(found, &[" in "]).map_or(found, |(pattern, _, _)| pattern);
        return Some(format!("{title}: {ACTUAL} matches {pattern}"));
    }
    let (left, words, right) = split(text, COMPARISONS)?;
    if words.contains(char::is_alphabetic) && !is_value(left) {
        return None;
    }
    // Only the right value can have a message of the test's author behind it.
    let message = right.split_once(" : ").map_or("", |(_, message)| message);
    let is_made_left = match words {
        _ if made == Made::Both => {
            return Some(format!("{title}{ACTUAL}{words}{ACTUAL}{}", super::got(message)));
        }
        _ if made == Made::Right => {
            let left = if left.contains(" chars]") { "<long>" } else { left };
            return Some(format!("{title}{left}{words}{ACTUAL}{}", super::got(message)));
        }
        _ if made == Made::Left && title.is_empty() => true,
        " not found in " | " unexpectedly found in " => title.is_empty() && is_member_made(right),
        _ => true,
    };
    Some(match is_made_left {
        true => format!("{title}{ACTUAL}{words}{}", expected(right)),
        false => format!("{title}{left}{words}{ACTUAL}"),
    })
}

/// The right value, with the words behind it.
fn expected(right: &str) -> String {
    // How much of a long value is shown depends on both.
    if right.contains(" chars]") {
        return "<long>".to_owned();
    }
    let difference = right
        .split_once(" difference)")
        .and_then(|(before, after)| Some((before.rsplit_once(" (")?.0, after)));
    super::got(&difference.map_or_else(|| right.to_owned(), |(before, after)| format!("{before}{after}")))
}
