//! Sections about the result of a step: files, the commit, criteria, and the form of evidence.

use std::fmt::Write as _;

use serde_json::Value;

use super::Material;
use crate::arguments::counted;
use crate::briefing::Briefing;
use crate::evidence;
use crate::gate::agreed;
use crate::gate::decide::some;
use crate::gate::delivered::paths;
use crate::gate::{Gate, Need, Source};
use crate::model::{EvidenceMode, EvidenceType, Exhausted};
use crate::step::StepSpec;
use crate::tools::git_write::fill;

/// Files that the gates of a step want, and that its outputs do not name.
pub(super) fn files(step: &StepSpec) -> Option<String> {
    let mut wanted: Vec<String> = Vec::new();
    for gate in step.parsed_gates() {
        wanted.extend(match gate {
            Gate::FileExists(paths) | Gate::Reachable(paths) => paths,
            Gate::FileContains(path, _) | Gate::JsonSchemaValid(Source::File(path), _) => vec![path],
            Gate::ChangedFilesAllowlist(globs) => {
                let is_path = |glob: &String| !glob.contains(['*', '?', '[', '{']);
                globs.into_iter().filter(is_path).collect()
            }
            _ => Vec::new(),
        });
    }
    let is_told = |path: &String| {
        step.expected_outputs
            .iter()
            .any(|output| output.contains(path.as_str()))
    };
    let mut open: Vec<String> = Vec::new();
    for path in wanted.into_iter().filter(|path| !is_told(path)) {
        if !open.contains(&path) {
            open.push(path);
        }
    }
    (!open.is_empty()).then(|| some(&open))
}

/// Commit that a step has to hand in, and the message that one made by hand needs.
pub(super) fn commit(material: &Material<'_>) -> Option<String> {
    let (step, policies) = (material.step, material.policies);
    let message = fill(
        &policies.commit_message_template,
        material.job_id,
        material.step_id,
        &step.title,
        "<summary>",
    );
    let workspace = material.briefing.workspace.as_ref();
    let how = match workspace.map(|workspace| workspace.git) {
        Some("write") => format!(
            "create the commit with git_commit; if you commit yourself, use the message `{}`",
            message.trim()
        ),
        _ => format!(
            "git_commit cannot create commits here: commit with your own git and the message `{}`",
            message.trim()
        ),
    };
    let always = always_commits(step);
    let wanted = always || policies.require_commit_per_step;
    match material.batch {
        Some((token, left)) if left > 0 && !always && material.place.0 < material.place.1 => Some(format!(
            "a commit_hash ({how}), or batch_commit_token {token}, which is valid for {}",
            counted(left, "more step")
        )),
        Some(_) => Some(format!(
            "a commit_hash ({how}): the open batch must be committed now"
        )),
        None if always => Some(format!("a commit_hash ({how})")),
        None if wanted && policies.allow_batch_commits => Some(format!(
            "if files change: a commit_hash ({how}), or a batch_commit_token from git_commit with defer_reason"
        )),
        None if wanted => Some(format!("if files change: a commit_hash ({how})")),
        None => None,
    }
}

/// Checks whether a step wants a commit even if no file changes.
fn always_commits(step: &StepSpec) -> bool {
    step.strict_git
        || step.required_evidence.contains_key(evidence::COMMIT_KEY)
        || step.parsed_gates().contains(&Gate::CommitExists)
}

