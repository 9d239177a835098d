//! A policy that remembers the calls it evaluates, and lists all of its memory in its denials.
//!
//! The argument `label` of the evaluated call selects what the policy does.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::export_policy;
use tollgate_sdk::policy::{
    CannotJudge, Denial, MemoryError, Outcome, Phase, Policy, PolicyCx, Question, Request, Review, Verdict,
};

/// A policy without settings.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyMemory {}

impl Policy for PolicyMemory {
    const NAME: &'static str = "policy-memory";
    const SUMMARY: &'static str = "Remembers what it judged.";
    const PHASE: Phase = Phase::Both;

    fn before(&self, cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let memory = cx.memory();
        memory.add(&format!("before/{}", request.tool), 1, None)?;
        match label(request) {
            "deny" => {
                memory.add("denied", 1, None)?;
                Ok(Denial::new("DENIED", told(cx)?).into())
            }
            "schema" => {
                let schema = cx.input_schema().unwrap_or_default();
                Ok(Denial::new("SCHEMA", schema.to_string()).into())
            }
            "short" => {
                memory.add("short", 1, Some(request.at))?;
                Ok(Verdict::Pass)
            }
            "text" => {
                memory.put("text", "first", None)?;
                memory.forget("denied")?;
                memory.put("text", "second", None)?;
                Ok(Verdict::Pass)
            }
            "fail" => {
                memory.add("never", 1, None)?;
                Err("it cannot judge".into())
            }
            "fill" => {
                let fill = (0..60).try_for_each(|place| {
                    memory.put(
                        &format!("fill/{}/{place}", request.op_id),
                        "x".repeat(4_000),
                        None,
                    )
                });
                match fill {
                    Err(MemoryError::Full(bytes)) => Ok(Denial::new("FULL", format!("{bytes} bytes")).into()),
                    filled => Ok(filled.map(|()| Denial::new("FILLED", "there was room").into())?),
                }
            }
            "ask" | "propose" => {
                let times = memory.add("asked", 1, None)?;
                let otherwise = Denial::new("NOT_ALLOWED", "nobody agreed").remediation("Get a yes.");
                let question = Question::new(format!("Asked {times} times. Go on?"), otherwise).key("go on");
                if label(request) == "ask" {
                    return Ok(Verdict::Ask(question));
                }
                let mut arguments = request.arguments.clone();
                arguments.insert("label".to_owned(), "agreed".into());
                Ok(Verdict::Ask(question.arguments(arguments)))
            }
            _ => Ok(Verdict::Pass),
        }
    }

    fn after(&self, cx: &PolicyCx<'_>, request: &Request, _: &Outcome) -> Result<Review, CannotJudge> {
        cx.memory().add(&format!("after/{}", request.tool), 1, None)?;
        Ok(match label(request) {
            "withhold" => Denial::new("WITHHELD", told(cx)?).into(),
            _ => Review::Pass,
        })
    }
}
export_policy!(PolicyMemory);

fn label(request: &Request) -> &str {
    request
        .arguments
        .get("label")
        .and_then(|label| label.as_str())
        .unwrap_or_default()
}

/// Everything in the policy's memory, except the entries that fill it up.
fn told(cx: &PolicyCx<'_>) -> Result<String, CannotJudge> {
    let entries = cx
        .memory()
        .list("", None, 200)?
        .into_iter()
        .filter(|entry| !entry.key.starts_with("fill/"));
    let told = entries.map(|entry| match entry.text {
        Some(text) => format!("{}={text}", entry.key),
        None => format!("{}={}", entry.key, entry.number),
    });
    Ok(told.collect::<Vec<_>>().join(" "))
}
