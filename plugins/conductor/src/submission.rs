//! Decision on a submission: pure.
//!
//! Stages have a fixed order. All failures of a stage are reported together. A later stage is checked only if
//! the earlier ones hold, because the last one runs programs.

use serde_json::{Map, Value};
use tollgate_sdk::text_enum;

use crate::evidence::{self, Fault};
use crate::gate::Gate;
use crate::gate::commit;
use crate::gate::decide::{self, Said};
use crate::gate::known::{Facts, GitFacts, Presence};
use crate::model::{Claim, EvidenceMode};
use crate::plan::Plan;
use crate::policy::Policies;
use crate::step::StepSpec;

text_enum! {
    /// Stages of the validation.
    pub(crate) enum Stage {
        Evidence = "evidence",
        Records = "records",
        Checklist = "checklist",
        Claim = "claim",
        Gates = "gates",
    }
}

/// A submission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Submission<'a> {
    pub claim: Claim,
    pub summary: &'a str,
    pub evidence: &'a Map<String, Value>,
    pub devlog: Option<&'a str>,
    pub commit: Option<&'a str>,
    pub token: Option<&'a str>,
    /// True if the last run of a test command before the step failed.
    pub was_red: bool,
}

/// Facts about deferred commits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Batch<'a> {
    /// Open token, if there is one, and the number of steps for which it is valid.
    pub open: Option<(&'a str, u32)>,
    /// True for the last step, after which nothing can be deferred.
    pub last_step: bool,
    /// True if Git shows no change since the step began, so that there is nothing to commit.
    pub is_idle: bool,
}

/// Rejection of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub stage: Stage,
    /// Keys and fields that are absent.
    pub missing: Vec<String>,
    pub reasons: Vec<String>,
}

/// Checks everything that needs no gathered facts.
pub(crate) fn review(
    step: &StepSpec,
    (policies, plan): (&Policies, &Plan),
    said: &Submission<'_>,
    batch: &Batch<'_>,
) -> Result<(), Rejection> {
    let required = evidence::required(&step.required_evidence, policies, plan);
    let mode = policies.evidence_schema_mode;
    stage(
        Stage::Evidence,
        evidence::faults(&required, said.evidence, said.summary, mode),
    )?;
    stage(Stage::Records, records(step, policies, said, batch))?;
    stage(Stage::Checklist, checklist(step, mode, said.evidence))?;
    stage(Stage::Claim, claim(step, said))
}

/// Last stage: gates, and Git's view of the claimed files.
pub(crate) fn gates(
    step: &StepSpec,
    policies: &Policies,
    said: &Submission<'_>,
    facts: &Facts,
) -> Result<(), Rejection> {
    let spoken = Said {
        evidence: said.evidence,
        commit: said.commit,
        criteria: step.acceptance_criteria.len(),
    };
    let parsed = &facts.gates;
    let wants_commit = parsed.contains(&Gate::CommitExists);
    let mut reasons: Vec<String> = parsed
        .iter()
        .filter_map(|gate| decide::unmet(gate, &spoken, facts))
        .collect();
    reasons.extend(unsound(facts));
    reasons.extend(false_commit(said, facts).filter(|_| !wants_commit));
    reasons.extend(false_claims(said, facts));
    reasons.extend(undelivered(facts));
    reasons.extend(undescribed(policies, said, facts));
    let faults = reasons.into_iter().map(|message| Fault {
        key: String::new(),
        missing: false,
        message,
    });
    stage(Stage::Gates, faults.collect())
}

fn stage(stage: Stage, faults: Vec<Fault>) -> Result<(), Rejection> {
    if faults.is_empty() {
        return Ok(());
    }
    let missing = faults.iter().filter(|fault| fault.missing);
    Err(Rejection {
        stage,
        missing: missing.map(|fault| fault.key.clone()).collect(),
        reasons: faults.into_iter().map(|fault| fault.message).collect(),
    })
}

