//! Verdict on a submitted commit: pure.

use serde_json::{Map, Value};

use super::known::{Commit, GitFacts};
use crate::arguments::clip;

/// Mark of the summary in a filled message template.
pub(crate) const SUMMARY_MARK: char = '\u{1}';

/// Rules for the commit of a submission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Filled message templates with [`SUMMARY_MARK`] in place of the summary. Empty accepts every message.
    pub messages: Vec<String>,
    /// Commits that other steps of this or another job were accepted with, and that step.
    pub used: Vec<(String, String)>,
    /// True if a batch is open, whose commit holds the work of several steps.
    pub in_batch: bool,
}

/// Reason why a commit does not count, if there is one.
pub(crate) fn fault(
    git: &GitFacts,
    hash: &str,
    evidence: &Map<String, Value>,
    rules: &Rules,
) -> Option<String> {
    let shown = clip(hash);
    let Some(commit) = &git.commit else {
        return Some(format!("commit {shown} is not in the repository"));
    };
    let why = match commit.standing {
        Commit::Unknown => "is not in the repository".to_owned(),
        Commit::Elsewhere => "is not part of the current branch".to_owned(),
        Commit::Old => "was there before the step began".to_owned(),
        Commit::New if commit.is_empty => "is empty, or changes nothing since the step began".to_owned(),
        Commit::New if commit.is_undone => {
            "has no net effect: its files are as they were when the step began".to_owned()
        }
        Commit::New => used(&commit.hash, rules)
            .or_else(|| foreign(&commit.files, evidence, rules))
            .or_else(|| misworded(&commit.message, rules))?,
    };
    Some(format!("commit {shown} {why}"))
}

/// A commit that an earlier step was accepted with.
fn used(hash: &str, rules: &Rules) -> Option<String> {
    let is_same = |given: &str| hash.starts_with(&given.to_lowercase());
    let (_, place) = rules.used.iter().find(|(given, _)| is_same(given))?;
    Some(format!("was already submitted for {place}"))
}

/// A commit without any of the claimed files.
fn foreign(files: &[String], evidence: &Map<String, Value>, rules: &Rules) -> Option<String> {
    let claimed = evidence.get("changed_files")?.as_array()?;
    let mut claimed = claimed.iter().filter_map(Value::as_str).peekable();
    claimed.peek()?;
    let has = |path: &str| {
        let path = path.strip_prefix("./").unwrap_or(path);
        files.iter().any(|file| file == path)
    };
    (!rules.in_batch && !claimed.any(has)).then(|| "has none of the files in changed_files".to_owned())
}

/// A message that does not follow the job's template.
fn misworded(message: &str, rules: &Rules) -> Option<String> {
    let follows = rules.messages.is_empty() || rules.messages.iter().any(|filled| fits(message, filled));
    let wanted = rules.messages.first()?.replace(SUMMARY_MARK, "<summary>");
    (!follows).then(|| {
        format!(
            "has the message {:?}, but the job's template requires {:?}; commit with git_commit, or amend the message",
            clip(message),
            clip(wanted.trim())
        )
    })
}

/// Checks a message against a filled template, in which [`SUMMARY_MARK`] stands for any text but none.
fn fits(message: &str, filled: &str) -> bool {
    let (message, filled) = (message.trim(), filled.trim());
    let mut parts = filled.split(SUMMARY_MARK);
    let Some(mut rest) = parts.next().and_then(|first| message.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((summary, after)) if !summary.trim().is_empty() || part.is_empty() => rest = after,
            _ => return false,
        }
    }
    // Trailers may follow the message.
    let found = match last.trim_end() {
        "" => Some(rest),
        last => rest.split_once(last).map(|(summary, _)| summary),
    };
    found.is_some_and(|summary| !summary.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_compared_with_the_template() {
        let cases = [
            ("S1: \u{1}\n", "S1: add a header", true),
            ("S1: \u{1}\n", "S1: add a header\n\nCo-authored-by: Ada", true),
            ("S1: \u{1}\n", "S1:", false),
            ("S1: \u{1}\n", "lol whatever", false),
            ("S1: \u{1}\n", "S2: add a header", false),
            ("\u{1} [S1]", "add a header [S1]", true),
            ("\u{1} [S1]", "add a header", false),
            ("\u{1} [S1]", " [S1]", false),
            ("feat: \u{1}\n\nJOB-1 \u{1}", "feat: x\n\nJOB-1 x", true),
        ];
        for (filled, message, expected) in cases {
            assert_eq!(fits(message, filled), expected, "{filled:?} {message:?}");
        }
    }
}
