//! Dependencies between the modules of a crate, read from its source. Test code does not count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use crate::tokens::{attributes, code};

/// Top-level modules of a crate and their dependencies, without the crate's root.
#[derive(Debug, Default)]
pub(crate) struct Arrows {
    /// Modules that have submodules.
    folders: BTreeSet<String>,
    uses: BTreeMap<String, BTreeSet<String>>,
    /// Constructs that hide dependencies from this check, with their files.
    pub(crate) hidden: Vec<String>,
}

/// Facts about one file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    /// Declared modules that have their own files.
    modules: Vec<String>,
    /// First names of paths that begin at the crate's root.
    names: BTreeSet<String>,
    /// Modules of imported or re-exported names.
    imported: BTreeMap<String, String>,
    /// Constructs that hide dependencies from this check.
    hidden: Vec<&'static str>,
}

impl Arrows {
    /// Dependencies of the crate in a folder, whose root is `lib.rs` or `main.rs`.
    pub(crate) fn of(src: &Path, root: &str) -> Arrows {
        let mut arrows = Arrows::default();
        let root = read(&src.join(root), 0, &mut arrows.hidden);
        for module in &root.modules {
            let mut names = BTreeSet::new();
            if walk(src, module, 1, &mut names, &mut arrows.hidden) {
                arrows.folders.insert(module.clone());
            }
            // A name of the root refers to the module that the root imports it from.
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

    /// Folders that are part of a cycle, each with its shortest cycle.
    pub(crate) fn circles(&self) -> BTreeMap<&str, String> {
        let circles = self.folders.iter().filter_map(|folder| {
            let circle = self.back_to(folder)?;
            Some((folder.as_str(), circle.join(" -> ")))
        });
        circles.collect()
    }

    /// Shortest path from a module back to itself.
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

/// Collects the names that a module and its submodules use. Returns whether it has submodules.
fn walk(
    folder: &Path,
    module: &str,
    depth: usize,
    names: &mut BTreeSet<String>,
    hidden: &mut Vec<String>,
) -> bool {
    let below = folder.join(module);
    let file = folder.join(format!("{module}.rs"));
    let file = if file.exists() { file } else { below.join("mod.rs") };
    let found = read(&file, depth, hidden);
    names.extend(found.names);
    for module in &found.modules {
        walk(&below, module, depth + 1, names, hidden);
    }
    !found.modules.is_empty()
}

#[allow(clippy::disallowed_methods, reason = "the test reads the project's source")]
fn read(file: &Path, depth: usize, hidden: &mut Vec<String>) -> Read {
    let source = std::fs::read_to_string(file).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
    let read = Read::of(&source, depth);
    let found = read.hidden.iter();
    hidden.extend(found.map(|construct| format!("{}: {construct}", file.display())));
    read
}

impl Read {
    /// Parses a file of a module at a depth, which is 0 for the crate's root.
    fn of(source: &str, depth: usize) -> Read {
        let tokens = code(source);
        let mut read = Read {
            hidden: hidden(&tokens),
            ..Read::default()
        };
        // Open braces, and whether each belongs to a module.
        let mut open: Vec<bool> = Vec::new();
        let mut at = 0;
        while let Some(rest) = tokens.get(at..).filter(|rest| !rest.is_empty()) {
            let words: Vec<&str> = rest.iter().take(8).map(String::as_str).collect();
            let is_module = |open: &Vec<bool>| open.iter().filter(|is_module| **is_module).count();
            match words.as_slice() {
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
        if read.imported.contains_key("*") {
            read.hidden.push("glob import in the root");
        }
        read
    }

    /// Records the first names of what follows the root: one name, or those of a list.
    fn name(&mut self, tokens: &[String]) {
        let names = firsts(tokens);
        self.names.extend(names.map(|(_, name)| name.to_owned()));
    }

    /// Records the module from which the root has the names of a `use`.
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
            // Continue with the next entry of a list of modules.
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

/// Constructs of a file that hide dependencies from this check.
fn hidden(tokens: &[String]) -> Vec<&'static str> {
    let mut hidden = Vec::new();
    for at in 0..tokens.len() {
        let words: Vec<&str> = tokens[at..].iter().take(10).map(String::as_str).collect();
        match words.as_slice() {
            ["crate" | "super", "as", ..] => hidden.push("other name for the root or a parent"),
            ["extern", "crate", "self", ..] => hidden.push("other name for the crate"),
            // Generated by the build script.
            [
                "include",
                "!",
                "(",
                "concat",
                "!",
                "(",
                "env",
                "!",
                "(",
                "\"OUT_DIR\"",
            ] => {}
            ["include", "!", ..] => hidden.push("included source"),
            ["crate" | "super", "::", first, ..] => {
                for (_, name) in firsts(&tokens[at + 2..]) {
                    match name {
                        "*" => hidden.push("glob import of the root or a parent"),
                        "self" => hidden.push("import of the root or a parent"),
                        "super" if *first == "{" => hidden.push("parent of a parent in a list"),
                        "$" => hidden.push("path that a macro completes"),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let has_path = |attribute: &&[String]| {
        let is_about_files = ["path", "cfg_attr"].contains(&attribute[0].as_str());
        is_about_files && attribute.windows(2).any(|pair| pair == ["path", "="])
    };
    hidden.extend(attributes(tokens).filter(has_path).map(|_| "path of a module"));
    hidden
}

/// First names of a path, or of each path in a list, with their positions.
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
    fn what_cannot_be_followed_is_refused_outside_tests() {
        for source in [
            "use crate as root;",
            "use super::super as above;",
            "use crate::{self as root};",
            "extern crate self as own;",
            "use crate::*;",
            "use super::super::*;",
            "use super::{a, *};",
            "use super::{super::a};",
            "macro_rules! m { ($m:ident) => { $crate::$m::f() } }",
            "#[path = \"../a.rs\"] mod b;",
            "#[cfg_attr(unix, path = \"../a.rs\")] mod b;",
            "include!(\"../a.rs\");",
        ] {
            let refused = Read::of(source, 2).hidden;
            assert_eq!(refused.len(), 1, "{source}: {refused:?}");
            let tests = format!("#[cfg(test)] mod tests {{ {source} }} use super::super::a::*;");
            assert_eq!(Read::of(&tests, 2).hidden, [""; 0], "{source}");
        }
        assert_eq!(Read::of("pub use a::*;", 0).hidden, ["glob import in the root"]);
        let generated = "include!(concat!(env!(\"OUT_DIR\"), \"/a.rs\"));";
        assert_eq!(Read::of(generated, 0).hidden, [""; 0]);
    }

    #[test]
    fn raw_names_are_names() {
        assert_eq!(
            names("use crate::r#a::B; r#mod!(); use r#super::c;", 1),
            ["a", "c"]
        );
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
            hidden: Vec::new(),
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
        // Files may form a cycle, and a folder that uses them is not part of it.
        let files = arrows(&["a"], &[("a", &["b"]), ("b", &["c"]), ("c", &["b"])]);
        assert!(files.circles().is_empty());
        let circle = arrows(&["a"], &[("a", &["b"]), ("b", &["c"]), ("c", &["a", "b"])]);
        assert_eq!(
            circle.circles(),
            BTreeMap::from([("a", "a -> b -> c -> a".to_owned())])
        );
    }
}
