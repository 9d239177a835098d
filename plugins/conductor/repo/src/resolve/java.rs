//! Java: names of types by the packages that files declare.

use std::collections::BTreeMap;

use super::{Index, Resolution};
use crate::language::Language;
use crate::path;

/// Packages of the tree.
pub(super) struct Packages<'a> {
    index: &'a Index<'a>,
    packages: BTreeMap<&'a str, Vec<usize>>,
    types: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> Packages<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Packages<'a> {
        let mut packages: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut types = BTreeMap::new();
        for file in 0..index.len() {
            let path = index.path(file);
            let Some(facts) = index
                .facts(file)
                .filter(|_| index.language(file) == Some(Language::Java))
            else {
                continue;
            };
            let package = facts.package.as_deref().unwrap_or_default();
            packages.entry(package).or_default().push(file);
            for name in std::iter::once(path::stem(path)).chain(facts.declares.iter()) {
                types.entry((package, name)).or_insert(file);
            }
        }
        Packages {
            index,
            packages,
            types,
        }
    }

    /// Resolves `a.b.Type`, `a.b.Outer.Inner`, `a.b.Type.member` or, with `all`, everything in one of them.
    pub(super) fn resolve(&self, name: &str, all: bool) -> Resolution {
        if all && self.packages.contains_key(name) {
            return Resolution::Package(name.to_owned());
        }
        let mut prefixes = vec![name];
        while let Some((prefix, _)) = prefixes.last().and_then(|last| last.rsplit_once('.')) {
            prefixes.push(prefix);
        }
        for prefix in &prefixes {
            let (package, kind) = prefix.rsplit_once('.').unwrap_or(("", prefix));
            if let Some(file) = self.types.get(&(package, kind)) {
                return Resolution::Files(vec![*file]);
            }
        }
        if prefixes
            .iter()
            .skip(1)
            .any(|prefix| self.packages.contains_key(prefix))
        {
            return Resolution::Missing;
        }
        let mut parts = name.splitn(3, '.');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        Resolution::External(format!("{first}.{second}"))
    }

    /// Resolves a type of the same package, which needs no import.
    pub(super) fn neighbour(&self, file: usize, name: &str) -> Resolution {
        let package = self.index.facts(file).and_then(|facts| facts.package.as_deref());
        match self.types.get(&(package.unwrap_or_default(), name)) {
            Some(found) if *found != file => Resolution::Files(vec![*found]),
            _ => Resolution::Nothing,
        }
    }

    pub(super) fn package(&self, name: &str) -> Option<Vec<usize>> {
        self.packages.get(name).cloned()
    }
}
