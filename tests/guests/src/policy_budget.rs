//! Policy that takes units of the budget `approvals` for each call.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Request, Verdict};
use tollgate_sdk::{BudgetError, Want, export_policy};

/// Takes units for each call of an envelope.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyBudget {
    /// Number of units for each call. Default 1.
    #[serde(default = "one")]
    units: u64,
}

fn one() -> u64 {
    1
}

impl Policy for PolicyBudget {
    const NAME: &'static str = "policy-budget";
    const SUMMARY: &'static str = "Takes units of a budget for each call.";
    const PHASE: Phase = Phase::Request;
    const WANTS: &'static [Want] = &[Want::Budget("approvals")];

    fn before(&self, cx: &PolicyCx<'_>, _: &Request) -> Result<Verdict, CannotJudge> {
        let reserved = cx.budget().reserve("approvals", self.units);
        match reserved.and_then(|reservation| reservation.commit(self.units)) {
            Ok(()) | Err(BudgetError::NoEnvelope) => Ok(Verdict::Pass),
            Err(BudgetError::Exhausted(_)) => {
                Ok(Denial::new("NO_UNITS_LEFT", "the envelope's units are used up").into())
            }
            Err(err) => Err(CannotJudge(err.to_string())),
        }
    }
}

export_policy!(PolicyBudget);
