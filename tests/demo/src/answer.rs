//! Answers of calls: values by path, and texts shortened for people.

use anyhow::Context as _;
use serde_json::Value;

/// Longest text value that is shown in full, in characters.
const TEXT: usize = 48;
/// Longest line of arguments, in characters.
const LINE: usize = 200;

/// A successful result.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) Value);

impl Answer {
    /// The value at a path such as `task.phase`, if it exists.
    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        path.split('.')
            .try_fold(&self.0, |value, part| match part.parse::<usize>() {
                Ok(index) => value.get(index),
                Err(_) => value.get(part),
            })
    }

    /// The text at a path.
    pub(crate) fn text(&self, path: &str) -> anyhow::Result<String> {
        let found = self.get(path).and_then(Value::as_str);
        found
            .map(str::to_owned)
            .with_context(|| format!("the result has no text at {path}: {}", self.0))
    }

    /// Fails unless the value at a path is exactly this one.
    pub(crate) fn wants(&self, path: &str, wanted: &Value) -> anyhow::Result<()> {
        let found = self.get(path);
        anyhow::ensure!(
            found == Some(wanted),
            "expected {path} = {wanted}, but got {found:?}"
        );
        Ok(())
    }

    /// The values at some paths, shortened, as one line. Absent ones are left out.
    pub(crate) fn summary(&self, paths: &[&str]) -> String {
        let parts = paths
            .iter()
            .filter_map(|path| Some(format!("{path} = {}", brief(self.get(path)?))));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// A value as one line of JSON in which long texts are cut.
pub(crate) fn brief(value: &Value) -> String {
    cut(&shortened(value).to_string(), LINE)
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&text.replace('\n', " "), TEXT)),
        Value::Array(items) => Value::Array(items.iter().map(shortened).collect()),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), shortened(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