fn fault(key: &str, missing: bool, message: impl Into<String>) -> Fault {
    Fault {
        key: key.to_owned(),
        missing,
        message: message.into(),
    }
}

/// Devlog line, and the commit or the token in its place.
fn records(step: &StepSpec, policies: &Policies, said: &Submission<'_>, batch: &Batch<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_strict = policies.evidence_schema_mode == EvidenceMode::Strict;
    let says_nothing = |line: &str| line.trim().is_empty() || (is_strict && !evidence::says_something(line));
    if policies.require_devlog_per_step && said.devlog.is_none_or(says_nothing) {
        faults.push(fault("devlog_line", true, "devlog_line is missing"));
    }
    if let Some(hash) = said.commit.filter(|hash| !is_hash(hash)) {
        faults.push(fault(
            "commit_hash",
            false,
            format!("{hash:?} is not a commit hash"),
        ));
    }
    let told = said.evidence.get(evidence::COMMIT_KEY).and_then(Value::as_str);
    if let (Some(hash), Some(told)) = (said.commit, told.filter(|told| is_hash(told)))
        && !hash.starts_with(told)
        && !told.starts_with(hash)
    {
        let message = format!("commit_hash is {hash}, but {told} in the evidence; send one of them");
        faults.push(fault(evidence::COMMIT_KEY, false, message));
    }
    let named = step.required_evidence.contains_key(evidence::COMMIT_KEY);
    let wanted = step.strict_git
        || (named && said.token.is_none())
        || (policies.require_commit_per_step && !batch.is_idle)
        || (batch.open.is_some() && batch.last_step);
    if let (Some(given), None) = (said.token, said.commit) {
        faults.extend(token(step, policies, given, batch));
    } else if wanted && said.commit.is_none() {
        let message = match (step.strict_git, batch.last_step, policies.allow_batch_commits) {
            (false, false, true) => {
                "commit_hash is missing; alternatively pass a batch_commit_token from git_commit with defer_reason"
            }
            (_, true, _) if batch.open.is_some() => {
                "commit_hash is missing; the last step ends the batch with a commit"
            }
            _ => "commit_hash is missing",
        };
        faults.push(fault("commit_hash", true, message));
    }
    faults
}

/// Error in a token that replaces a commit.
fn token(step: &StepSpec, policies: &Policies, given: &str, batch: &Batch<'_>) -> Option<Fault> {
    let message = match batch.open {
        _ if step.strict_git => "this step requires a commit of its own, not a batch_commit_token",
        _ if !policies.allow_batch_commits => "batch commits are not allowed by this job's policies",
        Some((open, _)) if open != given => "batch_commit_token is not the token of the open batch",
        None => "batch_commit_token is not open: its batch was committed or never opened",
        Some((_, 0)) => "batch_commit_token has expired; commit the batch and send commit_hash",
        Some(_) if batch.last_step => "the last step ends the batch: commit it and send commit_hash",
        Some(_) => return None,
    };
    Some(fault("batch_commit_token", false, message))
}

