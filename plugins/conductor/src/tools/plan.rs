//! Tools that replace one list of the plan each.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use super::{PlanAck, acknowledge, editable};
use crate::error::{Reason, Refusals};
use crate::model::JobId;
use crate::plan::{Plan, Risk};
use crate::state::Event;

/// Declares a tool that replaces one list of the plan. `some` requires at least one entry.
macro_rules! set_list {
    ($(#[$doc:meta])* $tool:ident, $name:literal, $title:literal, $field:ident: Vec<$entry:ty>, $some:literal, $(#[$field_doc:meta])*) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(extend("x-scope" = super::scope()))]
        pub(crate) struct $tool {
            job_id: JobId,
            $(#[$field_doc])*
            #[schemars(extend("x-accepts" = super::list()))]
            $field: Vec<$entry>,
        }

        impl Tool for $tool {
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;
            const EFFECT: Effect = Effect::Write;
            const HINTS: Hints = Hints::REPLACING;
            type Output = PlanAck;

            fn run(self, cx: &Cx<'_>) -> Result<PlanAck, ToolError> {
                let stored = self.$field.len();
                let later = Plan { $field: Some(self.$field), ..Plan::default() };
                let mut refusals = Refusals::default();
                if $some && stored == 0 {
                    refusals.add(Reason::argument(stringify!($field), "is empty"));
                }
                later.check("", &mut refusals);
                refusals.finish()?;
                let (mut job, seen) = editable(&cx.db, &self.job_id, Event::EditPlan)?;
                super::merge(cx, &cx.db, &mut job, later)?;
                acknowledge(cx, job, seen, stored)
            }
        }
    };
}

set_list! {
    /// Replace the deliverables: the files, endpoints and documents that the job produces. Moves a READY job
    /// back to PLANNING.
    PlanSetDeliverables, "plan_set_deliverables", "Set the deliverables", deliverables: Vec<String>, true,
    /// Deliverables, one per entry, for example docs/api.md.
}
set_list! {
    /// Replace the invariants: rules that must never be violated. Prompts repeat them. An empty list is a valid
    /// answer. Moves a READY job back to PLANNING.
    PlanSetInvariants, "plan_set_invariants", "Set the invariants", invariants: Vec<String>, false,
    /// Invariants, one per entry; may be empty.
}
set_list! {
    /// Replace the constraints: rules that the work must follow. Moves a READY job back to PLANNING.
    PlanSetConstraints, "plan_set_constraints", "Set the constraints", constraints: Vec<String>, false,
    /// Constraints, one per entry; may be empty.
}
set_list! {
    /// Replace the assumptions: facts taken for granted. Moves a READY job back to PLANNING.
    PlanSetAssumptions, "plan_set_assumptions", "Set the assumptions", assumptions: Vec<String>, false,
    /// Assumptions, one per entry; may be empty.
}
set_list! {
    /// Replace the definition of done: conditions that must hold at the end. Moves a READY job back to
    /// PLANNING.
    PlanSetDefinitionOfDone, "plan_set_definition_of_done", "Set the definition of done", definition_of_done: Vec<String>, true,
    /// Conditions, one per entry, each of them checkable.
}
set_list! {
    /// Replace the risks, each with its mitigation. Moves a READY job back to PLANNING.
    PlanSetRisks, "plan_set_risks", "Set the risks", risks: Vec<Risk>, false,
    /// Risks, one per entry; may be empty.
}
