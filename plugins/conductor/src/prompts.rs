//! Prompts with which people start planning or executing.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Prompt, ToolError};

use crate::arguments::MAX_ENTRY_CHARS;
use crate::error::Refusals;
use crate::listed::with_calls;
use crate::model::JobId;
use crate::state::Status;
use crate::store::{job, step};
use crate::tools::{current, find_job};

/// Plan a job: interview, research, steps, ready gate. The result is a job id for another thread.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanJob {
    /// Goal in one sentence, or the id of a job whose planning continues.
    goal: String,
}

impl Prompt for PlanJob {
    const NAME: &'static str = "plan_job";
    const TITLE: &'static str = "Plan a job";

    fn say(self, cx: &Cx<'_>) -> Result<String, ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("goal", &self.goal, MAX_ENTRY_CHARS);
        refusals.finish()?;
        let id: JobId = tollgate_sdk::Id::from_text(self.goal.trim().to_owned());
        let start = match job::get(&cx.db, &id)? {
            Some(job) => format!(
                "Continue planning the job {} ({}): {}\nCall conductor_next_questions with this job_id.",
                job.id, job.status, job.goal
            ),
            None => format!(
                "Plan this job: {}\nCall conductor_init with a title, this goal, and repo_root if there is a repository.",
                self.goal.trim()
            ),
        };
        Ok(with_calls(format!("{start}\n\n{PLANNER}")))
    }
}

/// Instructions for a planner.
const PLANNER: &str = "\
You plan; another thread, which knows nothing but the job, will execute. This thread may be messy: explore, research, \
argue, and keep what is worth keeping in the job.

1. Go through the open questions. Ask the user whatever you cannot know; do not guess. Confirm what a question suggests. \
Store answers with conductor_answer, research and notes with context_add_block, decisions with decision_record.
2. Look at the repository, if there is one: repo_map_update, repo_map_query. Store what they do not show in a REPO_MAP block.
3. Set invariants and a definition of done that can be checked. Choose the shortest path to it.
4. Look for faults in the plan and store each answer with conductor_answer: failure_modes (up to ten), \
hidden_dependencies, smallest_proof, decide_now. Turn the likely ones into gates, risks or remediation prompts.
5. Propose steps with plan_propose_steps, or start from a template (template_list). Each step has one objective, criteria \
that can be checked, the evidence that shows it, and a remediation for when it fails. Prefer gates that check Git, \
files and commands to criteria that nobody can check.
6. Call job_set_ready and close every gap it lists. Tell the user its warnings.

Then give the user the job id and stop: execution belongs in a new thread, with the prompt execute_job.";

/// Execute a job step by step, knowing nothing but its id.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteJob {
    /// Job id from the planning thread, for example JOB-7F2A.
    job_id: JobId,
}

impl Prompt for ExecuteJob {
    const NAME: &'static str = "execute_job";
    const TITLE: &'static str = "Execute a job";

    fn say(self, cx: &Cx<'_>) -> Result<String, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        let steps = step::all(&cx.db, &job.id)?;
        let first = match job.status {
            Status::Planning => {
                "The job is not ready: tell the user, and continue only after job_set_ready accepts it."
            }
            Status::Ready => "Call job_start, then job_next_step_prompt.",
            Status::Executing => "Call job_next_step_prompt.",
            Status::Paused => {
                "The job is paused: tell the user why (job_get), and call job_resume only when they say so."
            }
            Status::Complete | Status::Failed | Status::Archived => {
                "The job has ended: show the user its results with job_export_bundle."
            }
        };
        let at = match current(&steps) {
            Some((place, step)) if matches!(job.status, Status::Executing | Status::Paused) => format!(
                " Step {} of {} is next: {}, {}.",
                place + 1,
                steps.len(),
                step.step_id,
                step.spec.title
            ),
            _ => String::new(),
        };
        Ok(with_calls(format!(
            "Execute the job {}, \"{}\" ({} steps, {}): {}\n{first}{at}\n\n{EXECUTOR}",
            job.id,
            job.title,
            steps.len(),
            job.status,
            job.goal
        )))
    }
}

/// Instructions for an executor.
const EXECUTOR: &str = "1. Do exactly the current step and nothing of a later one. Keep changes small; edit, do not \
rewrite.
2. Check every acceptance criterion yourself before you submit. Never claim MET while one is not met.
3. \
Submit with job_submit_step_result in the format that the prompt shows. Gates check Git, files and commands.
4. On a \
rejection fix exactly what it names and submit again. Complete its mistake_draft when you know the lesson.
5. On \
NEXT_STEP_AVAILABLE call job_next_step_prompt. On PAUSE_FOR_HUMAN or FAIL_JOB stop and tell the user. On JOB_COMPLETE \
offer the export.
6. If you are unsure, say so in notes, or pause with job_pause and ask; do not guess.";