/// Criteria and gates. A registered test that a gate names is shown with its words.
pub(super) fn criteria(material: &Material<'_>) -> String {
    let step = material.step;
    let mut text = String::new();
    for (place, criterion) in step.acceptance_criteria.iter().enumerate() {
        let _ = writeln!(text, "- c{}: {criterion}", place + 1);
    }
    let default = ["default".to_owned()];
    let has_default = material.briefing.test(&default[0]).is_some();
    // A gate about tests without a command runs the test `default`, if there is one.
    let gates = step.parsed_gates().into_iter();
    let gates: Vec<Gate> = gates
        .map(|gate| gate.or_default(has_default.then_some(&default)))
        .collect();
    let delivered = delivered(material);
    if gates.is_empty() && delivered.is_none() {
        return text;
    }
    text += "\nChecked when you submit, whatever you claim:\n";
    let mut runs = false;
    for gate in gates {
        let needs = gate.needs();
        let mut line = gate.describe();
        for need in needs {
            if let Need::Command(words) = need {
                runs = true;
                line = with_words(line, words, material.briefing);
            }
        }
        let _ = writeln!(text, "- {line}");
    }
    if let Some(line) = delivered {
        let _ = writeln!(text, "- {line}");
    }
    let deliverables = material.plan.deliverables.as_deref().unwrap_or_default();
    let closed = agreed::closed_settings(step, deliverables);
    if !closed.is_empty() {
        let _ = writeln!(
            text,
            "- changes of these test settings are rejected until a person names the files in expected_outputs with \
             plan_refine_steps: {}",
            closed.join(", ")
        );
    }
    if runs {
        text += "Commands run in the workspace at submission, which may take minutes. Run them yourself before.\n";
    }
    text
}

/// Line about the deliverables that are checked at the last step.
fn delivered(material: &Material<'_>) -> Option<String> {
    let (place, count) = material.place;
    material.repo_root.filter(|_| place == count)?;
    let texts = material.plan.deliverables.iter().flatten();
    let paths: Vec<&str> = texts.flat_map(|text| paths(text)).collect();
    (!paths.is_empty()).then(|| format!("these deliverables exist, with content: {}", paths.join(", ")))
}

/// Line about a command, with the words of the registered test that the command names.
fn with_words(line: String, words: &[String], briefing: &Briefing) -> String {
    let [name] = words else {
        return line;
    };
    match briefing.test(name) {
        Some(command) => line.replace(&format!("`{name}`"), &format!("`{command}` (test {name})")),
        None => line,
    }
}

pub(super) fn evidence_format(material: &Material<'_>) -> String {
    let policies = material.policies;
    let mut required = evidence::required(&material.step.required_evidence, policies, material.plan);
    // Not required of every submission, but read whenever given.
    required.insert("criteria_checklist".to_owned(), EvidenceType::Object);
    if policies.require_file_descriptions {
        required.insert("file_descriptions".to_owned(), EvidenceType::Object);
    }
    if material
        .plan
        .invariants
        .as_ref()
        .is_some_and(|all| !all.is_empty())
    {
        required.insert("invariants_checked".to_owned(), EvidenceType::Boolean);
    }
    let template = evidence::template(&required, material.step.acceptance_criteria.len());
    let mut call = serde_json::Map::new();
    let mut add = |key: &str, value: Value| call.insert(key.to_owned(), value);
    add("job_id", material.job_id.into());
    add("step_id", material.step_id.into());
    add("model_claim", "NOT_MET".into());
    add("summary", "<what you did>".into());
    if policies.require_devlog_per_step {
        add("devlog_line", "<what changed and why>".into());
    }
    if always_commits(material.step) || material.batch.is_some() {
        add("commit_hash", "<hash of the commit>".into());
    } else if policies.require_commit_per_step {
        let hash = "<hash of the commit; leave this line out if no file changed>";
        add("commit_hash", hash.into());
    }
    add("evidence", template);
    let json = serde_json::to_string_pretty(&Value::Object(call)).unwrap_or_default();
    let strict = match policies.evidence_schema_mode {
        EvidenceMode::Strict => " Evidence is strict: describe what was done, not only that it was done.",
        EvidenceMode::Loose => "",
    };
    let count = match (material.attempts_left, policies.retry_exhausted_action) {
        (1, Exhausted::PauseForHuman) => {
            "This is the last submission: if it is rejected, the job pauses.".to_owned()
        }
        (1, Exhausted::FailJob) => {
            "This is the last submission: if it is rejected, the job fails.".to_owned()
        }
        (left, _) => format!("{left} submissions are left; each rejection lists every reason that it found."),
    };
    format!(
        "Call job_submit_step_result with this, filled in:\n```json\n{json}\n```\nGo through the criteria one by one. \
         Set each criterion that is met to true, and model_claim to MET only if all are met; otherwise fix the step \
         first, or say in `notes` of the evidence what fails.{strict}\n{count}\n"
    )
}
