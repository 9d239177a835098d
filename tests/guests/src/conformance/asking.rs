//! Tools that ask the client: its user, its model, and for its folders.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{Action, Answer, Cx, Effect, Question, Tier, Tool, ToolError};

use super::Said;

/// Form for a person's name.
#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Name of the user, for example Ada.
    name: String,
}

/// Form for a yes or no.
#[derive(Deserialize, JsonSchema)]
struct Ok_ {
    /// True if the user agrees.
    ok: bool,
}

/// Form for a colour.
#[derive(Deserialize, JsonSchema)]
struct Colour {
    /// Colour that the user chooses.
    color: String,
}

fn needs(question: Question) -> ToolError {
    ToolError::new(
        "ANSWER_NEEDED",
        format!("the user has to answer: {}", question.message),
    )
    .ask(question)
}

/// Returns the form of an answer, or the error that asks for it.
pub(super) fn form<T: serde::de::DeserializeOwned + JsonSchema>(
    cx: &Cx<'_>,
    key: &str,
    message: &str,
) -> Result<T, ToolError> {
    cx.answer(key)
        .and_then(Answer::form)
        .ok_or_else(|| needs(Question::new::<T>(key, message)))
}

tool!(
    /// Ask for the user's name and return a greeting.
    AskName, "test_input_required_result_elicitation", Read, |cx| {
        let name: Name = form(cx, "user_name", "What is your name?")?;
        Ok(Said::new(format!("Hello, {}!", name.name)))
    }
);
tool!(
    /// Ask a question and store a state with it.
    AskState, "test_input_required_result_request_state", Read, |cx| confirm(cx)
);
tool!(
    /// Ask a question and detect a changed state.
    AskTampered, "test_tampered_state" = "test_input_required_result_tampered_state", Read, |cx| confirm(cx)
);
tool!(
    /// Ask two questions, the second one after the first answer.
    AskRounds, "test_input_required_result_multi_round", Write, |cx| {
        let name = match (cx.answer("step1").and_then(Answer::form::<Name>), cx.remembered()) {
            (Some(name), _) => name.name,
            (None, Some(name)) if name != "round 1" => name.to_owned(),
            _ => return Err(form::<Name>(cx, "step1", "Step 1: What is your name?").err().map_or_else(
                || ToolError::new("ANSWER_NEEDED", "a name is needed"),
                |err| err.remember("round 1"),
            )),
        };
        let colour: Colour = form(cx, "step2", "Step 2: What is your favorite color?")
            .map_err(|err| err.remember(name.clone()))?;
        Ok(Said::new(format!("{name} likes {}.", colour.color)))
    }
);

tool!(
    /// Ask the client's model.
    AskModel, "test_input_required_result_sampling", Read, |cx| {
        let said = model(cx, "capital_question", "What is the capital of France?", 100)?;
        Ok(Said::new(said))
    }
);
tool!(
    /// Ask for the client's folders.
    AskRoots, "test_input_required_result_list_roots", Read, |cx| Ok(Said::new(roots(cx)?))
);
tool!(
    /// Ask the user, the model and for the folders at once.
    AskEverything, "test_multiple_inputs" = "test_input_required_result_multiple_inputs", Read, |cx| {
        let name = form::<Name>(cx, "user_name", "What is your name?");
        let greeting = model(cx, "greeting", "Generate a greeting", 50);
        match (name, greeting, roots(cx)) {
            (Ok(name), Ok(greeting), Ok(roots)) => {
                Ok(Said::new(format!("{greeting} {} has {roots}", name.name)))
            }
            (name, greeting, roots) => Err(all([name.err(), greeting.err(), roots.err()])),
        }
    }
);
tool!(
    /// Ask the user or the model, depending on the client's capabilities.
    AskAnybody, "test_input_required_result_capabilities", Read, |cx| {
        match (form::<Name>(cx, "user_name", "What is your name?"), model(cx, "name", "Make up a name.", 20)) {
            (Ok(name), _) => Ok(Said::new(name.name)),
            (_, Ok(name)) => Ok(Said::new(name)),
            (user, model) => Err(all([user.err(), model.err()])),
        }
    }
);
tool!(
    /// Require a client with a model.
    MissingCapability, "test_missing_capability", Read, |cx| {
        Ok(Said::new(model(cx, "more", "Go on.", 20)?))
    }
);
tool!(
    /// Report progress, then ask.
    StreamingElicitation, "test_streaming_elicitation", Run, |cx| {
        cx.progress(1, Some(2), "about to ask");
        let name: Name = form(cx, "user_name", "What is your name?")?;
        Ok(Said::new(name.name))
    }
);

