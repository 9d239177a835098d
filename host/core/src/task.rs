//! States of tasks: calls whose clients do not wait for the reply.

use serde::{Deserialize, Serialize};

/// State of a task, as MCP names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The call runs or waits for its turn.
    Working,
    /// The call waits for somebody's answer.
    InputRequired,
    /// The call ended with a reply, which may be a refusal.
    Completed,
    /// The call was cancelled.
    Cancelled,
    /// The call did not complete, for example because its host ended.
    Failed,
}

/// Event of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEvent {
    /// The call wants an answer.
    Asked,
    /// The answer is there, and the call begins anew.
    Answered,
    /// The call ended with a reply.
    Replied,
    /// The call ended because somebody wanted it to end.
    Stopped,
    /// The call broke off.
    Broke,
}

impl TaskState {
    /// All states.
    pub const ALL: [TaskState; 5] = [
        TaskState::Working,
        TaskState::InputRequired,
        TaskState::Completed,
        TaskState::Cancelled,
        TaskState::Failed,
    ];

    /// Name of the state, as it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskState::Working => "working",
            TaskState::InputRequired => "input_required",
            TaskState::Completed => "completed",
            TaskState::Cancelled => "cancelled",
            TaskState::Failed => "failed",
        }
    }

    /// The state with a name.
    pub fn parse(name: &str) -> Option<TaskState> {
        TaskState::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// True if nothing happens to the task any more.
    pub const fn is_over(self) -> bool {
        matches!(
            self,
            TaskState::Completed | TaskState::Cancelled | TaskState::Failed
        )
    }

    /// State after an event. `None` if the event cannot happen in this state: a task ends once.
    #[must_use]
    pub const fn on(self, event: TaskEvent) -> Option<TaskState> {
        match (self, event) {
            (TaskState::Completed | TaskState::Cancelled | TaskState::Failed, _)
            | (TaskState::InputRequired, TaskEvent::Asked)
            | (TaskState::Working, TaskEvent::Answered) => None,
            (TaskState::Working, TaskEvent::Asked) => Some(TaskState::InputRequired),
            (TaskState::InputRequired, TaskEvent::Answered) => Some(TaskState::Working),
            (_, TaskEvent::Replied) => Some(TaskState::Completed),
            (_, TaskEvent::Stopped) => Some(TaskState::Cancelled),
            (_, TaskEvent::Broke) => Some(TaskState::Failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_asks_and_goes_on_and_ends_once() {
        let events = [
            TaskEvent::Asked,
            TaskEvent::Answered,
            TaskEvent::Replied,
            TaskEvent::Stopped,
            TaskEvent::Broke,
        ];
        let matrix: Vec<String> = TaskState::ALL
            .into_iter()
            .map(|state| {
                let after = events.map(|event| state.on(event).map_or("-", TaskState::as_str));
                format!("{}: {}", state.as_str(), after.join(" "))
            })
            .collect();
        assert_eq!(
            matrix,
            [
                "working: input_required - completed cancelled failed",
                "input_required: - working completed cancelled failed",
                "completed: - - - - -",
                "cancelled: - - - - -",
                "failed: - - - - -",
            ]
        );
        for state in TaskState::ALL {
            assert_eq!(TaskState::parse(state.as_str()), Some(state));
        }
        assert_eq!(TaskState::parse("done"), None);
    }
}
