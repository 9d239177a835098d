//! What is written in one file: its imports, its manifest, and marks that its author left.
//!
//! Facts hang on a file's content alone, so that a file that did not change, or only moved, is not
//! read again. [`FactBook`] keeps them between runs.

mod book;
mod c;
mod go;
mod java;
mod javascript;
mod marks;
mod python;
mod rust;
mod symbols;

use std::borrow::Cow;

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

pub use book::{FactBook, key};

use crate::language::Language;
use crate::manifest::{self, Manifest};
use crate::path;

/// Imports kept of one file. A file with more is generated.
pub(crate) const MAX_IMPORTS: usize = 4_000;

/// What is written in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// In the order of the source.
    pub imports: Vec<Import>,
    /// Names the file defines at its top, where resolving needs them (Rust, Java).
    pub declares: Names,
    /// The package it says to be part of (Go, Java).
    pub package: Option<String>,
    /// It can be run: a `main`, a `__main__` check or a `#!` line.
    pub runs: bool,
    /// Its beginning says that a tool wrote it.
    pub generated: bool,
    /// Its beginning says that it is deprecated, in these words.
    pub deprecated: Option<String>,
    /// Names of source files that it mentions.
    pub mentions: Vec<String>,
    /// What it says, if it is a manifest.
    pub manifest: Option<Manifest>,
}

/// Identifiers, with a space between them: files define dozens, and a text for each would take more room
/// than the names do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names(String);

impl Names {
    /// Adds one.
    pub fn push(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(name);
    }

    /// All of them, as often as they were added.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').filter(|name| !name.is_empty())
    }

    /// Whether one is among them.
    pub fn contains(&self, wanted: &str) -> bool {
        self.iter().any(|name| name == wanted)
    }
}

/// One import as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Where, from 1.
    pub line: u32,
    /// What.
    pub what: What,
}

/// What an import asks for, by the rules of its language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// `mod name;`, inside the inline modules `scope`.
    RustMod {
        /// The module.
        name: String,
        /// The inline modules around it, with `::` between them.
        scope: String,
        /// The file that `#[path]` names.
        file: Option<String>,
    },
    /// One leaf of a `use`.
    RustUse {
        /// The path.
        path: String,
        /// The inline modules around it, with `::` between them.
        scope: String,
        /// The name it brings into scope; none for `*` and `_`.
        name: Option<String>,
    },
    /// A path in code, such as `crate::a::b()`: it depends on a file when it names one.
    RustPath {
        /// The path.
        path: String,
        /// The inline modules around it, with `::` between them.
        scope: String,
    },
    /// `include!` and its like.
    RustInclude {
        /// The file.
        file: String,
        /// It is relative to the package instead of the source.
        from_package: bool,
    },
    /// `import module` or `from module import names`.
    Python {
        /// The dotted name behind the dots.
        module: String,
        /// How many dots it starts with.
        level: u32,
        /// What is taken out of it.
        names: Vec<String>,
    },
    /// Any way a JavaScript file names another.
    JavaScript {
        /// The specifier.
        specifier: String,
        /// The code goes on without it: inside a `try`, or a `require.resolve`.
        optional: bool,
    },
    /// One import of a Go file.
    Go {
        /// The import path.
        path: String,
    },
    /// One import of a Java file.
    Java {
        /// The dotted name, without `.*`.
        path: String,
        /// It ends in `.*`.
        all: bool,
    },
    /// A name in Java code that starts like a class's. It may be one of the same package.
    JavaName {
        /// The name.
        name: String,
    },
    /// `#include`.
    C {
        /// The path.
        path: String,
        /// It is in angle brackets.
        system: bool,
    },
}

impl Facts {
    /// Reads a file. Any bytes give facts, if only few.
    pub fn read(path: &str, bytes: &[u8]) -> Facts {
        // Nearly every file is UTF-8, and asking that is quicker than making sure of it.
        let text = match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut facts = match Language::of(path) {
            Some(Language::Rust) => rust::read(text),
            Some(Language::Python) => python::read(text),
            Some(Language::JavaScript) => javascript::read(text),
            Some(Language::Go) => go::read(text),
            Some(Language::Java) => java::read(text),
            Some(Language::C) => c::read(text),
            None => Facts::default(),
        };
        facts.imports.truncate(MAX_IMPORTS);
        marks::read(path, text, &mut facts);
        facts.manifest = manifest::read(path::name(path), text);
        facts
    }
}

/// Where the last of some words stands. Behind it a reader that looks for them need not go: most files
/// name what they import at their top.
pub(crate) fn last_of(text: &str, words: &[Finder<'_>]) -> usize {
    let last = |word: &Finder<'_>| word.find_iter(text.as_bytes()).last();
    words.iter().filter_map(last).max().unwrap_or(0)
}

/// Counts lines as a reader moves forward.
pub(crate) struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Lines<'a> {
        Lines { text, at: 0, line: 1 }
    }

    /// The line of a byte, which is not before the last one asked for.
    pub(crate) fn of(&mut self, at: usize) -> u32 {
        let passed = self.text.as_bytes().get(self.at..at).unwrap_or_default();
        let newlines = memchr::memchr_iter(b'\n', passed).count();
        self.line = self
            .line
            .saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
        self.at = self.at.max(at);
        self.line
    }
}
