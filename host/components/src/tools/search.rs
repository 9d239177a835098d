//! Tool search by free text. Pure, over the definitions alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::spec::ToolSpec;

/// Weight of a word by its place in a tool's definition.
const IN_NAME: f64 = 6.0;
const IN_TITLE: f64 = 3.0;
const IN_DESCRIPTION: f64 = 1.5;
const IN_ARGUMENT: f64 = 2.0;
const IN_ARGUMENT_DESCRIPTION: f64 = 0.4;

/// Factor for a word that is only similar to the requested one.
const PREFIX_FACTOR: f64 = 0.6;
const SYNONYM_FACTOR: f64 = 0.5;
const MISSPELT_FACTOR: f64 = 0.4;

/// Most names that are suggested for an unknown one.
const MAX_NEAR: usize = 3;

/// Stop words that say nothing about a tool.
const STOP_WORDS: &[&str] = &[
    "a", "all", "an", "and", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it",
    "me", "my", "of", "on", "or", "that", "the", "this", "to", "tool", "want", "what", "which", "with",
];

/// Synonyms in the names and descriptions of tools.
const SYNONYMS: &[&[&str]] = &[
    &[
        "create", "add", "new", "make", "open", "insert", "record", "register",
    ],
    &["delete", "remove", "drop", "discard", "archive"],
    &["get", "show", "read", "view", "fetch", "describe", "inspect"],
    &["list", "find", "search", "query", "lookup"],
    &["update", "edit", "change", "modify", "set", "patch"],
    &["complete", "finish", "close", "done", "end"],
    &["start", "begin", "run", "execute", "launch"],
    &["claim", "lease", "lock", "take", "acquire"],
    &["history", "event", "log", "journal", "timeline"],
    &["next", "ready", "todo"],
    &["test", "check", "verify", "validate"],
    &["limit", "budget", "quota"],
    &["dependency", "blocker", "blocked", "requires"],
];

/// Words of a set of tools, and the tools in which each occurs.
pub struct Index {
    names: Vec<String>,
    words: BTreeMap<String, Vec<Occurrence>>,
}

/// Occurrence of a word in a tool's definition.
struct Occurrence {
    tool: usize,
    weight: f64,
}

impl Index {
    /// Index of these tools.
    pub fn of<'a>(tools: impl Iterator<Item = &'a ToolSpec>) -> Index {
        let mut index = Index {
            names: Vec::new(),
            words: BTreeMap::new(),
        };
        for spec in tools {
            for (word, weight) in weighted(spec) {
                let tool = index.names.len();
                index
                    .words
                    .entry(word)
                    .or_default()
                    .push(Occurrence { tool, weight });
            }
            index.names.push(spec.name.clone());
        }
        index
    }

    /// Names of the tools that match a query, best first.
    pub fn search(&self, query: &str) -> Vec<&str> {
        let mut asked: Vec<String> = words(query);
        if asked.iter().any(|word| !STOP_WORDS.contains(&word.as_str())) {
            asked.retain(|word| !STOP_WORDS.contains(&word.as_str()));
        }
        let asked: BTreeSet<String> = asked.iter().map(|word| stem(word)).collect();
        let mut scores = vec![(0.0_f64, 0_usize); self.names.len()];
        for word in &asked {
            for (score, best) in scores.iter_mut().zip(self.weights(word)) {
                if best > 0.0 {
                    *score = (score.0 + best, score.1 + 1);
                }
            }
        }
        let whole = words(query).join("_");
        let mut found: Vec<(f64, &str)> = scores
            .into_iter()
            .zip(&self.names)
            .filter(|((score, _), _)| *score > 0.0)
            .map(|((score, matched), name)| {
                let coverage = count(matched) / count(asked.len());
                let exact = if *name == whole { 1000.0 } else { 0.0 };
                (score * coverage + exact, name.as_str())
            })
            .collect();
        found.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// Known names that are similar to an unknown one.
    pub fn near(&self, name: &str) -> Vec<&str> {
        let name = tollgate_core::text::cut(name, 64).to_lowercase();
        let close = name.len() / 3 + 1;
        let mut near: Vec<(usize, &str)> = self
            .names
            .iter()
            .map(|known| (strsim::damerau_levenshtein(known, &name), known.as_str()))
            .filter(|(distance, _)| *distance <= close)
            .collect();
        near.sort_unstable();
        let mut names: Vec<&str> = near.into_iter().map(|(_, name)| name).collect();
        for found in self.search(&name) {
            if !names.contains(&found) {
                names.push(found);
            }
        }
        names.truncate(MAX_NEAR);
        names
    }

    /// Weight of a word for each tool.
    fn weights(&self, word: &str) -> Vec<f64> {
        let same: Vec<String> = SYNONYMS
            .iter()
            .filter(|group| group.iter().any(|member| stem(member) == word))
            .flat_map(|group| group.iter().map(|member| stem(member)))
            .collect();
        let mut weights = vec![0.0_f64; self.names.len()];
        for (known, occurrences) in &self.words {
            let likeness = likeness(word, known, &same);
            if likeness == 0.0 {
                continue;
            }
            // A word that occurs everywhere says little.
            let rarity = (1.0 + count(self.names.len()) / count(occurrences.len())).ln();
            for occurrence in occurrences {
                if let Some(weight) = weights.get_mut(occurrence.tool) {
                    *weight = weight.max(occurrence.weight * likeness * rarity);
                }
            }
        }
        weights
    }
}

