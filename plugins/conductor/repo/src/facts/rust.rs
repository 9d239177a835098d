//! Rust: `mod`, `use`, `extern crate`, `include!` and paths in code.
//!
//! The lexer accepts any text: a source that does not compile gives the facts that can be read.

mod stops;
mod tokens;
mod use_tree;

use std::collections::HashSet;

use super::{Facts, Import, Lines, MAX_IMPORTS, What};
use tokens::{Kind, Tokens};

/// Reads a Rust source.
pub(super) fn read(text: &str) -> Facts {
    let mut reading = Reading {
        tokens: Tokens::new(text),
        lines: Lines::new(text),
        facts: Facts::default(),
        scopes: Vec::new(),
        depth: 0,
        file: None,
        has_macros: false,
        paths: HashSet::new(),
        path: Vec::new(),
    };
    while reading.facts.imports.len() < MAX_IMPORTS && reading.step() {}
    if reading.has_macros {
        reading.facts.declares.push("!");
    }
    reading.facts
}

struct Reading<'a> {
    tokens: Tokens<'a>,
    lines: Lines<'a>,
    facts: Facts,
    /// Inline modules around this position, each with the depth of its braces.
    scopes: Vec<(&'a str, usize)>,
    depth: usize,
    /// Value of a `#[path]` before the next item.
    file: Option<String>,
    /// True if there are macro calls between items, which may define anything. Recorded as the name `!`.
    has_macros: bool,
    /// Paths in code that were found, each with the modules around it.
    paths: HashSet<Vec<&'a str>>,
    /// Path that is being read.
    path: Vec<&'a str>,
}

impl<'a> Reading<'a> {
    /// Reads on to the next relevant token. Returns whether there was one.
    fn step(&mut self) -> bool {
        let top = self.top();
        // A `#[path]` belongs to the next item, wherever that is.
        let everywhere = self.file.is_some();
        match self.tokens.next_notable(everywhere, &mut self.depth, top) {
            Kind::Pound => self.attribute(),
            Kind::Open('{') => self.depth += 1,
            Kind::Close('}') => {
                self.depth = self.depth.saturating_sub(1);
                if self.scopes.last().is_some_and(|(_, depth)| *depth > self.depth) {
                    self.scopes.pop();
                }
            }
            Kind::Word(word) => self.word(word),
            Kind::End => return false,
            Kind::Open(_) | Kind::Close(_) | Kind::Text(_) | Kind::Separator | Kind::Mark(_) => {}
        }
        true
    }

    fn word(&mut self, word: &'a str) {
        match word {
            "mod" => self.module(),
            "use" if self.tokens.peek() != Kind::Mark('<') => self.uses(),
            "extern" if self.tokens.take_word("crate") => self.extern_crate(),
            "include" | "include_str" | "include_bytes" if self.tokens.peek() == Kind::Mark('!') => {
                self.include()
            }
            "struct" | "enum" | "trait" | "union" | "type" | "fn" | "const" | "static" => self.item(word),
            _ => self.path(word),
        }
    }

    /// Keeps the value of `#[path = "…"]`, also inside `cfg_attr`.
    fn attribute(&mut self) {
        self.tokens.take(Kind::Mark('!'));
        if !self.tokens.take(Kind::Open('[')) {
            return;
        }
        let mut depth = 1_usize;
        while depth > 0 {
            match self.tokens.next() {
                Kind::End => return,
                Kind::Open('[') => depth += 1,
                Kind::Close(']') => depth -= 1,
                Kind::Word("path") if self.tokens.take(Kind::Mark('=')) => {
                    if let Kind::Text(file) = self.tokens.peek() {
                        self.file = Some(file.to_owned());
                    }
                }
                _ => {}
            }
        }
    }

    fn module(&mut self) {
        let at = self.tokens.at();
        let Kind::Word(name) = self.tokens.peek() else {
            return;
        };
        self.tokens.next();
        let file = self.file.take();
        self.facts.declares.push(name);
        if self.tokens.take(Kind::Open('{')) {
            self.depth += 1;
            self.scopes.push((name, self.depth));
        } else if self.tokens.take(Kind::Mark(';')) {
            let (name, scope) = (name.to_owned(), self.scope());
            self.push(at, What::RustMod { name, scope, file });
        }
    }

