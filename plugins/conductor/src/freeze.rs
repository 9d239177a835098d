//! Plan of a running job: what a change loosens, and what it changes at all. Pure.
//!
//! A plan is frozen when its job starts. Adding steps, gates and criteria is free. Whatever makes it easier to be
//! accepted needs a person.

use serde::Serialize;

use crate::arguments::clip_to;
use crate::gate::{GateKind, GateSpec};
use crate::model::{EvidenceMode, Exhausted, StepId, StepStatus};
use crate::plan::Plan;
use crate::policy::Policies;
use crate::step::StepSpec;
use crate::store::step::Step;

/// Characters of a value in a line.
const MAX_VALUE_CHARS: usize = 600;

/// A change of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// True if the plan is easier to fulfil afterwards.
    pub loosens: bool,
    /// The change, with the value before and after.
    pub line: String,
}

/// Text of the lines of some changes.
pub(crate) fn lines<'c>(changes: impl IntoIterator<Item = &'c Change>) -> String {
    let lines: Vec<&str> = changes.into_iter().map(|change| change.line.as_str()).collect();
    lines.join("; ")
}

/// Changes from one chain of steps to another.
pub(crate) fn steps(before: &[Step], after: &[Step]) -> Vec<Change> {
    let mut changes = Vec::new();
    for old in before.iter().filter(|old| old.status != StepStatus::Done) {
        match after.iter().find(|new| new.step_id == old.step_id) {
            Some(new) => step(&old.step_id, &old.spec, &new.spec, &mut changes),
            None => changes.push(removed(old)),
        }
    }
    for (place, new) in after.iter().enumerate() {
        let old = before.iter().find(|old| old.step_id == new.step_id);
        let later = after.get(place.saturating_add(1)..).unwrap_or_default();
        let slips = slips(&new.spec, later);
        match old {
            None => changes.push(Change {
                loosens: slips,
                line: format!("{} \"{}\" is added", new.step_id, new.spec.title),
            }),
            // Such a step takes the changes before it from the gates of the steps after it.
            Some(old) if slips && looks(&new.spec) && !looks(&old.spec) => changes.push(Change {
                loosens: true,
                line: format!(
                    "{} gets gates that check changes, so later steps no longer check the changes before it",
                    new.step_id
                ),
            }),
            Some(_) => {}
        }
    }
    let order = |steps: &[Step], of: &[Step]| -> Vec<String> {
        let kept = steps
            .iter()
            .filter(|step| of.iter().any(|other| other.step_id == step.step_id));
        kept.map(|step| step.step_id.to_string()).collect()
    };
    let (was, is) = (order(before, after), order(after, before));
    if was != is {
        // A review that comes after what it should review is no review.
        let checkpoints = before
            .iter()
            .any(|step| step.spec.checkpoint && step.status != StepStatus::Done);
        let limited = before
            .iter()
            .any(|step| step.status != StepStatus::Done && !limits(&step.spec).is_empty());
        changes.push(Change {
            loosens: checkpoints || limited,
            line: format!("the order {} becomes {}", was.join(" "), is.join(" ")),
        });
    }
    changes
}

/// Steps, gates, criteria and evidence that an edit takes out of a plan that no job runs yet. Instructions may change
/// freely while a plan is made. Chains that were proposed anew are compared by the titles of their steps.
pub(crate) fn taken(before: &[Step], after: &[Step]) -> Vec<Change> {
    let by = |is_same: &dyn Fn(&Step) -> bool| after.iter().find(|new| is_same(new));
    let mut changes = Vec::new();
    for old in before {
        let same = by(&|new| new.step_id == old.step_id && new.spec.title == old.spec.title)
            .or_else(|| by(&|new| new.spec.title == old.spec.title))
            .or_else(|| by(&|new| new.step_id == old.step_id));
        match same {
            Some(new) => {
                let drafted = StepSpec {
                    instruction_prompt: old.spec.instruction_prompt.clone(),
                    expected_outputs: old.spec.expected_outputs.clone(),
                    ..new.spec.clone()
                };
                step(&old.step_id, &old.spec, &drafted, &mut changes);
            }
            None => changes.push(removed(old)),
        }
    }
    changes.retain(|change| change.loosens);
    changes
}

/// Entries that an edit takes out of the lists of a plan that say when the job is done and what must hold.
pub(crate) fn taken_from_lists(before: &Plan, after: &Plan) -> Vec<Change> {
    const LISTS: [&str; 4] = [
        "deliverables",
        "definition_of_done",
        "tests_expected",
        "invariants",
    ];
    let lists = before.lists().into_iter().zip(after.lists());
    let lists = lists.filter(|((name, _), _)| LISTS.contains(name));
    let taken = lists.filter_map(|((name, was), (_, is))| {
        let (was, is) = (was?, is.unwrap_or_default());
        let is_kept = was.iter().all(|entry| is.contains(entry));
        (!is_kept).then(|| Change {
            loosens: true,
            line: format!("{name}: {} becomes {}", shown(&was), shown(&is)),
        })
    });
    taken.collect()
}

