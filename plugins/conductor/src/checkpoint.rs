//! Checkpoint steps: their positions and their texts.

use std::collections::BTreeMap;

use crate::gate::GateSpec;
use crate::model::EvidenceType;
use crate::plan::Plan;
use crate::step::{HIGH_RISK, StepSpec};

/// Tag and titles of inserted checkpoints.
const CHECKPOINT_TAG: &str = "checkpoint";
const PERIODIC_TITLE: &str = "Checkpoint";
const FINAL_TITLE: &str = "Final checkpoint";
const BEFORE_PREFIX: &str = "Checkpoint before: ";

/// Checks whether [`with_checkpoints`] inserted a step, so that the step is not part of the plan itself.
pub(crate) fn is_inserted(step: &StepSpec) -> bool {
    let title = step.title.as_str();
    let titled = title == PERIODIC_TITLE || title == FINAL_TITLE || title.starts_with(BEFORE_PREFIX);
    step.checkpoint && titled && step.tags == [CHECKPOINT_TAG]
}

/// Steps with checkpoints after every `interval` of them and before high-risk ones. The plan's own checkpoints
/// count. Two checkpoints are never adjacent.
///
/// With `has_tests`, checkpoints have a gate that runs the workspace's test `default`.
pub(crate) fn with_checkpoints(
    steps: Vec<StepSpec>,
    interval: u32,
    plan: &Plan,
    has_tests: bool,
) -> Vec<StepSpec> {
    let mut all = planned_and_inserted(steps, interval, plan);
    for step in all.iter_mut().filter(|step| has_tests && is_inserted(step)) {
        step.gates.push(GateSpec {
            gate: "tests_passed".to_owned(),
            ..GateSpec::default()
        });
    }
    all
}

fn planned_and_inserted(steps: Vec<StepSpec>, interval: u32, plan: &Plan) -> Vec<StepSpec> {
    let mut all: Vec<StepSpec> = Vec::with_capacity(steps.len());
    let mut since = 0;
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        let follows_checkpoint = all.last().is_none_or(|last| last.checkpoint);
        if step.tags.iter().any(|tag| tag == HIGH_RISK) && !step.checkpoint && !follows_checkpoint {
            all.push(before(&step, plan));
            since = 0;
        }
        since = if step.checkpoint { 0 } else { since + 1 };
        all.push(step);
        let next_is_checkpoint = steps.peek().is_some_and(|next| next.checkpoint);
        if interval > 0 && since >= interval && !next_is_checkpoint {
            all.push(periodic(steps.peek().is_none(), plan));
            since = 0;
        }
    }
    all
}

fn periodic(last: bool, plan: &Plan) -> StepSpec {
    let title = if last { FINAL_TITLE } else { PERIODIC_TITLE };
    let mut criteria = vec!["the full test suite was run and its result is summarised".to_owned()];
    if last {
        criteria.push("every deliverable exists and every point of the definition of done holds".to_owned());
    }
    criteria.push("the repository map is still accurate".to_owned());
    criteria.push(
        "new files and files that may be stale are listed, each with a reason to keep or delete it"
            .to_owned(),
    );
    let mut instruction =
        "Change no behaviour in this step. Run the full test suite and summarise the result. Review what changed \
         since the last checkpoint against the invariants. List files that are new, unused, duplicated or \
         deprecated, and for each say why it stays or what deletes it."
            .to_owned();
    if plan.repo_exists == Some(true) {
        instruction += " repo_map_update renews the map and says which files have no description. repo_hygiene_suggest \
            lists the candidates and drafts a cleanup plan; keep the plan with its call `keep_plan`.";
    }
    checkpoint(title.to_owned(), instruction, criteria, plan)
}

fn before(step: &StepSpec, plan: &Plan) -> StepSpec {
    checkpoint(
        format!("{BEFORE_PREFIX}{}", step.title),
        format!(
            "The next step, \"{}\", is high-risk. Change no behaviour in this step. Run the full test suite, make \
             sure that everything before is committed or written down, and say how the next step can be undone.",
            step.title
        ),
        vec![
            "the full test suite was run and its result is summarised".to_owned(),
            "notes say how the next step can be undone".to_owned(),
        ],
        plan,
    )
}

fn checkpoint(title: String, instruction: String, mut criteria: Vec<String>, plan: &Plan) -> StepSpec {
    let invariants = plan.invariants.iter().flatten();
    criteria.extend(
        invariants
            .take(20)
            .map(|invariant| format!("still true: {invariant}")),
    );
    StepSpec {
        title,
        instruction_prompt: instruction,
        acceptance_criteria: criteria,
        expected_outputs: vec!["a summary of the tests and of the review".to_owned()],
        required_evidence: BTreeMap::from([
            ("criteria_checklist".to_owned(), EvidenceType::Object),
            ("notes".to_owned(), EvidenceType::String),
        ]),
        remediation_prompt:
            "Make the smallest fix that meets the failed criterion, or plan a step for it with \
            plan_refine_steps, then go through the checklist again."
                .to_owned(),
        checkpoint: true,
        tags: vec![CHECKPOINT_TAG.to_owned()],
        ..StepSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn titles(steps: &[&str], interval: u32) -> String {
        let steps = steps
            .iter()
            .map(|title| StepSpec {
                title: (*title).to_owned(),
                checkpoint: title.starts_with("Check"),
                tags: match title.ends_with('!') {
                    true => vec![HIGH_RISK.to_owned()],
                    false => Vec::new(),
                },
                ..StepSpec::default()
            })
            .collect();
        let all = with_checkpoints(steps, interval, &Plan::default(), false);
        all.iter()
            .map(|step| step.title.as_str())
            .collect::<Vec<_>>()
            .join(" | ")
            + "\n"
    }

    #[test]
    fn what_was_put_in_is_told_from_what_was_planned() {
        let own = StepSpec {
            title: "Check the figures".to_owned(),
            checkpoint: true,
            tags: vec![CHECKPOINT_TAG.to_owned()],
            ..StepSpec::default()
        };
        let risky = StepSpec {
            title: "b".to_owned(),
            tags: vec![HIGH_RISK.to_owned()],
            ..StepSpec::default()
        };
        let all = with_checkpoints(vec![StepSpec::default(), risky, own], 1, &Plan::default(), true);
        let inserted: Vec<bool> = all.iter().map(is_inserted).collect();
        assert_eq!(inserted, [false, true, false, false]);
    }

    #[test]
    fn checkpoints_go_where_they_belong() {
        let mut log = String::new();
        log += &titles(&["a", "b", "c", "d", "e", "f"], 2);
        log += &titles(&["a", "b", "c"], 0);
        log += &titles(&["a!", "b!", "c"], 0);
        log += &titles(&["a", "b", "Check it", "c", "d", "e"], 2);
        log += &titles(&["a", "b!", "c"], 2);
        expect![[r#"
            a | b | Checkpoint | c | d | Checkpoint | e | f | Final checkpoint
            a | b | c
            a! | Checkpoint before: b! | b! | c
            a | b | Check it | c | d | Checkpoint | e
            a | Checkpoint before: b! | b! | c | Final checkpoint
        "#]]
        .assert_eq(&log);
    }
}
