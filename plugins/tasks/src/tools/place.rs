//! The place of a step among its siblings.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::build;
use crate::error::{Reason, Refusals};
use crate::evidence;
use crate::limits::{MAX_NAME_CHARS, short};
use crate::model::EventType;
use crate::path::{MAX_DEPTH, Path};
use crate::record::{Step, Task};
use crate::reply::Written;
use crate::scope::{Located, Scope};
use crate::store::record::children;
use crate::target::StepTarget;
use crate::write::Write;

/// Move a step with everything below it: to another position among its siblings, below another step, or to
/// the top level of its task. Paths change, ids stay. Fails if the new parent is closed or below the step.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct Move {
    #[serde(flatten)]
    target: StepTarget,
    /// New index among the siblings, from 0, for example 0 for the first place (default: the last place).
    position: Option<usize>,
    /// New parent step by id or path, for example STEP-8QZ3M0T4 or s:0 (default: the current parent).
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    parent_step: Option<String>,
    /// Move the step to the top level of its task (default false). Not together with `parent_step`.
    #[serde(default)]
    top: bool,
}

impl Tool for Move {
    const NAME: &'static str = "tasks_move";
    const TITLE: &'static str = "Move a step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let (task, step) = self.target.step(&mut write)?;
        let parent = self.parent(&write, &task, &step)?;
        self.check(&write, &task, &step, parent.as_ref())?;
        let path = self.place(&mut write, &task, &step, parent.as_ref())?;
        write.reply(&task.meta.id, |written| written.step(&step.record.id, &path))
    }
}

impl Move {
    /// The new parent, `None` for the top level.
    fn parent(
        &self,
        write: &Write<'_>,
        task: &Task,
        step: &Located<Step>,
    ) -> Result<Option<Located<Step>>, ToolError> {
        let id = &task.meta.id;
        match (&self.parent_step, self.top) {
            (Some(_), true) => Err(Reason::input("top", "cannot be combined with parent_step").into()),
            (Some(parent), false) => write.scope.step_named(id, parent).map(Some),
            (None, true) => Ok(None),
            (None, false) => match &step.record.parent {
                Some(parent) => write.scope.step_named(id, parent).map(Some),
                None => Ok(None),
            },
        }
    }

    fn check(
        &self,
        write: &Write<'_>,
        task: &Task,
        step: &Located<Step>,
        parent: Option<&Located<Step>>,
    ) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        refusals.unfinished(&write.scope, &task.meta);
        if let Some(parent) = parent {
            if parent.path.steps.starts_with(&step.path.steps) {
                let fault = format!("is {}, which is the moved step or below it", parent.path);
                refusals.add(Reason::input("parent_step", fault));
            } else if parent.path.steps.len() + height(&write.scope, &step.record.id)? > MAX_DEPTH {
                let fault = format!("would nest steps more than {MAX_DEPTH} levels deep");
                refusals.add(Reason::input("parent_step", fault));
            }
        }
        refusals.finish()
    }

    /// Plans the new place and returns the new path.
    fn place(
        &self,
        write: &mut Write<'_>,
        task: &Task,
        step: &Located<Step>,
        parent: Option<&Located<Step>>,
    ) -> Result<Path, ToolError> {
        let above = parent.map_or(task.meta.id.as_str(), |parent| parent.record.id.as_str());
        let mut siblings = build::siblings(write, above)?;
        let place = siblings.iter().position(|sibling| sibling.id == step.record.id);
        siblings.retain(|sibling| sibling.id != step.record.id);
        let at = self.position.unwrap_or(siblings.len());
        let tail = build::tail(&siblings, at)?;
        let mut path = parent.map_or(
            Path {
                steps: Vec::new(),
                node: None,
            },
            |parent| parent.path.clone(),
        );
        without(&mut path, &step.path);
        path.steps.push(u32::try_from(at).unwrap_or(u32::MAX));
        if place == Some(at) {
            return Ok(path);
        }
        let mut moved = step.record.clone();
        moved.parent = parent.map(|parent| parent.record.id.clone());
        moved.position = write.position();
        write.put(&moved)?;
        build::behind(write, tail)?;
        let (from, to, title) = (step.path.to_string(), path.to_string(), short(&moved.title, 80));
        write.say(format!(
            "moved step \"{title}\" of {} from {from} to {to}",
            moved.task
        ));
        let data = json!({"from": from, "to": to, "title": title});
        write.event(EventType::StepMoved, &moved.task, Some(&moved.id), data);
        Ok(path)
    }
}

/// Makes a path that of the tree without a step: where it goes through a later sibling of the step, that one moves up.
fn without(path: &mut Path, step: &Path) {
    let Some((own, above)) = step.steps.split_last() else {
        return;
    };
    if !path.steps.starts_with(above) {
        return;
    }
    if let Some(through) = path.steps.get_mut(above.len())
        && *through > *own
    {
        *through -= 1;
    }
}

/// Levels of a step and the steps below it.
fn height(scope: &Scope<'_>, step: &str) -> Result<usize, ToolError> {
    let mut below = 0;
    for child in children::<Step>(scope.db(), &scope.workspace, step, usize::MAX)? {
        below = below.max(height(scope, &child.record.id)?);
    }
    Ok(below + 1)
}