fn removed(old: &Step) -> Change {
    Change {
        loosens: true,
        line: format!(
            "{} \"{}\" is removed, with {}",
            old.step_id,
            old.spec.title,
            shown(&old.spec)
        ),
    }
}

/// Gates of a step that limit changes.
fn limits(spec: &StepSpec) -> Vec<&GateSpec> {
    let limits = |gate: &&GateSpec| gate.parse().is_ok_and(|gate| gate.limits_changes());
    spec.gates.iter().filter(limits).collect()
}

/// Checks whether gates of a step limit its changes.
fn looks(spec: &StepSpec) -> bool {
    crate::gate::judge_changes(&spec.parsed_gates())
}

/// Checks whether a step lacks limits that a later step has, so that changes could pass in it.
fn slips(spec: &StepSpec, later: &[Step]) -> bool {
    let mut limits = later.iter().flat_map(|step| limits(&step.spec));
    limits.any(|limit| !spec.gates.iter().any(|gate| covers(gate, limit)))
}

fn step(id: &StepId, old: &StepSpec, new: &StepSpec, changes: &mut Vec<Change>) {
    changes.extend(fields(id, old, new).into_iter().map(|(_, change)| change));
}

/// Changes of the fields of a step, each with the name of the field.
fn fields(id: &StepId, old: &StepSpec, new: &StepSpec) -> Vec<(&'static str, Change)> {
    let mut changes = Vec::new();
    let mut add = |loosens: bool, field: &'static str, was: String, is: String| {
        let line = format!("{id}.{field}: {was} becomes {is}");
        changes.push((field, Change { loosens, line }));
    };
    if old.gates != new.gates {
        let loosens = old
            .gates
            .iter()
            .any(|gate| !new.gates.iter().any(|other| covers(other, gate)));
        add(loosens, "gates", shown(&old.gates), shown(&new.gates));
    }
    if old.acceptance_criteria != new.acceptance_criteria {
        let kept = old
            .acceptance_criteria
            .iter()
            .all(|text| new.acceptance_criteria.contains(text));
        add(
            !kept,
            "acceptance_criteria",
            shown(&old.acceptance_criteria),
            shown(&new.acceptance_criteria),
        );
    }
    if old.required_evidence != new.required_evidence {
        let kept = old
            .required_evidence
            .iter()
            .all(|(key, kind)| new.required_evidence.get(key) == Some(kind));
        add(
            !kept,
            "required_evidence",
            shown(&old.required_evidence),
            shown(&new.required_evidence),
        );
    }
    if old.instruction_prompt != new.instruction_prompt {
        let kept = new.instruction_prompt.contains(&old.instruction_prompt);
        add(
            !kept,
            "instruction_prompt",
            shown(&old.instruction_prompt),
            shown(&new.instruction_prompt),
        );
    }
    if old.expected_outputs != new.expected_outputs {
        let kept = old
            .expected_outputs
            .iter()
            .all(|text| new.expected_outputs.contains(text));
        add(
            !kept,
            "expected_outputs",
            shown(&old.expected_outputs),
            shown(&new.expected_outputs),
        );
    }
    for (field, was, is) in [
        ("checkpoint", old.checkpoint, new.checkpoint),
        ("strict_git", old.strict_git, new.strict_git),
    ] {
        if was != is {
            add(was, field, was.to_string(), is.to_string());
        }
    }
    if old.max_attempts != new.max_attempts {
        let fewer = matches!((old.max_attempts, new.max_attempts), (Some(was), Some(is)) if is < was);
        let first = old.max_attempts.is_none() && new.max_attempts == Some(1);
        add(
            !fewer && !first,
            "max_attempts",
            shown(&old.max_attempts),
            shown(&new.max_attempts),
        );
    }
    let rest = |spec: &StepSpec| {
        (
            spec.title.clone(),
            spec.remediation_prompt.clone(),
            spec.context_refs.clone(),
            spec.tags.clone(),
        )
    };
    if rest(old) != rest(new) {
        add(
            false,
            "title, remediation_prompt, context_refs, tags",
            shown(&rest(old)),
            shown(&rest(new)),
        );
    }
    changes
}

/// Files that edits name in the outputs of steps, so that a gate about tests would let them pass. `named` has the steps
/// whose edits give outputs.
pub(crate) fn openings(before: &[Step], after: &[Step], named: &[StepId]) -> Vec<Change> {
    let opened = after.iter().filter_map(|new| {
        let old = before.iter().find(|old| old.step_id == new.step_id)?;
        let added = added(old, &new.spec);
        let line = format!("{} may write {}", new.step_id, shown(&added));
        let opens = !added.is_empty() && named.contains(&new.step_id);
        opens.then_some(Change { loosens: true, line })
    });
    opened.collect()
}

