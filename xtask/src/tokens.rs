//! Words and symbols of Rust sources, for the tests that read the project's own source.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::root;

/// Paths of all files in version control whose names end with a text, relative to the workspace.
pub(crate) fn tracked(end: &str) -> Vec<String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z"]).current_dir(root());
    let output = git.output().unwrap_or_else(|err| panic!("cannot run git: {err}"));
    let listed = String::from_utf8_lossy(&output.stdout);
    let files = listed.split('\0').filter(|path| path.ends_with(end));
    // Without those that are deleted but not committed.
    let files: Vec<String> = files
        .filter(|path| root().join(path).exists())
        .map(str::to_owned)
        .collect();
    assert!(!files.is_empty(), "git lists no files that end with {end}");
    files
}

/// Text of a file.
#[allow(clippy::disallowed_methods, reason = "tests read the project's source")]
pub(crate) fn text_of(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|err| panic!("{}: {err}", file.display()))
}

/// Files of a crate that are built outside tests, each with its code. `root` is the crate's root file.
pub(crate) fn files_of_crate(root: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let mut files = Vec::new();
    collect(root, root.parent().unwrap_or(root), &mut files);
    files
}

/// Collects a file and the files of its modules, which are in a folder.
fn collect(file: &Path, folder: &Path, files: &mut Vec<(PathBuf, Vec<String>)>) {
    let code = code(&text_of(file));
    for module in modules(&code) {
        let below = folder.join(module);
        let beside = below.with_extension("rs");
        let child = if beside.exists() {
            beside
        } else {
            below.join("mod.rs")
        };
        collect(&child, &below, files);
    }
    files.push((file.to_owned(), code));
}

/// Paths of the declared modules that have their own files.
fn modules(code: &[String]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // Open braces, with the names of those that are modules.
    let mut open: Vec<&str> = Vec::new();
    for at in 0..code.len() {
        let before = at
            .checked_sub(2)
            .map(|before| [code[before].as_str(), code[before + 1].as_str()]);
        match (code[at].as_str(), before) {
            ("{", Some(["mod", name])) => open.push(name),
            ("{", _) => open.push(""),
            ("}", _) => drop(open.pop()),
            (";", Some(["mod", name])) => {
                found.push(open.iter().copied().chain([name]).collect());
            }
            _ => {}
        }
    }
    found
}

/// Tokens of a source without the items of tests.
pub(crate) fn code(source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let mut code = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].iter().take(OF_TESTS.len()).eq(OF_TESTS) {
            at += OF_TESTS.len() + length_of_item(&tokens[at + OF_TESTS.len()..]);
        } else {
            code.push(tokens[at].clone());
            at += 1;
        }
    }
    code
}

/// Attribute of an item that is built only in tests.
const OF_TESTS: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// Contents of the attributes.
pub(crate) fn attributes(tokens: &[String]) -> impl Iterator<Item = &[String]> {
    tokens.iter().enumerate().filter_map(|(at, token)| {
        let is_inner = tokens.get(at + 1).is_some_and(|next| next == "!");
        let rest = tokens.get(at + 1 + usize::from(is_inner)..)?;
        if token != "#" || rest.first()? != "[" {
            return None;
        }
        let mut depth = 0_usize;
        let end = rest.iter().position(|token| {
            match token.as_str() {
                "[" => depth += 1,
                "]" => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        Some(&rest[1..end?]).filter(|content| !content.is_empty())
    })
}

/// Content of a token that is a string.
pub(crate) fn string(token: &str) -> Option<&str> {
    let quoted = token.trim_start_matches(['b', 'r']).trim_matches('#');
    quoted.strip_prefix('"')?.strip_suffix('"')
}

/// Number of tokens of an item, which ends with a semicolon or with its body's closing brace.
fn length_of_item(tokens: &[String]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            // The end of what contains the item.
            "}" | ")" | "]" if depth == 0 => return at,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 && token == "}" {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Words, symbols and strings of a source, without comments and characters.
pub(crate) fn tokens(source: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = raw_text(rest) {
            tokens.push(rest[..length].to_owned());
            length
        } else if first == '"' {
            let length = text(rest);
            tokens.push(rest[..length].to_owned());
            length
        } else if is_raw_name(rest) {
            "r#".len()
        } else if first == '\'' {
            character(rest)
        } else if first.is_alphanumeric() || first == '_' {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Length of a block comment at the beginning, including the comments in it.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// True if a name such as `r#use` is at the beginning.
fn is_raw_name(rest: &str) -> bool {
    let name = rest.strip_prefix("r#").and_then(|name| name.chars().next());
    name.is_some_and(|first| first.is_alphabetic() || first == '_')
}

/// Length of a string at the beginning, including quotes.
fn text(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Length of a raw string at the beginning, if there is one.
fn raw_text(rest: &str) -> Option<usize> {
    let begins = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = begins.len() - begins.trim_start_matches('#').len();
    let content = begins[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let before = rest.len() - content.len();
    Some(
        content
            .find(&end)
            .map_or(rest.len(), |at| before + at + end.len()),
    )
}

/// Length of a character literal at the beginning, or of a lifetime's quote.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            rest[after..].find('\'').map_or(rest.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_tests_are_no_code() {
        let source =
            "#[cfg(test)] mod a; mod b; struct C { #[cfg(test)] d: u8 } #[cfg(test)] fn e() {} fn g() {}";
        assert_eq!(code(source).concat(), "modb;structC{}fng(){}");
        assert_eq!(modules(&code(source)), [PathBuf::from("b")]);
        let inline = modules(&code("mod a { fn b() {} mod c; } mod d { } mod e;"));
        assert_eq!(inline, [PathBuf::from("a/c"), PathBuf::from("e")]);
    }

    #[test]
    fn comments_are_no_tokens_and_strings_are() {
        let found = tokens("/* a /* b */ c */ d // e\n \"f\" r#\"g\"# r#h '\"' b\"i\"");
        assert_eq!(found, ["d", "\"f\"", "r#\"g\"#", "h", "b", "\"i\""]);
        let strings: Vec<&str> = found.iter().filter_map(|token| string(token)).collect();
        assert_eq!(strings, ["f", "g", "i"]);
    }

    #[test]
    fn attributes_end_with_their_bracket() {
        let found = tokens("#[a(b[0])] fn c() {} #![d] e[1]");
        let found: Vec<String> = attributes(&found).map(<[String]>::concat).collect();
        assert_eq!(found, ["a(b[0])", "d"]);
    }
}
