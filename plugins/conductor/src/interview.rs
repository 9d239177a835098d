//! Planning interview: its questions, and those that are open.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::Plan;
use crate::ready::FAULTS_FROM;

/// A question of the interview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Question {
    /// Phase: 1 intent and scope, 2 deliverables, 3 invariants, 4 repository, 5 steps and risks.
    pub phase: u8,
    /// Key of the answer.
    pub key: &'static str,
    /// Text of the question.
    pub question: &'static str,
    /// Reason for asking.
    pub rationale: &'static str,
    /// True if the job cannot become READY without an answer.
    pub required: bool,
    /// Fields of each entry of the answer, if an entry is an object.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub required_fields: &'static [&'static str],
    /// Answer that the repository suggests. Confirm it with the user or correct it, then send it as the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestion: Vec<String>,
}

const fn question(
    phase: u8,
    key: &'static str,
    required: bool,
    question: &'static str,
    rationale: &'static str,
) -> Question {
    Question {
        phase,
        key,
        question,
        rationale,
        required,
        required_fields: &[],
        suggestion: Vec::new(),
    }
}

/// All questions in the order of the interview.
static QUESTIONS: &[Question] = &[
    question(
        1,
        "goal",
        true,
        "What is built, in one sentence?",
        "Every step must serve this sentence.",
    ),
    question(
        1,
        "repo_exists",
        false,
        "Is there a repository already?",
        "An existing repository has conventions and code that must not break.",
    ),
    question(
        1,
        "out_of_scope",
        false,
        "What is explicitly out of scope? An empty list is an answer.",
        "Prompts show this list, so that the job does not grow.",
    ),
    question(
        1,
        "target_environment",
        false,
        "Which operating system, runtime and language does it run on?",
        "Commands and tests depend on it.",
    ),
    question(
        1,
        "timeline_priority",
        false,
        "Is a minimal version needed soon, or a robust one?",
        "The answer decides how many steps and tests are worthwhile.",
    ),
    question(
        1,
        "user_constraints",
        false,
        "What should be known about the user's abilities and limits?",
        "A user who does not read code needs smaller steps and plainer reports.",
    ),
    question(
        1,
        "constraints",
        false,
        "Which rules must the work follow, and on what does it depend? An empty list is an answer.",
        "Prompts repeat the constraints.",
    ),
    question(
        1,
        "assumptions",
        false,
        "Which facts are taken for granted?",
        "A wrong assumption is found sooner when it is written down.",
    ),
    question(
        1,
        "unknowns",
        false,
        "What is not known yet, and which step finds it out?",
        "An open question belongs in a step, not in a guess.",
    ),
    question(
        2,
        "deliverables",
        true,
        "Which files, endpoints, screens, documents or scripts does the job produce?",
        "The job is not complete before these exist.",
    ),
    question(
        2,
        "definition_of_done",
        true,
        "Which conditions must hold for the job to be done?",
        "Vague conditions cannot be checked.",
    ),
    question(
        2,
        "tests_expected",
        false,
        "Which tests are expected? An empty list is an answer.",
        "Steps require their results as evidence.",
    ),
    question(
        3,
        "invariants",
        true,
        "What must never break: truths, conventions, dependencies, ways of editing? An empty list is an answer.",
        "Prompts repeat the invariants.",
    ),
    question(
        4,
        "repo_root",
        true,
        "Which registered workspace, or path in one, is the repository?",
        "Gates check its files and its Git history.",
    ),
    question(
        4,
        "key_files",
        false,
        "Which files should be read first?",
        "These files become context of the steps.",
    ),
    question(
        4,
        "entrypoints",
        false,
        "Where does the program start, and which modules are known?",
        "New code is called from these entry points and modules.",
    ),
    question(
        5,
        "architecture",
        false,
        "Which structure does the solution have: modules, folders, conventions, the shortest path to a working version?",
        "Steps follow the structure.",
    ),
    question(
        5,
        "failure_modes",
        false,
        "List up to ten ways in which this plan can fail.",
        "Each likely failure becomes a gate, a risk or a remediation prompt.",
    ),
    question(
        5,
        "hidden_dependencies",
        false,
        "Where are the hidden dependencies?",
        "Work that a step silently depends on must come before it.",
    ),
    question(
        5,
        "smallest_proof",
        false,
        "What is the smallest demonstration that proves the result?",
        "The demonstration becomes an early step.",
    ),
    question(
        5,
        "decide_now",
        false,
        "What would you regret not deciding now?",
        "Late decisions can invalidate earlier steps.",
    ),
    question(
        5,
        "steps",
        true,
        "Which steps lead to the deliverables? Propose them with plan_propose_steps.",
        "Each step is atomic, verifiable, backed by evidence, and repairable.",
    ),
    question(
        5,
        "risks",
        false,
        "Which risks are there, and what is the mitigation of each?",
        "Known risks become remediation prompts.",
    ),
];

