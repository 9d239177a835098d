//! Edits of YAML that leave all other bytes unchanged, for the plain block style that clients write.
//!
//! No YAML parser keeps comments. An entry is therefore inserted and removed as lines. Text that is not in block style
//! is left unchanged with an error, so that the user can paste the entry.

use serde_json::{Map, Value};

/// Spaces per level, if the text does not show any.
const INDENT: usize = 2;

/// Value of an entry. `None` if there is no entry.
pub(super) fn found(text: &str, table: &str, name: &str) -> Result<Option<Value>, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(block) = block(&lines, table)? else {
        return Ok(None);
    };
    let Some((from, to)) = entry(&lines, &block, name)? else {
        return Ok(None);
    };
    let inside: Vec<&str> = lines[from + 1..to]
        .iter()
        .copied()
        .filter(|line| !is_blank(line))
        .collect();
    node(&inside).map(Some)
}

/// Inserts an entry at the start of a table.
pub(super) fn set(
    text: &str,
    table: &str,
    name: &str,
    member: &Map<String, Value>,
) -> Result<String, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(found) = block(&lines, table)? else {
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        return Ok(format!("{text}{gap}{table}:\n{}", rendered(name, member, INDENT)));
    };
    let (from, to) = entry(&lines, &found, name)?.unwrap_or((found.head + 1, found.head + 1));
    let gap = if lines[from - 1].ends_with('\n') { "" } else { "\n" };
    Ok(format!(
        "{}{gap}{}{}",
        lines[..from].concat(),
        rendered(name, member, found.indent),
        lines[to..].concat()
    ))
}

/// Removes an entry from a table, and the table if it has nothing else.
pub(super) fn cut(text: &str, table: &str, name: &str) -> Result<Option<String>, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(found) = block(&lines, table)? else {
        return Ok(None);
    };
    let Some((from, to)) = entry(&lines, &found, name)? else {
        return Ok(None);
    };
    let is_empty =
        (found.head + 1..found.end).all(|line| (from..to).contains(&line) || lines[line].trim().is_empty());
    let from = if is_empty { found.head } else { from };
    Ok(Some(lines[..from].concat() + &lines[to..].concat()))
}

/// A complete file with one server, as Continue requires.
pub(super) fn own_file(servers: &str, name: &str, member: &Map<String, Value>) -> String {
    let mut text = format!("name: {name}\nversion: 0.0.1\nschema: v1\n{servers}:\n");
    for (at, line) in fields(member, 4).lines().enumerate() {
        let line = if at == 0 {
            line.replacen("    ", "  - ", 1)
        } else {
            line.to_owned()
        };
        text += &format!("{line}\n");
    }
    text
}

/// Server in such a file.
pub(super) fn of_own_file(text: &str, servers: &str) -> Result<Option<Value>, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(found) = block(&lines, servers)? else {
        return Ok(None);
    };
    let inside: Vec<&str> = lines[found.head + 1..found.end]
        .iter()
        .copied()
        .filter(|line| !is_blank(line))
        .collect();
    match node(&inside)? {
        Value::Array(mut list) if list.len() == 1 => Ok(list.pop()),
        _ => Err(format!("`{servers}` is not a list of one server")),
    }
}

/// Returns whether a file has only the entry, without comments or further keys.
pub(super) fn is_own_file(text: &str, servers: &str) -> bool {
    let known = ["name", "version", "schema", servers];
    text.lines().all(|line| {
        let is_known = || known.iter().any(|name| key(line, name).is_some());
        !line.contains(" #")
            && !line.starts_with('#')
            && (line.is_empty() || line.starts_with(' ') || is_known())
    })
}

/// A top-level table: its first line, the line after it, and its members' indentation.
struct Block {
    head: usize,
    end: usize,
    indent: usize,
}

fn block(lines: &[&str], table: &str) -> Result<Option<Block>, String> {
    let mut head = None;
    for (at, line) in lines.iter().enumerate() {
        let is_marker = ["---", "...", "%", "{", "["]
            .iter()
            .any(|marker| line.starts_with(marker));
        if line.starts_with('\t') || (is_marker && at > 0) || line.starts_with(['{', '[', '%']) {
            return Err(format!("line {} is not in block style", at + 1));
        }
        let Some(rest) = key(line, table).filter(|_| indent(line) == 0) else {
            continue;
        };
        if !is_comment(rest) {
            return Err(format!("`{table}` is not in block style"));
        }
        if head.replace(at).is_some() {
            return Err(format!("`{table}` occurs twice"));
        }
    }
    let Some(head) = head else { return Ok(None) };
    let after = |line: &&str| is_blank(line) || indent(line) > 0 || line.starts_with('-');
    let mut end = head + 1 + lines[head + 1..].iter().take_while(|line| after(line)).count();
    // Top-level comments belong to the following content.
    while end > head + 1 && is_blank(lines[end - 1]) && indent(lines[end - 1]) == 0 {
        end -= 1;
    }
    let first = lines[head + 1..end].iter().find(|line| !is_blank(line));
    Ok(Some(Block {
        head,
        end,
        indent: first.map_or(INDENT, |line| indent(line)),
    }))
}

