//! Files whose name a text mentions.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::facts::What;
use crate::path;
use crate::resolve::Index;

/// Maximum number of texts kept for one name.
const MAX_TEXTS: usize = 50;

/// Mentions by the name of the mentioned file: the text, and the words in it.
pub(super) struct Mentions<'a> {
    by_name: HashMap<&'a str, Vec<(usize, &'a str)>, FixedState>,
}

impl<'a> Mentions<'a> {
    /// Mentions of all texts. The specifiers of imports are none: they mean the file to which they resolve.
    pub(super) fn of(index: &Index<'a>) -> Mentions<'a> {
        let mut by_name: HashMap<&str, Vec<(usize, &str)>, FixedState> = HashMap::default();
        for file in 0..index.len() {
            let Some(facts) = index.facts(file) else {
                continue;
            };
            for word in &facts.mentions {
                let word = word.as_str();
                let imports = facts.imports.iter().any(|import| match &import.what {
                    What::JavaScript { specifier, .. } => specifier.trim_start_matches("./") == word,
                    What::C { path, .. } => path == word,
                    _ => false,
                });
                let texts = by_name.entry(path::name(word)).or_default();
                if !imports && texts.len() < MAX_TEXTS {
                    texts.push((file, word.trim_start_matches(['.', '/'])));
                }
            }
        }
        Mentions { by_name }
    }

    /// First text that mentions a file: its name, alone or with directories above it.
    pub(super) fn of_path(&self, file: usize, path: &str) -> Option<usize> {
        let texts = self.by_name.get(path::name(path))?;
        let fits = |word: &str| {
            let before = path.strip_suffix(word);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        texts
            .iter()
            .find(|(by, word)| *by != file && fits(word))
            .map(|(by, _)| *by)
    }
}
