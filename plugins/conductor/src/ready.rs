//! Ready gate: all gaps of a plan, each with the call that closes it.

use serde_json::json;
use tollgate_sdk::NextCall;

use crate::error::{Reason, Refusals};
use crate::interview::open_faults;
use crate::model::{JobId, StepId};
use crate::plan::Plan;
use crate::step::StepSpec;

/// Facts that the gate checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness<'a> {
    pub job: &'a JobId,
    pub goal: &'a str,
    pub repo_root: Option<&'a str>,
    pub plan: &'a Plan,
    pub steps: &'a [(StepId, &'a StepSpec)],
    /// True if a baseline snapshot can be taken, or the policies require one.
    pub wants_baseline: bool,
    /// True if the plan is large enough that the questions about its faults must be answered.
    pub wants_faults: bool,
    /// True if there is a baseline snapshot.
    pub has_baseline: bool,
    /// Context blocks that steps refer to and that do not exist.
    pub missing_contexts: &'a [(StepId, String)],
    /// Prompts that exceed the limit even without any context.
    pub long_prompts: &'a [(StepId, usize)],
}

/// A gap in a plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gap {
    pub reason: Reason,
    pub next_call: NextCall,
}

/// A field that a plan may lack.
struct Lack {
    code: &'static str,
    field: &'static str,
    message: &'static str,
    tool: &'static str,
}

const fn lack(code: &'static str, field: &'static str, message: &'static str, tool: &'static str) -> Lack {
    Lack {
        code,
        field,
        message,
        tool,
    }
}

/// Fields that a plan may lack, in the order of the interview.
const LACKS: &[Lack] = &[
    lack("GOAL_MISSING", "goal", "the job has no goal", "conductor_answer"),
    lack(
        "DELIVERABLES_MISSING",
        "deliverables",
        "the plan has no deliverables",
        "plan_set_deliverables",
    ),
    lack(
        "DEFINITION_OF_DONE_MISSING",
        "definition_of_done",
        "the plan has no definition of done",
        "plan_set_definition_of_done",
    ),
    lack(
        "INVARIANTS_MISSING",
        "invariants",
        "the plan has no invariants; an empty list is enough",
        "plan_set_invariants",
    ),
    lack(
        "REPO_ROOT_MISSING",
        "repo_root",
        "the job has no repo_root",
        "conductor_answer",
    ),
    lack(
        "STEPS_MISSING",
        "steps",
        "the plan has no steps",
        "plan_propose_steps",
    ),
];

impl Lack {
    fn holds(&self, ready: &Readiness<'_>) -> bool {
        let plan = ready.plan;
        match self.field {
            "goal" => ready.goal.trim().is_empty(),
            "deliverables" => plan.deliverables.as_ref().is_none_or(Vec::is_empty),
            "definition_of_done" => plan.definition_of_done.as_ref().is_none_or(Vec::is_empty),
            "invariants" => plan.invariants.is_none(),
            "repo_root" => plan.repo_exists == Some(true) && ready.repo_root.is_none(),
            _ => ready.steps.is_empty(),
        }
    }

    /// Arguments of the call that closes the gap, with placeholders for values that need thought.
    fn arguments(&self, job: &JobId) -> serde_json::Value {
        match self.field {
            "goal" => json!({"job_id": job, "answers": {"goal": "<one sentence>"}}),
            "deliverables" => json!({"job_id": job, "deliverables": ["<one deliverable per entry>"]}),
            "definition_of_done" => {
                json!({"job_id": job, "definition_of_done": ["<one condition per entry>"]})
            }
            "invariants" => json!({"job_id": job, "invariants": []}),
            "repo_root" => json!({"job_id": job, "answers": {"repo_root": "<name of a workspace>"}}),
            _ => json!({"job_id": job, "steps": [{"title": "<a short title>"}]}),
        }
    }

    fn gap(&self, job: &JobId) -> Gap {
        Gap {
            reason: Reason::Gap {
                code: self.code,
                field: self.field.to_owned(),
                message: self.message.to_owned(),
            },
            next_call: NextCall::new(self.tool, self.arguments(job)),
        }
    }
}

/// All gaps, in the order of the interview.
pub(crate) fn gaps(ready: &Readiness<'_>) -> Vec<Gap> {
    let job = ready.job;
    let lacking = LACKS.iter().filter(|lack| lack.holds(ready));
    let mut gaps: Vec<Gap> = lacking.map(|lack| lack.gap(job)).collect();
    gaps.extend(baseline_gap(ready));
    gaps.extend(faults_gap(ready));
    gaps.extend(ready.steps.iter().flat_map(|(id, spec)| step_gaps(job, id, spec)));
    gaps.extend(reference_gaps(ready));
    gaps
}

fn baseline_gap(ready: &Readiness<'_>) -> Option<Gap> {
    (ready.wants_baseline && ready.repo_root.is_some() && !ready.has_baseline).then(|| Gap {
        reason: Reason::Gap {
            code: "BASELINE_MISSING",
            field: "repo_root".to_owned(),
            message: "there is no snapshot of the repository to compare later states with".to_owned(),
        },
        next_call: NextCall::new("repo_snapshot", json!({"job_id": ready.job})),
    })
}

/// Smallest number of planned steps that needs a search for faults. Shorter plans get a warning.
pub(crate) const FAULTS_FROM: usize = 4;

fn faults_gap(ready: &Readiness<'_>) -> Option<Gap> {
    let open = open_faults(ready.plan);
    (ready.wants_faults && !open.is_empty()).then(|| {
        let answers: serde_json::Map<String, serde_json::Value> = open
            .iter()
            .map(|key| {
                (
                    (*key).to_owned(),
                    json!(["<one finding per entry, or an empty list>"]),
                )
            })
            .collect();
        Gap {
            reason: Reason::Gap {
                code: "FAULTS_MISSING",
                field: "answers".to_owned(),
                message: format!(
                    "questions about how the plan can fail are open: {} not answered",
                    match open.as_slice() {
                        [one] => format!("{one} is"),
                        several => format!("{} are", several.join(", ")),
                    }
                ),
            },
            next_call: NextCall::new(
                "conductor_answer",
                json!({"job_id": ready.job, "answers": answers}),
            ),
        }
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
        let message = format!("step {id} names the context block {context}, which does not exist");
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

/// Refuses the call while there are gaps.
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
