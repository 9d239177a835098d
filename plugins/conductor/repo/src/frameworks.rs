//! Files that frameworks run or read without an import, because of their place, their name or an annotation.
//!
//! A framework counts only where the tree shows it: in the dependencies of a package, in settings, or in the
//! imports of the code.

mod javascript;
mod libraries;
mod python;

use std::collections::BTreeMap;

use crate::language::Language;
use crate::resolve::Index;

/// Files that frameworks run, each with the name of the framework.
pub(crate) type Run = BTreeMap<usize, &'static str>;

/// All files that frameworks run, and the public files of libraries.
pub(crate) fn find(index: &Index<'_>) -> Run {
    let mut run = Run::new();
    javascript::find(index, &mut run);
    python::find(index, &mut run);
    libraries::find(index, &mut run);
    for file in 0..index.len() {
        let registers = index.facts(file).is_some_and(|facts| facts.registers);
        if registers {
            let name = match index.language(file) {
                Some(Language::Java) => "a Java container",
                _ => "a task queue",
            };
            run.entry(file).or_insert(name);
        }
    }
    run
}
