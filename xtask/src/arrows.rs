//! Arrows between the modules of a crate, read from its source: which uses which. Code of tests does not count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// Top-level modules of a crate and their arrows. The crate's root is none of them.
#[derive(Debug, Default)]
pub(crate) struct Arrows {
    /// Modules that have modules below them.
    folders: BTreeSet<String>,
    uses: BTreeMap<String, BTreeSet<String>>,
}

/// Facts about one file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    /// Modules that it declares and that have files of their own.
    modules: Vec<String>,
    /// First names of paths that begin at the crate's root.
    names: BTreeSet<String>,
    /// Modules of the names that it imports or passes on.
    imported: BTreeMap<String, String>,
}

impl Arrows {
    /// Arrows of the crate in a folder.
    pub(crate) fn of(src: &Path) -> Arrows {
        let root = read(&src.join("lib.rs"), 0);
        let mut arrows = Arrows::default();
        for module in &root.modules {
            let mut names = BTreeSet::new();
            if walk(src, module, 1, &mut names) {
                arrows.folders.insert(module.clone());
            }
            // A name of the root leads to the module that the root has it from.
            let own = |name: String| match root.modules.contains(&name) {
                true => Some(name),
                false => root.imported.get(&name).cloned(),
            };
            let used = names.into_iter().filter_map(own);
            let others = used.filter(|used| used != module && root.modules.contains(used));
            arrows.uses.insert(module.clone(), others.collect());
        }
        arrows
    }

    /// Folders that are part of a circle, each with the shortest one.
    pub(crate) fn circles(&self) -> BTreeMap<&str, String> {
        let circles = self.folders.iter().filter_map(|folder| {
            let circle = self.back_to(folder)?;
            Some((folder.as_str(), circle.join(" -> ")))
        });
        circles.collect()
    }