/// Similarity of a requested word to a known one, from 0 to 1.
fn likeness(asked: &str, known: &str, same: &[String]) -> f64 {
    if asked == known {
        return 1.0;
    }
    if asked.len() >= 3 && known.starts_with(asked) {
        return PREFIX_FACTOR;
    }
    if same.iter().any(|word| word == known) {
        return SYNONYM_FACTOR;
    }
    let slips = match asked.len() {
        0..4 => return 0.0,
        4..8 => 1,
        _ => 2,
    };
    let is_near =
        asked.len().abs_diff(known.len()) <= slips && strsim::damerau_levenshtein(asked, known) <= slips;
    if is_near { MISSPELT_FACTOR } else { 0.0 }
}

/// Words of a definition, each with its highest weight.
fn weighted(spec: &ToolSpec) -> BTreeMap<String, f64> {
    let mut weighted = BTreeMap::new();
    let mut add = |text: &str, weight: f64| {
        for word in words(text) {
            let known: &mut f64 = weighted.entry(stem(&word)).or_default();
            *known = known.max(weight);
        }
    };
    add(&spec.name, IN_NAME);
    for alias in &spec.aliases {
        add(alias, IN_NAME);
    }
    add(&spec.title, IN_TITLE);
    add(&spec.description, IN_DESCRIPTION);
    let properties = spec.input_schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        add(name, IN_ARGUMENT);
        let description = property.get("description").and_then(Value::as_str);
        add(description.unwrap_or_default(), IN_ARGUMENT_DESCRIPTION);
    }
    weighted
}

/// The words of a text, in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Stem of a word, as far as possible without a dictionary.
fn stem(word: &str) -> String {
    let plain = |ending: &str, least: usize| word.strip_suffix(ending).filter(|rest| rest.len() >= least);
    if let Some(rest) = plain("ies", 2) {
        return format!("{rest}y");
    }
    let rest = plain("ing", 3)
        .or_else(|| plain("ed", 3))
        .or_else(|| plain("s", 3).filter(|rest| !rest.ends_with(['s', 'u', 'i'])))
        .unwrap_or(word);
    let rest = rest
        .strip_suffix('e')
        .filter(|rest| rest.len() >= 3)
        .unwrap_or(rest);
    rest.to_owned()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "there are never more than some thousand tools"
)]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Map, json};

    use super::super::tests;
    use super::*;

    fn spec(name: &str, title: &str, description: &str, arguments: Value) -> ToolSpec {
        let properties: Map<String, Value> = arguments
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, about)| (name.clone(), json!({"type": "string", "description": about})))
            .collect();
        ToolSpec {
            name: name.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            ..tests::spec(json!({"type": "object", "properties": properties}))
        }
    }

    fn index() -> Index {
        let tools = [
            spec(
                "task_create",
                "Create a task",
                "Create a task with a specification.",
                json!({"title": "A few words."}),
            ),
            spec(
                "task_list",
                "List tasks",
                "List tasks of a workspace.",
                json!({"workspace": "Only of this one."}),
            ),
            spec(
                "task_claim",
                "Claim a task",
                "Take a task for a while.",
                json!({"lease_sec": "For how long."}),
            ),
            spec(
                "test_run",
                "Run tests",
                "Run a registered test command.",
                json!({"command": "Its name."}),
            ),
            spec(
                "decision_record",
                "Record a decision",
                "Keep a decision with its reason.",
                json!({"reason": "Why."}),
            ),
            spec(
                "envelope_open",
                "Open an envelope",
                "Open an envelope, a bounded piece of work.",
                json!({"limits": "Its limits."}),
            ),
            spec(
                "repo_map_query",
                "Query the map",
                "Find files of a repository by path or language.",
                json!({"path": "A glob."}),
            ),
        ];
        Index::of(tools.iter())
    }

    #[test]
    fn the_best_comes_first() {
        let index = index();
        let mut told = String::new();
        for query in [
            "task_create",
            "Task Create",
            "add a task",
            "creating tasks",
            "lease",
            "why was this decided",
            "budget",
            "run the tests",
            "taks",
            "repositories",
            "dec",
            "how do I",
            "zebra",
            "",
            "💥 \u{0}",
        ] {
            told += &format!("{query:?}: {}\n", index.search(query).join(" "));
        }
        expect![[r#"
            "task_create": task_create task_claim task_list decision_record envelope_open test_run
            "Task Create": task_create task_claim task_list decision_record envelope_open test_run
            "add a task": task_create task_claim task_list decision_record envelope_open test_run
            "creating tasks": task_create task_claim task_list decision_record envelope_open test_run
            "lease": task_claim
            "why was this decided": decision_record
            "budget": envelope_open
            "run the tests": test_run
            "taks": task_claim
            "repositories": repo_map_query
            "dec": decision_record
            "how do I": task_claim
            "zebra": 
            "": 
            "💥 \0": 
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn a_name_that_does_not_exist_has_neighbours() {
        let index = index();
        let mut told = String::new();
        for name in [
            "task_creat",
            "create_task",
            "tasks_list",
            "run_tests",
            "xyzzy",
            "",
            "\u{fffd}",
        ] {
            told += &format!("{name:?}: {}\n", index.near(name).join(" "));
        }
        expect![[r#"
            "task_creat": task_create task_claim task_list
            "create_task": task_create task_claim task_list
            "tasks_list": task_list task_claim task_create
            "run_tests": test_run
            "xyzzy": 
            "": 
            "�": 
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn endings_do_not_matter() {
        for group in [
            &["create", "creates", "created", "creating"][..],
            &["query", "queries"],
            &["task", "tasks"],
        ] {
            let stems: BTreeSet<String> = group.iter().map(|word| stem(word)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
        for word in ["status", "process", "as", "ing", "s", "é"] {
            assert_eq!(stem(word), word);
        }
    }
}