/// Checks whether text can be an abbreviated or full commit hash.
pub(crate) fn is_hash(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Requires all of c1…cN to be true in strict mode, and none to be false otherwise.
fn checklist(step: &StepSpec, mode: EvidenceMode, evidence: &Map<String, Value>) -> Vec<Fault> {
    let criteria = step.acceptance_criteria.len();
    let list = evidence.get("criteria_checklist").and_then(Value::as_object);
    let mut faults = Vec::new();
    for (place, text) in step.acceptance_criteria.iter().enumerate() {
        let name = format!("c{}", place + 1);
        match list.and_then(|list| list.get(&name)) {
            Some(Value::Bool(true)) => {}
            Some(_) => faults.push(fault(
                "criteria_checklist",
                false,
                format!("{name} is false: {text}"),
            )),
            None if mode == EvidenceMode::Strict => {
                let message = format!("criteria_checklist.{name} is missing: {text}");
                faults.push(fault(&format!("criteria_checklist.{name}"), true, message));
            }
            None => {}
        }
    }
    let number = |name: &str| name.strip_prefix('c')?.parse::<usize>().ok();
    for name in list.into_iter().flat_map(Map::keys) {
        if !number(name).is_some_and(|number| (1..=criteria).contains(&number)) {
            let message = format!("criteria_checklist.{name} is not a criterion; use c1 to c{criteria}");
            faults.push(fault("criteria_checklist", false, message));
        }
    }
    faults
}

/// Checks whether a step is about a test that fails, so that `tests_passed` may be false.
pub(crate) fn wants_red(step: &StepSpec) -> bool {
    let is_red = |criterion: &String| {
        let words: Vec<String> = criterion
            .split(|c: char| !c.is_alphanumeric())
            .map(str::to_lowercase)
            .collect();
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        has(&["test", "tests", "suite"])
            && has(&["fail", "fails", "failing", "red"])
            && !has(&[
                "no", "not", "none", "never", "without", "zero", "nothing", "neither",
            ])
    };
    let gates = step.gates.iter().any(|gate| gate.gate == "tests_fail");
    gates || (!wants_green(step) && step.acceptance_criteria.iter().any(is_red))
}

/// Checks whether a gate of a step wants tests to pass.
fn wants_green(step: &StepSpec) -> bool {
    let mut gates = step.gates.iter().map(|gate| gate.gate.as_str());
    gates.any(|gate| matches!(gate, "tests_passed" | "fail_to_pass"))
}

fn claim(step: &StepSpec, said: &Submission<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    if said.claim != Claim::Met {
        let message = format!(
            "the claim is {}: fix what is missing and submit again",
            said.claim
        );
        faults.push(fault("model_claim", false, message));
    }
    for key in ["tests_passed", "lint_passed", "invariants_checked"] {
        // Who finds the cause of a failure leaves the tests as they were.
        let may_be_red = wants_red(step) || (said.was_red && !wants_green(step));
        if key == "tests_passed" && may_be_red {
            continue;
        }
        if said.claim == Claim::Met && said.evidence.get(key) == Some(&Value::Bool(false)) {
            faults.push(fault(
                key,
                false,
                match key {
                    "tests_passed" => {
                        "tests_passed is false, so the claim cannot be MET; pass null if no tests were run"
                            .to_owned()
                    }
                    _ => format!("{key} is false, so the claim cannot be MET"),
                },
            ));
        }
    }
    faults
}

/// Reasons why the commands or Git's view are no ground for a verdict.
fn unsound(facts: &Facts) -> Vec<String> {
    let mut reasons = git_unsound(facts);
    if !facts.rewritten.is_empty() {
        reasons.push(format!(
            "since the plan was agreed, {}; restore the configuration, or let a person allow it with job_pause and job_resume",
            facts.rewritten.join(" and ")
        ));
    }
    reasons
}

fn git_unsound(facts: &Facts) -> Vec<String> {
    let git = match &facts.git {
        Some(Ok(git)) => git,
        Some(Err(why)) if facts.had_git => {
            return vec![format!(
                "Git could be read when the step began, but not now: {why}"
            )];
        }
        _ => return Vec::new(),
    };
    let mut reasons = Vec::new();
    if !git.hides.is_empty() {
        reasons.push(format!(
            "Git's index hides changes of {}; run git update-index --no-assume-unchanged --no-skip-worktree for each",
            decide::some(&git.hides)
        ));
    }
    if !git.touched.is_empty() {
        reasons.push(format!(
            "these tracked files were rewritten with the same content while the commands of the gates ran: {}; stop the \
             program that writes them, and submit again",
            decide::some(&git.touched)
        ));
    }
    if !git.planted.is_empty() {
        let is_bytecode = |path: &String| path.contains("__pycache__/");
        let way = match git.planted.iter().all(is_bytecode) {
            true => {
                "remove these files; Python wrote bytecode because of the option -E or -I: register the command \
                 without this option, or let a person ignore __pycache__/ before the job starts"
            }
            false => "remove these files, and what writes them",
        };
        reasons.push(format!(
            "the commands of the gates wrote files that decide how tests run: {}; {way}",
            decide::some(&git.planted)
        ));
    }
    if !git.unsteady.is_empty() {
        reasons.push(format!(
            "changed while the commands of the gates ran: {}; submit again when nothing writes to the work tree",
            decide::some(&git.unsteady)
        ));
    }
    reasons
}

/// A commit that does not count. The gate commit_exists reports it itself.
fn false_commit(said: &Submission<'_>, facts: &Facts) -> Option<String> {
    let git: &GitFacts = facts.git.as_ref()?.as_ref().ok()?;
    commit::fault(git, said.commit?, said.evidence, &facts.rules)
}

/// Deliverables that are not there at the end of the job.
fn undelivered(facts: &Facts) -> Option<String> {
    let missing = facts.deliverables.iter().filter_map(|(path, found)| {
        let why = match found {
            Presence::File => return None,
            Presence::Missing => "is missing",
            Presence::Empty => {
                "has no content; if it may be empty, add (allow_empty) to this deliverable in the plan"
            }
            Presence::Directory => "is a directory, not a file",
            Presence::Other => "is a link, or a file where the plan names a directory",
        };
        Some(format!("{path} {why}"))
    });
    let missing: Vec<String> = missing.collect();
    (!missing.is_empty()).then(|| format!("deliverables are missing: {}", decide::some(&missing)))
}

/// Claimed files that Git does not show as changed.
fn false_claims(said: &Submission<'_>, facts: &Facts) -> Option<String> {
    let Some(Ok(git)) = &facts.git else {
        return None;
    };
    let claimed = said.evidence.get("changed_files")?.as_array()?;
    let unseen: Vec<String> = claimed
        .iter()
        .filter_map(Value::as_str)
        .map(|path| path.strip_prefix("./").unwrap_or(path))
        .filter(|path| !git.changed.iter().any(|change| change.path == *path))
        .map(str::to_owned)
        .collect();
    (!unseen.is_empty()).then(|| {
        format!(
            "changed_files lists files that Git does not show as changed: {}",
            decide::some(&unseen)
        )
    })
}

/// New files without a description, if the policies require descriptions.
fn undescribed(policies: &Policies, said: &Submission<'_>, facts: &Facts) -> Option<String> {
    if !policies.require_file_descriptions {
        return None;
    }
    let Some(Ok(git)) = &facts.git else {
        return Some(
            "Git is not available to list new files, and the policies require a description of each"
                .to_owned(),
        );
    };
    let described = said.evidence.get("file_descriptions").and_then(Value::as_object);
    let is_described = |path: &str| {
        let text = described.and_then(|all| all.get(path)).and_then(Value::as_str);
        text.is_some_and(|text| !text.trim().is_empty()) || facts.described.contains(path)
    };
    let new = git
        .changed
        .iter()
        .filter(|change| change.new && !is_described(&change.path));
    let new: Vec<String> = new.map(|change| change.path.clone()).collect();
    (!new.is_empty()).then(|| {
        format!(
            "new files have no description in file_descriptions or from repo_file_descriptions_update: {}",
            decide::some(&new)
        )
    })
}

/// Files that Git shows and the evidence does not mention: a note, not a reason to reject.
pub(crate) fn unmentioned(said: &Submission<'_>, facts: &Facts) -> Vec<String> {
    let Some(Ok(git)) = &facts.git else {
        return Vec::new();
    };
    let claimed = said.evidence.get("changed_files").and_then(Value::as_array);
    let claimed = claimed.map(Vec::as_slice).unwrap_or_default();
    let mentions = |path: &str| {
        let names = claimed.iter().filter_map(Value::as_str);
        names
            .map(|name| name.strip_prefix("./").unwrap_or(name))
            .any(|name| name == path)
    };
    let unsaid = git.changed.iter().filter(|change| !mentions(&change.path));
    unsaid.map(|change| change.path.clone()).collect()
}
