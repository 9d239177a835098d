//! Parser errors, reworded for people.

use crate::refusal::Refusal;

/// Longest word of a text that is shown.
const MAX_SHOWN: usize = 60;

/// Parser error as a sentence: the misplaced word, and the expected ones.
pub(super) fn plainly(reason: &str) -> String {
    let reason = reason.split(" at Line:").next().unwrap_or(reason);
    let Some((expected, found)) = reason
        .strip_prefix("Expected: ")
        .and_then(|rest| rest.rsplit_once(", found: "))
    else {
        return "the statement cannot be parsed".to_owned();
    };
    let wanted = wanted(expected);
    match found {
        "EOF" => format!("the statement ends where {wanted} is expected"),
        found => {
            let word: String = found.chars().take(MAX_SHOWN).collect();
            format!("`{word}` appears where {wanted} is expected")
        }
    }
}

/// Expected tokens, as part of a sentence.
fn wanted(expected: &str) -> String {
    let plain = match expected.trim_end_matches('.') {
        "end of statement" | "EOF" => "the end of the statement",
        "an expression" | "an expression:" => "an expression",
        "identifier" | "identifier after AS" => "a name",
        "literal int" | "a value" | "a concrete value" | "literal number" => "a value",
        "a data type name" => "a type (TEXT, BIGINT, INTEGER, DOUBLE, BLOB)",
        "column name or constraint definition" => "a column or a constraint",
        "',' or ')' after column definition" => "`,` or `)` after a column",
        "joined table" => "a table to join",
        "an object type after CREATE" => "`TABLE`, `INDEX` or `UNIQUE INDEX`",
        drop if drop.ends_with("after DROP") => "`TABLE` or `INDEX`",
        alter if alter.ends_with("after ALTER TABLE") => {
            "`ADD COLUMN`, `RENAME COLUMN`, `RENAME TO`, `DROP COLUMN` or `SET (append_only = true)`"
        }
        other => return quoted(other),
    };
    plain.to_owned()
}

/// Keywords and symbols in backticks, other words unchanged.
fn quoted(expected: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for word in expected.split_whitespace() {
        let bare = word.trim_matches(|sign| matches!(sign, '\'' | '"' | '`'));
        let (bare, comma) = match bare.strip_suffix(',') {
            Some(bare) if !bare.is_empty() => (bare, ","),
            _ => (bare, ""),
        };
        let is_sql = bare
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || letter == '_' || letter.is_ascii_punctuation());
        match is_sql && !bare.is_empty() {
            true => parts.push(format!("`{bare}`{comma}")),
            false => parts.push(format!("{bare}{comma}")),
        }
    }
    parts.join(" ").replace("one of ", "one of these: ")
}

/// Combines the refusals of a call's statement. Lists what is allowed only once.
pub(super) fn together(refusals: Vec<Refusal>, allowed: &str) -> Refusal {
    let tail = format!("; {allowed}");
    let mut refusals = refusals.into_iter();
    match (refusals.next(), refusals.len()) {
        (Some(only), 0) => only,
        (first, _) => {
            let reasons = first
                .into_iter()
                .chain(refusals)
                .map(|refusal| refusal.to_string());
            let reasons: Vec<String> = reasons
                .map(|reason| reason.strip_suffix(&tail).map_or(reason.clone(), str::to_owned))
                .collect();
            Refusal::NotAllowed(format!("{}{tail}", reasons.join("; ")))
        }
    }
}
