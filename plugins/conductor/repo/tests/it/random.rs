//! No bytes make a reader panic, and whatever it makes of them it makes again.

use conductor_repo::facts::Facts;
use conductor_repo::map::{MarkdownLimits, Notes};
use conductor_repo::snapshot::Limits;
use proptest::prelude::*;

use crate::harness::{Memory, Whole};

const NAMES: [&str; 18] = [
    "a.rs",
    "a.py",
    "a.js",
    "a.tsx",
    "a.go",
    "a.java",
    "a.c",
    "a.hpp",
    "a.md",
    "Cargo.toml",
    "package.json",
    "tsconfig.json",
    "pyproject.toml",
    "setup.cfg",
    "go.mod",
    "Makefile",
    "pom.xml",
    ".gitignore",
];

/// Pieces that readers look for, so that random text reaches deep into them.
const PIECES: [&str; 48] = [
    "use ",
    "mod ",
    "crate::",
    "super::",
    "{",
    "}",
    "(",
    ")",
    ";",
    "::",
    "*",
    ",",
    " as ",
    "#[path = \"",
    "\"",
    "'",
    "`",
    "${",
    "/*",
    "*/",
    "//",
    "\n",
    "import ",
    "from ",
    "export ",
    "require(",
    "include!(",
    "concat!(",
    "env!(",
    "package ",
    "static ",
    "#include ",
    "<",
    ">",
    "R\"x(",
    ")x\"",
    "\"\"\"",
    "'''",
    "\\",
    "\\\n",
    "..",
    "...",
    "/",
    "=",
    "[",
    "]",
    "ä",
    "\u{0}",
];

const SOURCES: [&str; 8] = [
    "use a::{self, b::{c as d, *}, r#type}; #[cfg_attr(x, path = \"y.rs\")] mod m; mod n { mod o; }",
    "from ..a.b import (c as d,\n e)\nimport f.g as h; x = f\"{a['b']}\" '''long\n'''",
    "import a, { b as c } from './x'; export * from \"y\"; const t = `a ${`b ${require('c')}`}`; /re[/]g/.test(x)",
    "package main\nimport (\n\ta \"b/c\"\n\t. `d`\n)\nfunc main() {}",
    "package a.b; import static a.b.C.*; class D { String s = \"\"\"\n text\"\"\"; }",
    "#include <a/b.h>\n#include \"c.h\"\nauto s = R\"x( )x\"; int main() { char c = '\\''; }",
    "[package]\nname = \"a\"\n[dependencies]\nb = { package = \"c\", path = \"../c\" }",
    "{\"name\": \"a\", \"exports\": {\".\": {\"import\": [\"./b.js\"]}}, \"bin\": \"c\"}",
];

/// Files of a tree that changes.
const PATHS: [&str; 12] = [
    ".gitignore",
    ".git/info/exclude",
    "a/.gitignore",
    "a/b/.git/HEAD",
    "a/b/x",
    "a/c/d/y",
    "a/c/x.log",
    "a/c/z",
    "a-b/x",
    "c/d/x",
    "c/x",
    "x",
];

const RULES: [&str; 6] = ["", "*.log\n", "c/\n", "/c\n", "x\n!/a/b/x\n", "d\n"];

/// A map of three files, so that resolving and writing run too.
fn map(name: &str, bytes: &[u8]) -> String {
    let mut tree = Memory::new("== Cargo.toml\n[package]\nname = \"x\"\n== src/lib.rs\nmod a;\n");
    tree.put(&format!("src/{name}"), bytes);
    tree.put(name, bytes);
    tree.map(&Notes::default()).markdown(MarkdownLimits::default())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for name in NAMES {
            prop_assert_eq!(Facts::read(name, &bytes), Facts::read(name, &bytes));
        }
    }

    #[test]
    fn any_mix_of_pieces(pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..60)) {
        let text = pieces.concat();
        for name in NAMES {
            prop_assert_eq!(map(name, text.as_bytes()), map(name, text.as_bytes()));
        }
    }

    #[test]
    fn a_snapshot_after_any_changes_is_that_of_a_fresh_walk(
        changes in proptest::collection::vec((0..PATHS.len(), 0..4_u8, 0..RULES.len()), 1..30),
    ) {
        let mut tree = Memory::default();
        let mut before = Whole::default();
        for (time, (path, what, rule)) in (1_000..).zip(changes) {
            let path = PATHS[path];
            let content = if path.ends_with("ignore") || path.ends_with("exclude") { RULES[rule] } else { "text" };
            match what {
                0 => drop(tree.files.remove(path)),
                _ => drop(tree.files.insert(path.to_owned(), (content.as_bytes().to_vec(), time))),
            }
            if what == 3 {
                continue;
            }
            let (taken, _) = tree.take(&Limits::default(), Some(&before));
            let (fresh, _) = tree.take(&Limits::default(), None);
            prop_assert_eq!(taken.effort.listed, fresh.effort.listed);
            let whole = Whole::new(taken, Some(&before));
            prop_assert_eq!(&whole, &Whole::new(fresh, None));
            before = whole;
        }
    }

    #[test]
    fn any_truncation(source in 0..SOURCES.len(), cut in 0.0..1.0_f64, rest in "\\PC{0,8}") {
        let source = SOURCES[source];
        let at = source.char_indices().map(|(at, _)| at).take_while(|at| (*at as f64) <= cut * source.len() as f64).last();
        let text = format!("{}{rest}", &source[..at.unwrap_or(0)]);
        for name in NAMES {
            map(name, text.as_bytes());
        }
    }
}

#[test]
fn deep_nesting_is_read_without_recursion() {
    for (open, close) in [
        ("{", "}"),
        ("(", ")"),
        ("use a::{", "}"),
        ("`${", "}`"),
        ("[", "]"),
        ("/*", "*/"),
        ("mod a {", "}"),
    ] {
        let text = format!("{}{}", open.repeat(20_000), close.repeat(20_000));
        for name in NAMES {
            Facts::read(name, text.as_bytes());
        }
    }
}
