//! Decisions that only a person may take: at a terminal, or as the client's user.
//!
//! A model fills in arguments, so no argument proves a person. An answer to a question comes from the client's program,
//! or from the host, which asks the person at its terminal.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Question, ToolError};

use crate::arguments::clip_to;
use crate::digest::digest;

/// Key of the question.
const QUESTION_KEY: &str = "consent";

/// Answer of a person.
#[derive(Debug, Deserialize, JsonSchema)]
struct Consent {
    /// True to allow this change.
    allow: bool,
}

/// Returns who allows a change, or asks. `tool` is the call that a person can make at a terminal.
pub(crate) fn allows(cx: &Cx<'_>, change: &str, tool: &str) -> Result<&'static str, ToolError> {
    // An answer counts only for the question that was asked about this change.
    let state = digest(change);
    if let Some(answer) = cx
        .answer(QUESTION_KEY)
        .filter(|_| cx.remembered() == Some(&state))
    {
        return match answer.form::<Consent>() {
            Some(Consent { allow: true }) if cx.is_at_terminal() => Ok("a person at the terminal"),
            Some(Consent { allow: true }) => Ok("the client's user"),
            _ => Err(
                ToolError::new("PERSON_DECLINED", format!("a person declined: {change}"))
                    .remediation("Continue without this change, or ask the person what to do instead."),
            ),
        };
    }
    let message = clip_to(change, 1_500);
    Err(ToolError::new("PERSON_REQUIRED", format!("only a person may decide this: {message}"))
        .remediation(format!(
            "Tell the user that a person must run this call in a terminal and type the code that it shows: tollgate \
             call {tool} 'ARGUMENTS', with the arguments of this call. Through a pipe or an agent's shell, the call is \
             refused."
        ))
        .ask(Question::new::<Consent>(QUESTION_KEY, format!("Allow this change of a running job? {message}")))
        .remember(state))
}