/// Outputs of a step with a gate about tests that name files and that nobody agreed to.
fn added<'s>(old: &Step, new: &'s StepSpec) -> Vec<&'s String> {
    let guards = |gate: &GateSpec| gate.gate == GateKind::TestsUnchanged.as_str();
    let known = &old.agreed().expected_outputs;
    let texts = new.expected_outputs.iter().filter(|text| !known.contains(text));
    let named = texts.filter(|text| new.gates.iter().any(guards) && names_file(text));
    named.collect()
}

/// Checks whether an output names a file, rather than to tell of something else.
fn names_file(text: &str) -> bool {
    let is_path = |word: &str| {
        word.trim_end_matches(['.', ',', ':', ';'])
            .contains(['.', '/', '*'])
    };
    let mut words = text.split_whitespace();
    words.clone().count() == 1 || words.any(is_path)
}

/// Steps after an edit of a running job, with the texts that were agreed: those of the frozen plan, and what a person
/// allowed since. A person allows the changes that loosen the plan, and sees no others.
pub(crate) fn with_agreed(
    before: &[Step],
    mut after: Vec<Step>,
    named: &[StepId],
    allowed_by_person: bool,
) -> Vec<Step> {
    let is_open = |step: &&mut Step| step.status != StepStatus::Done;
    for new in after.iter_mut().filter(is_open) {
        let Some(old) = before.iter().find(|old| old.step_id == new.step_id) else {
            // A step that was added after the start names nothing.
            new.agreed = Some(Box::new(StepSpec {
                title: new.spec.title.clone(),
                ..StepSpec::default()
            }));
            continue;
        };
        let was = old.agreed();
        let changes = fields(&new.step_id, &old.spec, &new.spec);
        let is_seen = |field: &str| {
            let opens = field == "expected_outputs"
                && named.contains(&old.step_id)
                && !added(old, &new.spec).is_empty();
            let loosens = |(name, change): &(&str, Change)| *name == field && change.loosens;
            allowed_by_person && (opens || changes.iter().any(loosens))
        };
        let by = |field: &str| if is_seen(field) { &new.spec } else { was };
        let agreed = StepSpec {
            expected_outputs: by("expected_outputs").expected_outputs.clone(),
            instruction_prompt: by("instruction_prompt").instruction_prompt.clone(),
            acceptance_criteria: by("acceptance_criteria").acceptance_criteria.clone(),
            gates: by("gates").gates.clone(),
            ..new.spec.clone()
        };
        new.agreed = (agreed != new.spec).then(|| Box::new(agreed));
    }
    after
}

/// Checks whether a gate holds only if another one does.
fn covers(new: &GateSpec, old: &GateSpec) -> bool {
    if new == old {
        return true;
    }
    let rest = |spec: &GateSpec| GateSpec {
        min: None,
        max: None,
        paths: Vec::new(),
        ..spec.clone()
    };
    if rest(new) != rest(old) {
        return false;
    }
    let within = |inner: &[String], outer: &[String]| inner.iter().all(|path| outer.contains(path));
    match old.gate.as_str() {
        // An empty list of tests_unchanged means the usual places.
        "changed_files_allowlist" => within(&new.paths, &old.paths),
        "forbid_paths" | "file_exists" | "file_not_exists" | "reachable" => within(&old.paths, &new.paths),
        "changed_files_minimum" | "diff_min_lines" => new.paths == old.paths && new.min >= old.min,
        "diff_max_lines" => new.max <= old.max,
        _ => false,
    }
}

/// Changes from one set of policies to another.
pub(crate) fn policies(old: &Policies, new: &Policies) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut compare = |field: &str, was: String, is: String, loosens: bool| {
        if was != is {
            let line = format!("policy {field}: {was} becomes {is}");
            changes.push(Change { loosens, line });
        }
    };
    macro_rules! compare {
        ($($field:ident $loosens:expr),+ $(,)?) => {
            $(compare(stringify!($field), shown(&old.$field), shown(&new.$field), $loosens);)+
        };
    }
    compare!(
        require_devlog_per_step old.require_devlog_per_step,
        require_commit_per_step old.require_commit_per_step,
        allow_batch_commits new.allow_batch_commits,
        batch_commit_max_steps new.batch_commit_max_steps > old.batch_commit_max_steps,
        require_tests_evidence old.require_tests_evidence,
        require_diff_summary old.require_diff_summary,
        require_repo_snapshot_on_init false,
        inject_invariants_every_step old.inject_invariants_every_step,
        inject_mistakes_every_step old.inject_mistakes_every_step,
        evidence_schema_mode new.evidence_schema_mode == EvidenceMode::Loose,
        require_mistake_on_reject old.require_mistake_on_reject,
        require_file_descriptions old.require_file_descriptions,
        checkpoint_interval_steps false,
        max_retries_per_step new.max_retries_per_step > old.max_retries_per_step,
        retry_exhausted_action new.retry_exhausted_action == Exhausted::PauseForHuman,
        commit_message_template true,
        prompt_max_chars false,
    );
    changes
}

fn shown<T: Serialize>(value: &T) -> String {
    clip_to(&serde_json::to_string(value).unwrap_or_default(), MAX_VALUE_CHARS)
}
