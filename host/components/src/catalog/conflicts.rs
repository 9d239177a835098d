//! Conflicts between packs over names, tables and addresses.

use std::collections::BTreeSet;

use super::Catalog;
use super::selection::globs;
use crate::builtin;
use crate::names::prefixes_clash;
use crate::packs::{LoadError, Pack};
use crate::tools::{declared, host_tool};

impl Catalog {
    /// Refuses a pack whose tables or tools clash with another pack's. The error names both.
    pub(super) fn check_free(&self, pack: &Pack, known: &[String]) -> Result<(), LoadError> {
        let name = &pack.manifest.name;
        let mut problems = Vec::new();
        let loaded = self.packs.iter().map(|other| &other.manifest.name);
        if loaded.clone().any(|other| other == name) {
            problems.push(format!("a pack called `{name}` is already loaded"));
        }
        // Built-in packs keep their names, even while they are disabled and before they have tables.
        let mut others: Vec<&str> = loaded.map(String::as_str).collect();
        if !pack.is_builtin() {
            others.extend(known.iter().map(String::as_str));
            for name in builtin::names() {
                others.push(name);
            }
        }
        if let Some(other) = others
            .into_iter()
            .find(|other| other != name && prefixes_clash(other, name))
        {
            problems.push(format!(
                "its tables could clash with those of pack `{other}`; rename the pack"
            ));
        }
        problems.extend(self.taken_addresses(pack));
        let excluded = globs(&pack.exclude);
        for tool in pack
            .manifest
            .named()
            .filter(|tool| !excluded.is_match(&tool.name))
        {
            for name in std::iter::once(&tool.name).chain(&tool.aliases) {
                if let Some(holder) = self.claimant(name) {
                    problems.push(format!(
                        "tool `{name}` also belongs to pack `{holder}`; disable one of the packs, or exclude the tool \
                         from one of them"
                    ));
                }
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(LoadError::new(name, &pack.origin, problems))
        }
    }

    /// Address schemes of a pack that another pack serves. Otherwise a reader of one pack's address would get the
    /// other's content.
    fn taken_addresses(&self, pack: &Pack) -> Vec<String> {
        let addressed = pack
            .manifest
            .tools
            .iter()
            .filter(|spec| declared::has_addresses(spec));
        let declared = addressed.cloned();
        let declared = declared.filter_map(|mut spec| declared::take(&pack.manifest.name, &mut spec).ok());
        let bases: BTreeSet<String> = declared
            .flat_map(|declared| declared.resources)
            .map(|resource| resource.base)
            .collect();
        let taken = bases.into_iter().filter_map(|base| {
            let holder = self.resources.iter().find(|resource| resource.base == base)?;
            Some(format!(
                "its addresses begin with {base}, like those of pack `{}`; use another scheme",
                holder.pack
            ))
        });
        taken.collect()
    }

    /// Pack that declares a name and does not exclude it.
    fn claimant(&self, name: &str) -> Option<&str> {
        if self.host_tools.get(name).is_some() {
            return Some(host_tool::PACK);
        }
        self.packs.iter().find_map(|pack| {
            let excluded = globs(&pack.exclude);
            let declares = pack.manifest.named().any(|tool| {
                !excluded.is_match(&tool.name)
                    && (tool.name == name || tool.aliases.iter().any(|alias| alias == name))
            });
            declares.then_some(pack.manifest.name.as_str())
        })
    }
}