    fn uses(&mut self) {
        let at = self.tokens.at();
        let scope = self.scope();
        for leaf in use_tree::read(&mut self.tokens) {
            self.push(
                at,
                What::RustUse {
                    path: leaf.path,
                    scope: scope.clone(),
                    name: leaf.name,
                },
            );
        }
    }

    fn extern_crate(&mut self) {
        let at = self.tokens.at();
        let Kind::Word(krate) = self.tokens.next() else {
            return;
        };
        let mut name = krate.to_owned();
        if self.tokens.take_word("as")
            && let Kind::Word(alias) = self.tokens.next()
        {
            name = alias.to_owned();
        }
        if krate != "self" {
            let (path, scope) = (krate.to_owned(), self.scope());
            let name = Some(name);
            self.push(at, What::RustUse { path, scope, name });
        }
    }

    /// Reads `include!("file")`, or `include!(concat!(env!("CARGO_MANIFEST_DIR"), "/file"))`.
    fn include(&mut self) {
        let at = self.tokens.at();
        self.tokens.next();
        if !self.tokens.take(Kind::Open('(')) {
            return;
        }
        let mut from_package = false;
        if self.tokens.take_word("concat") {
            self.tokens.take(Kind::Mark('!'));
            self.tokens.take(Kind::Open('('));
            if self.tokens.take_word("env") {
                self.tokens.take(Kind::Mark('!'));
                self.tokens.take(Kind::Open('('));
                from_package = self.tokens.take(Kind::Text("CARGO_MANIFEST_DIR"));
                self.tokens.take(Kind::Close(')'));
                self.tokens.take(Kind::Mark(','));
            }
            // The output of a build script is not part of the tree.
            if !from_package {
                return;
            }
        }
        if let Kind::Text(file) = self.tokens.peek() {
            let file = file.to_owned();
            self.push(at, What::RustInclude { file, from_package });
        }
    }

    fn item(&mut self, keyword: &str) {
        self.file = None;
        if let (true, Kind::Word(name)) = (self.is_top(), self.tokens.peek()) {
            self.facts.runs |= keyword == "fn" && name == "main" && self.scopes.is_empty();
            self.facts.declares.push(name);
            self.tokens.next();
        }
    }

    /// Reads a path in code. Paths into the standard library are not dependencies on files.
    fn path(&mut self, first: &'a str) {
        if first != "macro_rules" {
            self.macro_call();
        }
        if self.tokens.peek() != Kind::Separator || matches!(first, "std" | "core" | "alloc") {
            return;
        }
        let at = self.tokens.at();
        self.path.clear();
        self.path.extend(self.scopes.iter().map(|(name, _)| *name));
        let scope = self.path.len();
        self.path.push(first);
        while self.tokens.take(Kind::Separator) {
            let Kind::Word(segment) = self.tokens.peek() else {
                break;
            };
            self.tokens.next();
            self.path.push(segment);
        }
        self.macro_call();
        let segments = self.path.get(scope..).unwrap_or_default();
        let is_module = |segment: &&&str| segment.starts_with(|c: char| c.is_lowercase() || c == '_');
        let modules = segments.iter().take_while(is_module).count();
        if segments.len() < 2 || modules == 0 {
            return;
        }
        self.path.truncate(scope + modules + 1);
        if !self.paths.contains(&self.path) {
            self.paths.insert(self.path.clone());
            let path = self.path.get(scope..).unwrap_or_default().join("::");
            let scope = self.scope();
            self.push(at, What::RustPath { path, scope });
        }
    }

    fn macro_call(&mut self) {
        self.has_macros |= self.is_top() && self.tokens.peek() == Kind::Mark('!');
    }

    /// True between items, false inside one.
    fn is_top(&self) -> bool {
        self.depth == self.top()
    }

    /// Depth of the items here.
    fn top(&self) -> usize {
        self.scopes.last().map_or(0, |(_, depth)| *depth)
    }

    fn scope(&self) -> String {
        let names: Vec<&str> = self.scopes.iter().map(|(name, _)| *name).collect();
        names.join("::")
    }

    fn push(&mut self, at: usize, what: What) {
        let line = self.lines.of(at);
        self.facts.imports.push(Import { line, what });
    }
}
