//! `tsconfig.json` and `jsconfig.json`: what can be read of them, and the paths that they map.
//!
//! One unreadable file would make `oxc_resolver` fail for all files below it. So it gets only references that
//! exist, and what was left out is a problem of the map. The mapped paths of all configurations of a directory
//! are kept besides, for files that a configuration does not list: components, tests, scripts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::manifest::Manifest;
use crate::path;
use crate::resolve::Index;
use crate::snapshot::{Problem, Trouble};

/// Maximum number of configurations that extend one another.
const MAX_EXTENDS: usize = 20;

/// Configurations of a tree.
#[derive(Default)]
pub(super) struct Configs {
    /// Usable content of each configuration, as JSON.
    pub(super) usable: BTreeMap<String, String>,
    pub(super) problems: Vec<Problem>,
    /// Mapped paths by directory.
    rules: BTreeMap<String, Vec<Rule>>,
}

/// Mapping of specifiers that fit a pattern.
struct Rule {
    /// Text before and after the `*`; without one only the text itself fits.
    before: String,
    after: Option<String>,
    /// Paths with `*`, from the root of the tree.
    targets: Vec<String>,
}

/// A configuration while it is put together.
struct Raw {
    json: Value,
    /// Configurations that it extends, by path.
    extends: Vec<String>,
}

impl Configs {
    /// Reads all configurations. `package` finds the directory of a package of the tree by a specifier.
    pub(super) fn of(index: &Index<'_>, package: impl Fn(&str) -> Option<(String, String)>) -> Configs {
        let mut configs = Configs::default();
        let mut raw: BTreeMap<String, Raw> = BTreeMap::new();
        for file in 0..index.len() {
            let path = index.path(file);
            if !is_config(path::name(path)) || index.facts(file).is_none() {
                continue;
            }
            let json = match index.facts(file).and_then(|facts| facts.manifest.as_ref()) {
                Some(Manifest::TsConfig(config)) => {
                    serde_json::from_str(&config.json).unwrap_or_else(|_| json!({}))
                }
                _ => {
                    configs.problem(path, "is not valid JSON; its settings are not used".to_owned());
                    json!({})
                }
            };
            let extends = Vec::new();
            raw.insert(path.to_owned(), Raw { json, extends });
        }
        let paths: Vec<String> = raw.keys().cloned().collect();
        for config in &paths {
            configs.link(index, config, &mut raw, &package);
        }
        for config in &paths {
            configs
                .usable
                .extend(raw.get(config).map(|own| (config.clone(), own.json.to_string())));
            configs.rule(config, &raw);
        }
        configs
    }

    /// Replaces `extends` and `references` by those that exist.
    fn link(
        &mut self,
        index: &Index<'_>,
        config: &str,
        raw: &mut BTreeMap<String, Raw>,
        package: &impl Fn(&str) -> Option<(String, String)>,
    ) {
        let directory = path::parent(config);
        let Some(own) = raw.get(config) else {
            return;
        };
        let (mut found, mut lost) = (Vec::new(), Vec::new());
        for base in texts(own.json.get("extends")) {
            match find(directory, base, package, |path| raw.contains_key(path)) {
                Some(path) if !reaches(raw, &path, config) => found.push(path),
                Some(_) => lost.push(format!("extends {base}, which extends it")),
                None => lost.push(format!("extends {base}, which is not in the repository")),
            }
        }
        let references = own.json.get("references").and_then(Value::as_array);
        let references = references.into_iter().flatten().filter(|reference| {
            let target = reference.get("path").and_then(Value::as_str);
            let target = target.and_then(|target| path::join(directory, target));
            let file = target.map(|target| {
                if target.ends_with(".json") {
                    target
                } else {
                    path::below(&target, "tsconfig.json")
                }
            });
            file.is_some_and(|file| file != config && index.find(&file).is_some())
        });
        let references: Vec<Value> = references.cloned().collect();
        if let Some(own) = raw.get_mut(config) {
            if let Some(json) = own.json.as_object_mut() {
                json.remove("extends");
                json.remove("references");
                let absolute: Vec<String> = found.iter().map(|path| format!("/{path}")).collect();
                if !absolute.is_empty() {
                    json.insert("extends".to_owned(), json!(absolute));
                }
                if !references.is_empty() {
                    json.insert("references".to_owned(), json!(references));
                }
            }
            own.extends = found;
        }
        if !lost.is_empty() {
            self.problem(
                config,
                format!("{}; only its other settings are used", lost.join(", and ")),
            );
        }
    }

