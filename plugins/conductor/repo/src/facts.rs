//! Facts of one file: its imports, its manifest, and marks left by its author.
//!
//! Facts depend on a file's content alone, so that a file that is unchanged, or only moved, is not read again.
//! [`FactBook`] keeps them between runs.

mod book;
mod c;
mod go;
mod java;
mod javascript;
mod marks;
mod names;
mod python;
mod rust;
mod single_file;
mod symbols;

use std::borrow::Cow;

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

pub use book::{FactBook, key};
pub(crate) use javascript::tokens as javascript_tokens;

use crate::language::Language;
use crate::manifest::{self, Manifest};
use crate::path;

/// Version of the facts: facts of another version are read again. Increase it with each change of a reader.
pub const VERSION: u8 = 3;

/// Maximum number of imports kept of one file. A file with more is generated.
pub(crate) const MAX_IMPORTS: usize = 4_000;

/// Facts of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Imports in the order of the source.
    pub imports: Vec<Import>,
    /// Names defined at the top level, where resolving needs them (Rust, Java).
    pub declares: Names,
    /// Declared package (Go, Java).
    pub package: Option<String>,
    /// True if the file can be run: a `main`, a `__main__` check or a `#!` line.
    pub runs: bool,
    /// True if a framework finds by itself what the file defines, such as an annotated class.
    pub registers: bool,
    /// True if a tool wrote the file: its head says so, or it is a bundle.
    pub generated: bool,
    /// Deprecation notice in the head of the file.
    pub deprecated: Option<String>,
    /// Names of source files that the text mentions.
    pub mentions: Vec<String>,
    /// Dotted names that may be modules or classes loaded by name.
    pub names: Vec<String>,
    /// Content of a manifest.
    pub manifest: Option<Manifest>,
}

/// Identifiers, separated by spaces: files define dozens, and a `String` for each would take more memory than
/// the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names(String);

impl Names {
    /// Adds a name.
    pub fn push(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(name);
    }

    /// All names, as often as they were added.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').filter(|name| !name.is_empty())
    }

    /// Checks whether a name was added.
    pub fn contains(&self, wanted: &str) -> bool {
        self.iter().any(|name| name == wanted)
    }
}

/// An import as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Line number, from 1.
    pub line: u32,
    /// Target of the import.
    pub what: What,
}

/// Target of an import, by the rules of its language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// `mod name;`, inside the inline modules `scope`.
    RustMod {
        /// Name of the module.
        name: String,
        /// Inline modules around it, separated by `::`.
        scope: String,
        /// File named by `#[path]`.
        file: Option<String>,
    },
    /// One leaf of a `use`.
    RustUse {
        /// Path of the leaf.
        path: String,
        /// Inline modules around it, separated by `::`.
        scope: String,
        /// Name that it brings into scope; `None` for `*` and `_`.
        name: Option<String>,
    },
    /// Path in code, such as `crate::a::b()`: a dependency on a file if the path names one.
    RustPath {
        /// Path as written.
        path: String,
        /// Inline modules around it, separated by `::`.
        scope: String,
    },
    /// `include!` and similar macros.
    RustInclude {
        /// Path of the file.
        file: String,
        /// True if the path is relative to the package instead of the source.
        from_package: bool,
    },
    /// `import module` or `from module import names`.
    Python {
        /// Dotted name after the leading dots.
        module: String,
        /// Number of leading dots.
        level: u32,
        /// Names imported from the module.
        names: Vec<String>,
    },
    /// Any reference of a JavaScript file to another.
    JavaScript {
        /// Specifier as written.
        specifier: String,
        /// True if the code works without it: inside a `try`, or a `require.resolve`.
        optional: bool,
    },
    /// All files that fit a pattern, such as `import.meta.glob("./pages/*.vue")`.
    JavaScriptGlob {
        /// Pattern with `*` and `**`, relative to the file.
        pattern: String,
    },
    /// One import of a Go file.
    Go {
        /// Import path.
        path: String,
    },
    /// One import of a Java file.
    Java {
        /// Dotted name, without `.*`.
        path: String,
        /// True if it ends in `.*`.
        all: bool,
    },
    /// Name in Java code that starts like that of a class. It may be a class of the same package.
    JavaName {
        /// Name as written.
        name: String,
    },
    /// `#include`.
    C {
        /// Path as written.
        path: String,
        /// True for angle brackets.
        system: bool,
    },
}

impl Facts {
    /// Reads a file. Any bytes are accepted, but may give few facts.
    pub fn read(path: &str, bytes: &[u8]) -> Facts {
        // Nearly every file is UTF-8; checking that is faster than converting.
        let text = match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut facts = match Language::of(path) {
            Some(Language::Rust) => rust::read(text),
            Some(Language::Python) => python::read(text),
            Some(Language::JavaScript) => read_javascript(path, text),
            Some(Language::Go) => go::read(text),
            Some(Language::Java) => java::read(text),
            Some(Language::C) => c::read(text),
            None => Facts::default(),
        };
        facts.imports.truncate(MAX_IMPORTS);
        marks::read(path, text, &mut facts);
        facts.names = names::read(path, text);
        facts.manifest = manifest::read(path::name(path), text);
        facts
    }
}

/// Reads JavaScript by itself, inside a component of a single file, or from a bundle, whose imports are none.
fn read_javascript(path: &str, text: &str) -> Facts {
    if javascript::is_bundle(text) {
        return Facts {
            generated: true,
            ..Facts::default()
        };
    }
    match single_file::scripts(path::extension(path), text) {
        Some(scripts) => javascript::read(&scripts),
        None => javascript::read(text),
    }
}

/// End of the last occurrence of any of the words. A reader looking for them can stop there: most files have
/// their imports at the top.
pub(crate) fn last_of(text: &str, words: &[Finder<'_>]) -> usize {
    let last = |word: &Finder<'_>| word.find_iter(text.as_bytes()).last();
    words.iter().filter_map(last).max().unwrap_or(0)
}

/// Counts lines while a reader moves forward.
pub(crate) struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Lines<'a> {
        Lines { text, at: 0, line: 1 }
    }

    /// Line of a byte that is not before the last requested one.
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