fn model(cx: &Cx<'_>, key: &str, message: &str, max_tokens: u32) -> Result<String, ToolError> {
    let said = cx.answer(key).and_then(Answer::text).map(str::to_owned);
    said.ok_or_else(|| needs(Question::to_model(key, message, max_tokens)))
}

fn roots(cx: &Cx<'_>) -> Result<String, ToolError> {
    match cx.answer("client_roots") {
        Some(answer) => Ok(answer.roots().collect::<Vec<_>>().join(", ")),
        None => Err(needs(Question::for_roots("client_roots"))),
    }
}

/// Combines the questions of several errors into one.
fn all<const N: usize>(refusals: [Option<ToolError>; N]) -> ToolError {
    let asked = refusals
        .into_iter()
        .flatten()
        .filter_map(|refusal| refusal.asking);
    let questions = asked.flat_map(|asking| asking.questions);
    let needs = ToolError::new("ANSWER_NEEDED", "several answers are needed").remember("asked");
    questions.fold(needs, ToolError::ask)
}

fn confirm(cx: &Cx<'_>) -> Result<Said, ToolError> {
    let answer: Ok_ = form(cx, "confirm", "Please confirm").map_err(|err| err.remember("asked"))?;
    match cx.remembered() {
        Some("asked") => Ok(Said::new(format!("state-ok, confirmed: {}", answer.ok))),
        _ => Err(needs(Question::new::<Ok_>("confirm", "Please confirm")).remember("asked")),
    }
}

/// Ask the user a question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Elicitation {
    /// Text of the question to the user.
    message: String,
}

impl Tool for Elicitation {
    const NAME: &'static str = "test_elicitation";
    const TITLE: &'static str = "Elicitation";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Said;

    fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
        let form = json!({
            "type": "object",
            "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            },
            "required": ["username", "email"],
        });
        let answer = cx
            .answer("user")
            .ok_or_else(|| needs(Question::with_form("user", self.message, form)))?;
        Ok(Said::new(format!("User response: {}", told(answer))))
    }
}

/// Ask the client's model a question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sampling {
    /// Text of the question to the model.
    prompt: String,
}

impl Tool for Sampling {
    const NAME: &'static str = "test_sampling";
    const TITLE: &'static str = "Sampling";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Said;

    fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
        let said = model(cx, "prompt", &self.prompt, 100)?;
        Ok(Said::new(format!("LLM response: {said}")))
    }
}

fn told(answer: &Answer) -> String {
    match answer.action {
        Action::Accept => format!("action={}, content={}", answer.action.as_str(), answer.content),
        other => format!("action={}", other.as_str()),
    }
}

tool!(
    /// Ask with a form whose fields have defaults.
    Defaults, "test_elicitation_sep1034_defaults", Read, |cx| {
        let form = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            },
            "required": [],
        });
        completed(cx, form)
    }
);
tool!(
    /// Ask with a form of every kind of choice.
    Enums, "test_elicitation_sep1330_enums", Read, |cx| {
        let titled = |one: &str, two: &str, three: &str, titles: [&str; 3]| {
            json!([{"const": one, "title": titles[0]}, {"const": two, "title": titles[1]}, {"const": three, "title": titles[2]}])
        };
        let form = json!({
            "type": "object",
            "properties": {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string",
                    "oneOf": titled("value1", "value2", "value3", ["First Option", "Second Option", "Third Option"])},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
                "titledMulti": {"type": "array",
                    "items": {"anyOf": titled("value1", "value2", "value3", ["First Choice", "Second Choice", "Third Choice"])}},
            },
            "required": [],
        });
        completed(cx, form)
    }
);

fn completed(cx: &Cx<'_>, form: serde_json::Value) -> Result<Said, ToolError> {
    let answer = cx
        .answer("form")
        .ok_or_else(|| needs(Question::with_form("form", "Please look at these values", form)))?;
    Ok(Said::new(format!("Elicitation completed: {}", told(answer))))
}