    /// Adds the mapped paths of a configuration, its own or those of the last one that it extends.
    fn rule(&mut self, config: &str, raw: &BTreeMap<String, Raw>) {
        let directory = path::parent(config).to_owned();
        let own = directory.as_str();
        let base = inherited(raw, config, "baseUrl", MAX_EXTENDS).and_then(|(from, value)| {
            let value = value.as_str()?.replace("${configDir}", ".");
            path::join(path::parent(from), &value)
        });
        let mut rules = Vec::new();
        if let Some((from, Value::Object(paths))) = inherited(raw, config, "paths", MAX_EXTENDS) {
            let start = base.as_deref().unwrap_or(path::parent(from));
            for (pattern, targets) in paths {
                let target = |target: &str| match target.strip_prefix("${configDir}") {
                    Some(rest) => path::join(own, rest.trim_start_matches('/')),
                    None => path::join(start, target),
                };
                let targets = texts(Some(targets)).filter_map(target).collect();
                let (before, after) = match pattern.split_once('*') {
                    Some((before, after)) => (before.to_owned(), Some(after.to_owned())),
                    None => (pattern.clone(), None),
                };
                rules.push(Rule {
                    before,
                    after,
                    targets,
                });
            }
        }
        // The longest pattern counts, and a base comes last.
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.before.len()));
        rules.extend(base.map(|base| Rule {
            before: String::new(),
            after: Some(String::new()),
            targets: vec![path::below(&base, "*")],
        }));
        self.rules.entry(directory).or_default().extend(rules);
    }

    /// Paths that a specifier may mean in a directory, nearest configuration first.
    pub(super) fn mapped(&self, directory: &str, specifier: &str) -> impl Iterator<Item = String> {
        let above = path::with_ancestors(directory);
        let rules = above.filter_map(|directory| self.rules.get(directory)).flatten();
        rules.flat_map(move |rule| {
            let star = rule.star(specifier);
            let targets = star.map(|star| {
                rule.targets
                    .iter()
                    .map(move |target| target.replacen('*', star, 1))
            });
            targets.into_iter().flatten()
        })
    }

    /// Checks whether a specifier has an own pattern, so that it names no package.
    pub(super) fn maps(&self, directory: &str, specifier: &str) -> bool {
        path::with_ancestors(directory).any(|directory| {
            let rules = self.rules.get(directory).into_iter().flatten();
            rules
                .filter(|rule| !rule.before.is_empty())
                .any(|rule| rule.star(specifier).is_some())
        })
    }

    fn problem(&mut self, path: &str, why: String) {
        self.problems.push(Problem {
            path: path.to_owned(),
            what: Trouble::Settings(why),
        });
    }
}

impl Rule {
    /// Text for the `*` if a specifier fits.
    fn star<'s>(&self, specifier: &'s str) -> Option<&'s str> {
        let rest = specifier.strip_prefix(self.before.as_str())?;
        match &self.after {
            Some(after) => rest.strip_suffix(after.as_str()),
            None => rest.is_empty().then_some(""),
        }
    }
}

fn is_config(name: &str) -> bool {
    name == "jsconfig.json" || (name.starts_with("tsconfig") && name.ends_with(".json"))
}

/// Path of the configuration that another extends.
fn find(
    directory: &str,
    base: &str,
    package: &impl Fn(&str) -> Option<(String, String)>,
    exists: impl Fn(&str) -> bool,
) -> Option<String> {
    let path = if base.starts_with('.') {
        path::join(directory, base)?
    } else {
        let (directory, rest) = package(base)?;
        path::below(&directory, if rest.is_empty() { "tsconfig.json" } else { &rest })
    };
    let guesses = [
        path.clone(),
        format!("{path}.json"),
        path::below(&path, "tsconfig.json"),
    ];
    guesses.into_iter().find(|path| exists(path))
}

/// Checks whether a configuration extends another, directly or over others.
fn reaches(raw: &BTreeMap<String, Raw>, from: &str, wanted: &str) -> bool {
    let (mut open, mut seen) = (vec![from], Vec::new());
    while let Some(config) = open.pop() {
        if config == wanted {
            return true;
        }
        if !seen.contains(&config) {
            seen.push(config);
            let extends = raw.get(config).map(|raw| raw.extends.as_slice());
            open.extend(extends.unwrap_or_default().iter().map(String::as_str));
        }
    }
    false
}

/// Compiler option of a configuration or of what it extends, with the configuration that has it.
fn inherited<'r>(
    raw: &'r BTreeMap<String, Raw>,
    config: &'r str,
    option: &str,
    depth: usize,
) -> Option<(&'r str, &'r Value)> {
    let own = raw.get(config).filter(|_| depth > 0)?;
    if let Some(value) = own
        .json
        .get("compilerOptions")
        .and_then(|options| options.get(option))
    {
        return Some((config, value));
    }
    let mut bases = own.extends.iter().rev();
    bases.find_map(|base| inherited(raw, base, option, depth - 1))
}

/// A text, or the texts of a list.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let single = value.and_then(Value::as_str);
    let list = value.and_then(Value::as_array).into_iter().flatten();
    single.into_iter().chain(list.filter_map(Value::as_str))
}