/// Facts about a job that decide which questions are open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing<'a> {
    pub goal: &'a str,
    pub repo_root: Option<&'a str>,
    pub plan: &'a Plan,
    pub steps: usize,
}

/// State of the interview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Interview {
    /// Earliest phase with an open required question, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<u8>,
    /// Open questions up to that phase, in order.
    pub questions: Vec<Question>,
    /// Open required questions, later phases included.
    pub required_open: Vec<&'static str>,
    /// True if no required question is open.
    pub complete: bool,
}

/// Open questions. `all` includes those of later phases.
pub(crate) fn interview(standing: &Standing<'_>, all: bool) -> Interview {
    let open: Vec<&Question> = QUESTIONS
        .iter()
        .filter(|question| is_asked(standing, question.key) && !is_answered(standing, question.key))
        .collect();
    let required = || open.iter().filter(|question| is_required(standing, question));
    let phase = required().map(|question| question.phase).min();
    let last = if all { 5 } else { phase.unwrap_or(5) };
    Interview {
        phase,
        required_open: required().map(|question| question.key).collect(),
        complete: phase.is_none(),
        questions: open
            .iter()
            .filter(|question| question.phase <= last)
            .map(|&question| Question {
                required: is_required(standing, question),
                ..question.clone().with_fields()
            })
            .collect(),
    }
}

impl Question {
    fn with_fields(self) -> Question {
        let required_fields: &[&str] = match self.key {
            "steps" => &[
                "title",
                "instruction_prompt",
                "acceptance_criteria",
                "required_evidence",
            ],
            "risks" => &["risk"],
            _ => self.required_fields,
        };
        Question {
            required_fields,
            ..self
        }
    }
}

/// Questions that look for faults in a plan.
pub(crate) const FAULT_QUESTIONS: [&str; 4] = [
    "failure_modes",
    "hidden_dependencies",
    "smallest_proof",
    "decide_now",
];

/// Questions about faults that a plan has not answered.
pub(crate) fn open_faults(plan: &Plan) -> Vec<&'static str> {
    let answered = plan.answered();
    FAULT_QUESTIONS
        .into_iter()
        .filter(|key| !answered.contains(key))
        .collect()
}

/// Checks whether a job needs an answer before it can become READY. A large plan needs a search for faults.
fn is_required(standing: &Standing<'_>, question: &Question) -> bool {
    question.required || standing.steps >= FAULTS_FROM && FAULT_QUESTIONS.contains(&question.key)
}

/// Checks whether a question is asked: questions about the repository need one.
fn is_asked(standing: &Standing<'_>, key: &str) -> bool {
    match key {
        "repo_root" | "key_files" | "entrypoints" => standing.plan.repo_exists == Some(true),
        _ => true,
    }
}

fn is_answered(standing: &Standing<'_>, key: &str) -> bool {
    let plan = standing.plan;
    let filled = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    match key {
        "goal" => !standing.goal.trim().is_empty(),
        "repo_root" => standing.repo_root.is_some(),
        "steps" => standing.steps > 0,
        "deliverables" => filled(&plan.deliverables),
        "definition_of_done" => filled(&plan.definition_of_done),
        other => plan.answered().contains(&other),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn questions_come_phase_by_phase_and_vanish_when_answered() {
        let stages = [
            Plan::default(),
            Plan {
                repo_exists: Some(true),
                deliverables: Some(vec![]),
                ..Plan::default()
            },
            Plan {
                repo_exists: Some(false),
                deliverables: Some(vec!["a".to_owned()]),
                definition_of_done: Some(vec!["b".to_owned()]),
                ..Plan::default()
            },
            Plan {
                repo_exists: Some(true),
                deliverables: Some(vec!["a".to_owned()]),
                definition_of_done: Some(vec!["b".to_owned()]),
                invariants: Some(vec![]),
                ..Plan::default()
            },
        ];
        let mut log = String::new();
        for (plan, steps) in stages.iter().zip([0, 0, 0, 1]) {
            let standing = Standing {
                goal: "x",
                repo_root: None,
                plan,
                steps,
            };
            let state = interview(&standing, false);
            let keys: Vec<_> = state.questions.iter().map(|question| question.key).collect();
            log += &format!(
                "{:?} {} required {}\n",
                state.phase,
                keys.join(" "),
                state.required_open.join(" ")
            );
        }
        expect![[r#"
            Some(2) repo_exists out_of_scope target_environment timeline_priority user_constraints constraints assumptions unknowns deliverables definition_of_done tests_expected required deliverables definition_of_done invariants steps
            Some(2) out_of_scope target_environment timeline_priority user_constraints constraints assumptions unknowns deliverables definition_of_done tests_expected required deliverables definition_of_done invariants repo_root steps
            Some(3) out_of_scope target_environment timeline_priority user_constraints constraints assumptions unknowns tests_expected invariants required invariants steps
            Some(4) out_of_scope target_environment timeline_priority user_constraints constraints assumptions unknowns tests_expected repo_root key_files entrypoints required repo_root
        "#]].assert_eq(&log);
    }
}