    /// The shortest way from a module back to itself.
    fn back_to(&self, module: &str) -> Option<Vec<&str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([self.uses.get_key_value(module)?.0.as_str()]);
        while let Some(at) = queue.pop_front() {
            for next in self.uses.get(at).into_iter().flatten() {
                if next == module {
                    let mut way = vec![next.as_str(), at];
                    while let Some(before) = way.last().and_then(|last| came_from.get(last)) {
                        way.push(before);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !came_from.contains_key(next.as_str()) {
                    came_from.insert(next, at);
                    queue.push_back(next);
                }
            }
        }
        None
    }
}

/// Collects the names that a module and those below it use. True if there are any below it.
fn walk(folder: &Path, module: &str, depth: usize, names: &mut BTreeSet<String>) -> bool {
    let below = folder.join(module);
    let file = folder.join(format!("{module}.rs"));
    let file = if file.exists() { file } else { below.join("mod.rs") };
    let found = read(&file, depth);
    names.extend(found.names);
    for module in &found.modules {
        walk(&below, module, depth + 1, names);
    }
    !found.modules.is_empty()
}

#[allow(clippy::disallowed_methods, reason = "the test reads the project's source")]
fn read(file: &Path, depth: usize) -> Read {
    let source = std::fs::read_to_string(file).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
    Read::of(&source, depth)
}

impl Read {
    /// Reads a file of a module at a depth, the crate's root being at none.
    fn of(source: &str, depth: usize) -> Read {
        let tokens = tokens(source);
        let mut read = Read::default();
        // Braces that are open, and whether each is a module's.
        let mut open: Vec<bool> = Vec::new();
        let mut at = 0;
        while let Some(rest) = tokens.get(at..).filter(|rest| !rest.is_empty()) {
            let words: Vec<&str> = rest.iter().take(8).map(String::as_str).collect();
            let is_module = |open: &Vec<bool>| open.iter().filter(|is_module| **is_module).count();
            match words.as_slice() {
                ["#", "[", "cfg", "(", "test", ")", "]", ..] => {
                    at += 7 + length_of_item(&tokens[at + 7..]);
                    continue;
                }
                ["mod", name, ";", ..] => read.modules.push((*name).to_owned()),
                ["mod", _, "{", ..] => {
                    open.push(true);
                    at += 3;
                    continue;
                }
                ["{", ..] => open.push(false),
                ["}", ..] => drop(open.pop()),
                ["use", ..] if depth == 0 => read.import(&tokens[at + 1..]),
                ["crate", "::", ..] => read.name(&tokens[at + 2..]),
                ["super", "::", ..] => {
                    let supers = rest.chunks(2).take_while(|pair| *pair == ["super", "::"]).count();
                    at += 2 * supers;
                    if supers == depth + is_module(&open) {
                        read.name(&tokens[at..]);
                    }
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        read
    }

    /// Notes the first names of what follows the root: one, or those of a list.
    fn name(&mut self, tokens: &[String]) {
        let names = firsts(tokens);
        self.names.extend(names.map(|(_, name)| name.to_owned()));
    }

    /// Notes from which module the root has the names of a `use`.
    fn import(&mut self, tokens: &[String]) {
        let end = tokens
            .iter()
            .position(|token| token == ";")
            .unwrap_or(tokens.len());
        let tree = &tokens[..end];
        let is_root = |token: &&String| matches!(token.as_str(), "crate" | "self" | "::");
        let skipped = tree.iter().take_while(is_root).count();
        let tree = &tree[skipped..];
        for (place, module) in firsts(tree) {
            let parts = tree[place..].iter().enumerate();
            // A list of modules goes on with the next.
            let mut depth = 0_usize;
            for (offset, part) in parts {
                match part.as_str() {
                    "{" => depth += 1,
                    "}" if depth == 0 => break,
                    "}" => depth -= 1,
                    "," if depth == 0 => break,
                    "::" | "," | "as" => {}
                    name => {
                        let next = tree.get(place + offset + 1).map(String::as_str);
                        if next != Some("::") && next != Some("as") {
                            self.imported.insert(name.to_owned(), module.to_owned());
                        }
                    }
                }
            }
        }
    }
}

/// Names that come first in a path, or in each path of a list, with their places.
fn firsts(tokens: &[String]) -> impl Iterator<Item = (usize, &str)> {
    let is_list = tokens.first().is_some_and(|token| token == "{");
    let (mut depth, mut begins, mut is_over) = (0_usize, !is_list, false);
    tokens.iter().enumerate().filter_map(move |(place, token)| {
        if is_over {
            return None;
        }
        match token.as_str() {
            "{" => {
                depth += 1;
                begins = depth == 1 && is_list;
                None
            }
            "}" => {
                depth = depth.saturating_sub(1);
                is_over = depth == 0;
                None
            }
            "," if depth == 1 => {
                begins = true;
                None
            }
            name if begins => {
                begins = false;
                is_over = !is_list;
                Some((place, name))
            }
            _ => None,
        }
    })
}

/// Number of tokens until an item ends: with a semicolon, or with the brace that closes its body.
fn length_of_item(tokens: &[String]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
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

/// Words and marks of a source, without comments, texts and characters.
fn tokens(source: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_text(rest) {
            length
        } else if first == '"' {
            text(rest)
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

/// Length of a text at the beginning, with its quotes.
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

/// Length of a raw text at the beginning, if there is one.
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

/// Length of a character at the beginning, or of the mark that a lifetime begins with.
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

    fn names(source: &str, depth: usize) -> Vec<String> {
        Read::of(source, depth).names.into_iter().collect()
    }

    #[test]
    fn paths_from_the_root_are_found_wherever_they_are() {
        let source = r##"
            //! Not crate::comment.
            use crate::a::{self, X};
            use crate::{b, c::{Y, Z}, d::W as V};
            use super::e::Q;
            fn f<'a>(x: &'a str) -> char { let _ = "crate::text"; let _ = r#"crate::"raw""#; crate::g::h(x); '"' }
            /* crate::block */ pub(crate) fn g() { super::super::too_high::x(); }
            mod inner { use super::super::i; use super::own; }
            #[cfg(test)]
            mod tests { use crate::only_tests; }
            #[cfg(test)]
            mod more_tests;
            mod below;
        "##;
        assert_eq!(names(source, 1), ["a", "b", "c", "d", "e", "g", "i"]);
        assert_eq!(Read::of(source, 1).modules, ["below"]);
        assert_eq!(names("use super::super::{a, b::C}; use super::d;", 2), ["a", "b"]);
    }

    #[test]
    fn names_of_the_root_lead_to_their_modules() {
        let read = Read::of(
            "pub use a::{B, c::{D, E as F}}; use crate::g; pub use {h::I, j::*};",
            0,
        );
        let imported: Vec<String> = read
            .imported
            .iter()
            .map(|(name, module)| format!("{name} {module}"))
            .collect();
        assert_eq!(imported, ["* j", "B a", "D a", "F a", "I h", "g g"]);
    }

    #[test]
    fn a_circle_is_shown_from_a_folder_back_to_itself() {
        let arrows = |folders: &[&str], uses: &[(&str, &[&str])]| Arrows {
            folders: folders.iter().map(|&name| name.to_owned()).collect(),
            uses: uses
                .iter()
                .map(|(name, used)| {
                    (
                        (*name).to_owned(),
                        used.iter().map(|&name| name.to_owned()).collect(),
                    )
                })
                .collect(),
        };
        let one_way = arrows(&["a", "b"], &[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])]);
        assert!(one_way.circles().is_empty());
        // Files may form one, and a folder that uses them is not part of it.
        let files = arrows(&["a"], &[("a", &["b"]), ("b", &["c"]), ("c", &["b"])]);
        assert!(files.circles().is_empty());
        let circle = arrows(&["a"], &[("a", &["b"]), ("b", &["c"]), ("c", &["a", "b"])]);
        assert_eq!(
            circle.circles(),
            BTreeMap::from([("a", "a -> b -> c -> a".to_owned())])
        );
    }
}
