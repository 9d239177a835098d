//! Tools that a client may have to call through `tool_call`, because the default list leaves them out.

use tollgate_sdk::Tier;

/// Tools that only people call. Texts for clients do not say how to call them.
const PEOPLE_TOOLS: &[&str] = &["step_approve"];

/// Checks whether every client sees a tool. Words that are not tools of the pack count as listed.
pub(crate) fn is_listed(tool: &str) -> bool {
    let found = crate::PACK.tools.iter().find(|entry| entry.name == tool);
    found.is_none_or(|entry| entry.tier == Tier::Core)
}

/// Tools in a text that a client may not see, each once, in their order.
pub(crate) fn unlisted(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
    for word in words.filter(|word| word.contains('_') && !is_listed(word)) {
        if !names.contains(&word) && !PEOPLE_TOOLS.contains(&word) {
            names.push(word);
        }
    }
    names
}

/// Sentence on how to call the tools in a text that a client may not see; `None` if there are none, or if the text
/// says it.
pub(crate) fn how_to_call(text: &str) -> Option<String> {
    let names = unlisted(text);
    match names.is_empty() || text.contains("tool_call") {
        true => None,
        false => Some(format!(
            "If your tool list lacks {}, use tool_call.",
            names.join(", ")
        )),
    }
}

/// Text with a sentence on how to call the tools in it that a client may not see.
pub(crate) fn with_calls(mut text: String) -> String {
    if let Some(how) = how_to_call(&text) {
        if !text.is_empty() && !text.ends_with(['\n', ' ']) {
            text.push(if text.contains('\n') { '\n' } else { ' ' });
        }
        text.push_str(&how);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_may_be_missing_are_explained() {
        assert_eq!(
            unlisted("job_start, then job_get and git_commit; job_get again; job_got"),
            ["job_get", "git_commit"]
        );
        assert_eq!(with_calls("Call job_start.".to_owned()), "Call job_start.");
        assert_eq!(
            with_calls("Call job_get.".to_owned()),
            "Call job_get. If your tool list lacks job_get, use tool_call."
        );
        let told = "Call job_get through tool_call.".to_owned();
        assert_eq!(with_calls(told.clone()), told);
    }
}
