//! The ready gate: everything that is missing, each with the call that closes it.

use serde_json::json;
use tollgate_sdk::NextCall;

use crate::error::{Reason, Refusals};
use crate::model::{JobId, StepId};
use crate::plan::Plan;
use crate::step::StepSpec;

/// What the gate looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness<'a> {
    pub job: &'a JobId,
    pub goal: &'a str,
    pub repo_root: Option<&'a str>,
    pub plan: &'a Plan,
    pub steps: &'a [(StepId, &'a StepSpec)],
    /// The policies want a baseline of the repository.
    pub wants_baseline: bool,
    /// There is one.
    pub has_baseline: bool,
    /// Context blocks that steps name and that are not there.
    pub missing_contexts: &'a [(StepId, String)],
    /// Prompts that are longer than the limit even without any context.
    pub long_prompts: &'a [(StepId, usize)],
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gap {
    pub reason: Reason,
    pub next_call: NextCall,
}

/// Every gap, in the order of the interview.
pub(crate) fn gaps(ready: &Readiness<'_>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let job = ready.job;
    let mut gap = |code, field: &str, message: &str, tool: &str, key: &str, value: serde_json::Value| {
        gaps.push(Gap {
            reason: Reason::Gap {
                code,
                field: field.to_owned(),
                message: message.to_owned(),
            },
            next_call: NextCall::new(tool, json!({"job_id": job, key: value})),
        });
    };
    if ready.goal.trim().is_empty() {
        let answers = json!({"goal": "<one sentence>"});
        gap(
            "GOAL_MISSING",
            "goal",
            "there is no goal",
            "conductor_answer",
            "answers",
            answers,
        );
    }
    let plan = ready.plan;
    if plan.deliverables.as_ref().is_none_or(Vec::is_empty) {
        let value = json!(["<one deliverable per entry>"]);
        let message = "there are no deliverables";
        gap(
            "DELIVERABLES_MISSING",
            "deliverables",
            message,
            "plan_set_deliverables",
            "deliverables",
            value,
        );
    }
    if plan.definition_of_done.as_ref().is_none_or(Vec::is_empty) {
        let (tool, key) = ("plan_set_definition_of_done", "definition_of_done");
        let value = json!(["<one condition per entry>"]);
        gap(
            "DEFINITION_OF_DONE_MISSING",
            key,
            "nothing says what done means",
            tool,
            key,
            value,
        );
    }
    if plan.invariants.is_none() {
        let message = "there are no invariants; an empty list is enough";
        gap(
            "INVARIANTS_MISSING",
            "invariants",
            message,
            "plan_set_invariants",
            "invariants",
            json!([]),
        );
    }
    if plan.repo_exists == Some(true) && ready.repo_root.is_none() {
        let answers = json!({"repo_root": "<name of a workspace>"});
        gap(
            "REPO_ROOT_MISSING",
            "repo_root",
            "nothing says where the repository is",
            "conductor_answer",
            "answers",
            answers,
        );
    }
    if ready.steps.is_empty() {
        let steps = json!([{"title": "<a short title>"}]);
        gap(
            "STEPS_MISSING",
            "steps",
            "there are no steps",
            "plan_propose_steps",
            "steps",
            steps,
        );
    }
    gaps.extend(baseline_gap(ready));
    gaps.extend(ready.steps.iter().flat_map(|(id, spec)| step_gaps(job, id, spec)));
    gaps.extend(reference_gaps(ready));
    gaps
}

fn baseline_gap(ready: &Readiness<'_>) -> Option<Gap> {
    (ready.wants_baseline && ready.repo_root.is_some() && !ready.has_baseline).then(|| Gap {
        reason: Reason::Gap {
            code: "BASELINE_MISSING",
            field: "repo_root".to_owned(),
            message: "the policies want a baseline of the repository and there is none".to_owned(),
        },
        next_call: NextCall::new(
            "context_add_block",
            json!({"job_id": ready.job, "block_type": "REPO_MAP", "content": "<entry points, modules, conventions>"}),
        ),
    })
}

fn step_gaps(job: &JobId, id: &StepId, spec: &StepSpec) -> Vec<Gap> {
    let close = |code| match code {
        "STEP_INSTRUCTION_MISSING" => json!({"instruction_prompt": "<what to do>"}),
        "STEP_CRITERIA_MISSING" => json!({"acceptance_criteria": ["<one criterion per entry>"]}),
        _ => json!({"required_evidence": {"changed_files": "array"}}),
    };
    spec.gaps()
        .into_iter()
        .map(|(code, fault)| step_gap(job, id, code, format!("step {id} {fault}"), close(code)))
        .collect()
}

fn reference_gaps(ready: &Readiness<'_>) -> Vec<Gap> {
    let contexts = ready.missing_contexts.iter().map(|(id, context)| {
        let kept = ready.steps.iter().find(|(step, _)| step == id).map(|(_, spec)| {
            let refs = spec.context_refs.iter();
            refs.filter(|other| *other != context)
                .cloned()
                .collect::<Vec<_>>()
        });
        let message = format!("step {id} names the context block {context}, which is not there");
        let set = json!({"context_refs": kept.unwrap_or_default()});
        step_gap(ready.job, id, "CONTEXT_MISSING", message, set)
    });
    let prompts = ready.long_prompts.iter().map(|(id, length)| Gap {
        reason: Reason::Gap {
            code: "PROMPT_TOO_LONG",
            field: id.to_string(),
            message: format!("the prompt of step {id} has {length} characters without any context"),
        },
        next_call: NextCall::new(
            "job_update_policies",
            json!({"job_id": ready.job, "policies": {"prompt_max_chars": (length + 4_000).min(100_000)}}),
        ),
    });
    contexts.chain(prompts).collect()
}

fn step_gap(job: &JobId, id: &StepId, code: &'static str, message: String, set: serde_json::Value) -> Gap {
    let edit = json!({"op": "update", "step_id": id, "set": set});
    Gap {
        reason: Reason::Gap {
            code,
            field: id.to_string(),
            message,
        },
        next_call: NextCall::new("plan_refine_steps", json!({"job_id": job, "edits": [edit]})),
    }
}

/// Refuses while there are gaps.
pub(crate) fn refuse(gaps: Vec<Gap>) -> Result<(), tollgate_sdk::ToolError> {
    let mut refusals = Refusals::default();
    for gap in gaps {
        refusals.add_with(gap.reason, Some(gap.next_call));
    }
    refusals.finish().map_err(|mut err| {
        let count = err.blockers.len();
        err.code = "PLAN_INCOMPLETE".to_owned();
        err.message = match count {
            1 => "the plan has 1 gap".to_owned(),
            _ => format!("the plan has {count} gaps"),
        };
        err
    })
}
