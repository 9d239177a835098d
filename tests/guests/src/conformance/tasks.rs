//! Tools whose calls take long, for clients with MCP's extension for tasks.

use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use tollgate_sdk::{Answer, Cx, Effect, Question, Tier, Tool, ToolError};

use super::Said;

/// Longer than the host lets a client wait for a reply before the call becomes a task.
const LONG: Duration = Duration::from_millis(600);

/// Form for a yes or no.
#[derive(Deserialize, JsonSchema)]
struct Confirm {
    /// True if the user agrees.
    confirm: bool,
}

/// Form for a name.
#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Name of the user, for example Ada.
    name: String,
}

/// Declares a tool with a struct of arguments.
macro_rules! tool {
    ($name:ident, $tool:literal, $effect:ident, $run:expr) => {
        impl Tool for $name {
            const NAME: &'static str = $tool;
            const TITLE: &'static str = stringify!($name);
            const EFFECT: Effect = Effect::$effect;
            const TIER: Tier = Tier::Core;
            type Output = Said;

            fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
                let run: fn($name, &Cx<'_>) -> Result<Said, ToolError> = $run;
                run(self, cx)
            }

            fn text(output: &Said) -> Option<String> {
                Some(output.said.clone())
            }
        }
    };
}

/// Greet somebody.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Greet {
    /// Name of the person to greet, for example World.
    name: String,
}
tool!(Greet, "greet", Read, |greet, _| Ok(Said::new(format!(
    "Hello, {}!",
    greet.name
))));

/// Compute for some time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlowCompute {
    /// Seconds that the computation takes, for example 2.
    seconds: u32,
    /// Label of the result, for example night.
    #[serde(default)]
    label: String,
}
tool!(SlowCompute, "slow_compute", Run, |slow, _| {
    std::thread::sleep(Duration::from_secs(u64::from(slow.seconds)));
    Ok(Said::new(format!("computed {}", slow.label)))
});

/// Fail after a second. Only clients with tasks may call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-task" = "required"))]
pub(crate) struct FailingJob {}
tool!(FailingJob, "failing_job", Run, |_, _| {
    std::thread::sleep(Duration::from_secs(1));
    Err(ToolError::new("AS_ASKED", "this job always fails"))
});

/// Break off after a while.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProtocolErrorJob {}
tool!(ProtocolErrorJob, "protocol_error_job", Run, |_, _| {
    std::thread::sleep(LONG);
    panic!("as asked")
});

/// Delete a file, once the user has confirmed it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmDelete {
    /// Name of the file, for example notes.txt.
    filename: String,
}
tool!(ConfirmDelete, "confirm_delete", Run, |delete, cx| {
    std::thread::sleep(LONG);
    let message = format!("Delete {}?", delete.filename);
    let confirmed: Confirm =
        answered(cx, "confirm").ok_or_else(|| needed().ask(Question::new::<Confirm>("confirm", message)))?;
    Ok(Said::new(if confirmed.confirm { "deleted" } else { "kept" }))
});

/// Ask two questions at once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MultiInput {}
tool!(MultiInput, "multi_input", Run, |_, cx| {
    std::thread::sleep(LONG);
    match (answered::<Name>(cx, "name"), answered::<Confirm>(cx, "confirm")) {
        (Some(name), Some(_)) => Ok(Said::new(name.name)),
        _ => Err(needed()
            .ask(Question::new::<Name>("name", "What is your name?"))
            .ask(Question::new::<Confirm>("confirm", "Go on?"))),
    }
});

/// Ask for a name before the work that takes long. Only clients with tasks may call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-task" = "required"))]
pub(crate) struct ToolWithTask {}
tool!(ToolWithTask, "test_tool_with_task", Run, |_, cx| {
    let Some(answer) = cx.answer("user_name") else {
        return Err(needed().ask(Question::new::<Name>("user_name", "What is your name?")));
    };
    std::thread::sleep(LONG);
    Ok(Said::new(format!("Hello, {}!", answer.content)))
});

fn needed() -> ToolError {
    ToolError::new("ANSWER_NEEDED", "the user has to answer")
}

fn answered<T: serde::de::DeserializeOwned>(cx: &Cx<'_>, key: &str) -> Option<T> {
    cx.answer(key).and_then(Answer::form)
}