/// Lines of an entry of a block.
fn entry(lines: &[&str], block: &Block, name: &str) -> Result<Option<(usize, usize)>, String> {
    let is_key = |line: &&str| indent(line) == block.indent && key(line.trim_start(), name).is_some();
    let Some(from) = (block.head + 1..block.end).find(|at| is_key(&lines[*at])) else {
        return Ok(None);
    };
    if !is_comment(key(lines[from].trim_start(), name).unwrap_or_default()) {
        return Err(format!("`{name}` is not in block style"));
    }
    let mut to = from + 1;
    while to < block.end && (is_blank(lines[to]) || indent(lines[to]) > block.indent) {
        to += 1;
    }
    while to > from + 1 && is_blank(lines[to - 1]) {
        to -= 1;
    }
    if (to..block.end).any(|at| is_key(&lines[at])) {
        return Err(format!("`{name}` occurs twice"));
    }
    Ok(Some((from, to)))
}

/// Rest of a line after `name:`, however the name is quoted.
fn key<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let forms = [name.to_owned(), format!("\"{name}\""), format!("'{name}'")];
    let rest = forms.iter().find_map(|form| line.strip_prefix(form.as_str()))?;
    rest.trim_start().strip_prefix(':')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    is_comment(line)
}

fn is_comment(text: &str) -> bool {
    text.trim().is_empty() || text.trim().starts_with('#')
}

fn rendered(name: &str, member: &Map<String, Value>, indent: usize) -> String {
    format!(
        "{}{name}:\n{}",
        " ".repeat(indent),
        fields(member, indent + INDENT)
    )
}

/// Fields as lines. Texts and lists are written as JSON, which YAML contains.
fn fields(member: &Map<String, Value>, indent: usize) -> String {
    let mut text = String::new();
    for (key, value) in member {
        let start = format!("{}{key}:", " ".repeat(indent));
        match value {
            Value::Object(inner) => text += &format!("{start}\n{}", fields(inner, indent + INDENT)),
            other => text += &format!("{start} {other}\n"),
        }
    }
    text
}

/// Parses lines in block style that are indented at least as much as the first.
fn node(lines: &[&str]) -> Result<Value, String> {
    let Some(first) = lines.first() else {
        return Ok(Value::Null);
    };
    let level = indent(first);
    let mut map = Map::new();
    let mut list = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if indent(line) != level {
            return Err(format!("`{}` is not in plain block style", line.trim()));
        }
        let is_item = line.trim_start().starts_with("- ");
        let is_inner = |line: &&&str| {
            indent(line) > level || (!is_item && indent(line) == level && line.trim_start().starts_with("- "))
        };
        let inner = lines[at + 1..].iter().take_while(is_inner).count();
        let below = &lines[at + 1..at + 1 + inner];
        at += 1 + inner;
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            let is_plain = key_of(item).is_none() || item.starts_with(['"', '\'', '[']);
            if below.is_empty() && is_plain {
                list.push(scalar(item)?);
                continue;
            }
            let head = format!("{}{item}", " ".repeat(level + 2));
            let with_head: Vec<&str> = std::iter::once(head.as_str())
                .chain(below.iter().copied())
                .collect();
            list.push(node(&with_head)?);
            continue;
        }
        let (name, rest) = key_of(line.trim()).ok_or_else(|| format!("`{}` has no key", line.trim()))?;
        let value = if is_comment(rest) {
            node(below)?
        } else {
            scalar(rest)?
        };
        map.insert(name.trim_matches(['"', '\'']).to_owned(), value);
    }
    match (map.is_empty(), list.is_empty()) {
        (true, false) => Ok(Value::Array(list)),
        (false, true) => Ok(Value::Object(map)),
        _ => Err("lists and keys are mixed".to_owned()),
    }
}

fn key_of(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end();
    line.split_once(": ")
        .or_else(|| line.strip_suffix(':').map(|key| (key, "")))
}

fn scalar(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    if let Some(quoted) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return Ok(Value::String(quoted.replace("''", "'")));
    }
    if text.starts_with(['"', '\'', '[', '{', '&', '*', '!', '|', '>', '%', '@', '`']) {
        return Err(format!("`{text}` is not in plain block style"));
    }
    let bare = text.split(" #").next().unwrap_or_default().trim();
    Ok(serde_json::from_str(bare).unwrap_or_else(|_| Value::String(bare.to_owned())))
}
