//! `go.mod`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Content of a `go.mod`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoModule {
    /// Path of the module.
    pub module: String,
    /// Modules that are replaced by a directory, which is relative to the file.
    pub replaced: BTreeMap<String, String>,
}

pub(super) fn read(text: &str) -> Option<GoModule> {
    let mut found = GoModule::default();
    let mut in_replace = false;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let words: Vec<&str> = line
            .split_whitespace()
            .map(|word| word.trim_matches('"'))
            .collect();
        match words.as_slice() {
            ["module", path] => found.module = (*path).to_owned(),
            ["replace", "("] => in_replace = true,
            [")"] => in_replace = false,
            ["replace", rest @ ..] => replace(rest, &mut found),
            rest if in_replace => replace(rest, &mut found),
            _ => {}
        }
    }
    (!found.module.is_empty()).then_some(found)
}

fn replace(words: &[&str], found: &mut GoModule) {
    let target = words.iter().skip_while(|word| **word != "=>").nth(1);
    if let (Some(module), Some(target)) = (words.first(), target)
        && target.starts_with('.')
    {
        found.replaced.insert((*module).to_owned(), (*target).to_owned());
    }
}
