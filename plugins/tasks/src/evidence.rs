//! Evidence behind a checkpoint: missing, failing, or older than the last change.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Value as Json, json};
use tollgate_kit::runs::Look;
use tollgate_sdk::ToolError;

use crate::checkpoint;
use crate::error::{Reason, Refusals};
use crate::model::Checkpoint;
use crate::mutation::Moment;
use crate::record::{Evidence, Step};
use crate::reply::Warning;
use crate::run;
use crate::scope::{Located, Scope};
use crate::store;
use crate::store::record::latest_children;

/// Most pieces of evidence of a step that are examined, the latest first.
const MAX_EXAMINED: usize = 200;

/// Declares that the host looks at the work tree before a call where evidence is required.
pub(crate) fn looks() -> Json {
    json!({"setting": "evidence", "is": "required"})
}

/// Reason why evidence does not prove a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    Missing,
    /// The operation that the evidence names is not a test run of the ledger.
    Unknown {
        id: String,
        operation: String,
    },
    Failing {
        id: String,
        exit_code: i32,
    },
    Stale {
        mutations: i64,
    },
    /// The test run was in another envelope, so that changes since are not known.
    Elsewhere {
        operation: String,
    },
    /// The caller says it, and no test run shows it. A fault only where evidence is required.
    Stated {
        id: String,
    },
    /// The test run proves nothing of the work tree of now. A fault only where evidence is required.
    Run {
        operation: String,
        why: String,
    },
}

impl Fault {
    /// Fault of evidence whose command failed.
    fn failing(evidence: &Evidence) -> Option<Fault> {
        let exit_code = evidence.exit_code.filter(|&code| code != 0)?;
        let id = evidence.id.clone();
        Some(Fault::Failing { id, exit_code })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing => write!(f, "has no evidence"),
            Fault::Unknown { id, operation } => {
                write!(
                    f,
                    "has evidence {id} of {operation}, which is not a known test_run"
                )
            }
            Fault::Elsewhere { operation } => {
                write!(f, "has evidence of {operation}, which ran in another envelope")
            }
            Fault::Failing { id, exit_code } => {
                write!(f, "has failing evidence: {id} has exit code {exit_code}")
            }
            Fault::Stale { mutations: 1 } => write!(f, "has evidence that is older than the last change"),
            Fault::Stale { mutations } => {
                write!(f, "has evidence that is older than the last {mutations} changes")
            }
            Fault::Stated { id } => {
                write!(f, "has only evidence that is not from test_run: {id}")
            }
            Fault::Run { operation, why } => write!(f, "has evidence of {operation}, which {why}"),
        }
    }
}

/// The latest evidence of one step.
pub(crate) struct Proof(Vec<Evidence>);

impl Proof {
    /// Loads the evidence of a step.
    pub(crate) fn of(scope: &Scope<'_>, step: &str) -> Result<Proof, ToolError> {
        let latest = latest_children::<Evidence>(scope.db(), &scope.workspace, step, MAX_EXAMINED)?;
        Ok(Proof(latest.into_iter().map(|placed| placed.record).collect()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether something was shown for a checkpoint. What was shown for the tests speaks for the criteria, too,
    /// because criteria seldom have evidence of their own.
    pub(crate) fn backs(&self, checkpoint: Checkpoint) -> bool {
        let other = (checkpoint == Checkpoint::Criteria).then_some(Checkpoint::Tests);
        self.deciding(checkpoint).is_some() || other.is_some_and(|other| self.deciding(other).is_some())
    }

    /// Faults of the evidence for a checkpoint at a moment. Where evidence is required, only a test run that passed
    /// on the work tree of now has none.
    pub(crate) fn faults(
        &self,
        scope: &Scope<'_>,
        checkpoint: Checkpoint,
        now: &Moment,
        look: Look,
    ) -> Result<Vec<Fault>, ToolError> {
        if !scope.config.requires_evidence(&scope.workspace) {
            return Ok(self.faults_as_told(checkpoint, now));
        }
        let Some((run, operation)) = self.run(checkpoint) else {
            let told = self.deciding(checkpoint);
            return Ok(vec![
                told.map_or(Fault::Missing, |told| Fault::Stated { id: told.id.clone() }),
            ]);
        };
        let mut faults = self.faults_since(run, checkpoint, now);
        if faults.is_empty()
            && let Some(why) = run::doubt(scope, operation, look)?
        {
            let operation = operation.to_owned();
            faults.push(Fault::Run { operation, why });
        }
        Ok(faults)
    }

    /// Faults where the caller is believed.
    fn faults_as_told(&self, checkpoint: Checkpoint, now: &Moment) -> Vec<Fault> {
        let Some(evidence) = self.deciding(checkpoint) else {
            return vec![Fault::Missing];
        };
        let mut faults: Vec<Fault> = Fault::failing(evidence).into_iter().collect();
        let mutations = now.since(&evidence.taken);
        if mutations > 0 {
            faults.push(Fault::Stale { mutations });
        }
        if let Some(operation) = &evidence.operation {
            if evidence.exit_code.is_none() {
                faults.push(Fault::Unknown {
                    id: evidence.id.clone(),
                    operation: operation.clone(),
                });
            } else if mutations == 0 && !now.is_in_envelope_of(&evidence.taken) {
                faults.push(Fault::Elsewhere {
                    operation: operation.clone(),
                });
            }
        }
        faults
    }

    /// Faults of a test run by its result, and by what followed.
    fn faults_since(&self, run: &Evidence, checkpoint: Checkpoint, now: &Moment) -> Vec<Fault> {
        let later = self.0.iter().take_while(|evidence| evidence.id != run.id);
        let failed = later
            .chain([run])
            .filter(|evidence| [run.checkpoint, Some(checkpoint)].contains(&evidence.checkpoint))
            .find_map(Fault::failing);
        let mut faults: Vec<Fault> = failed.into_iter().collect();
        let mutations = now.since(&run.taken);
        if mutations > 0 {
            faults.push(Fault::Stale { mutations });
        }
        faults
    }

    /// The latest test run for a checkpoint: linked to it, otherwise linked to none.
    fn run(&self, checkpoint: Checkpoint) -> Option<(&Evidence, &str)> {
        let linked = |to: Option<Checkpoint>| {
            let mut of = self.0.iter().filter(move |evidence| evidence.checkpoint == to);
            of.find_map(|evidence| {
                evidence.exit_code?;
                Some((evidence, evidence.operation.as_deref()?))
            })
        };
        linked(Some(checkpoint)).or_else(|| linked(None))
    }

    /// The evidence that counts for a checkpoint: linked to it, otherwise linked to none. Of several, the latest
    /// run of a command, otherwise the latest.
    fn deciding(&self, checkpoint: Checkpoint) -> Option<&Evidence> {
        let linked = |to: Option<Checkpoint>| {
            let mut of = self.0.iter().filter(move |evidence| evidence.checkpoint == to);
            let run = of.clone().find(|evidence| evidence.exit_code.is_some());
            run.or_else(|| of.next())
        };
        linked(Some(checkpoint)).or_else(|| linked(None))
    }
}

/// Warnings about the evidence of checkpoints that a call confirms. Where evidence is optional, none is no fault.
pub(crate) fn warnings(
    scope: &Scope<'_>,
    proof: &Proof,
    confirmed: &[Checkpoint],
    now: &Moment,
) -> Result<Vec<Warning>, ToolError> {
    let mut warnings = Vec::new();
    for &checkpoint in confirmed {
        let faults = proof.faults(scope, checkpoint, now, Look::Now)?;
        warnings.extend(faults.into_iter().filter_map(|fault| warning(checkpoint, fault)));
    }
    Ok(warnings)
}

fn warning(checkpoint: Checkpoint, fault: Fault) -> Option<Warning> {
    let (code, message) = match fault {
        // Where these are faults, they refuse the call.
        Fault::Missing | Fault::Stated { .. } | Fault::Run { .. } => return None,
        Fault::Unknown { id, operation } => (
            "UNKNOWN_RUN",
            format!(
                "{checkpoint} is confirmed, but its evidence {id} names {operation}, which is not a known test_run"
            ),
        ),
        Fault::Failing { id, exit_code } => (
            "FAILING_EVIDENCE",
            format!("{checkpoint} is confirmed, but its evidence {id} has exit code {exit_code}"),
        ),
        Fault::Stale { mutations } => {
            let mutations = match mutations {
                1 => "1 mutation".to_owned(),
                count => format!("{count} mutations"),
            };
            let text = format!(
                "{mutations} happened after the evidence for {checkpoint} was captured; capture it again"
            );
            ("STALE_EVIDENCE", text)
        }
        Fault::Elsewhere { operation } => (
            "STALE_EVIDENCE",
            format!(
                "{operation}, the evidence for {checkpoint}, ran in another envelope; run the tests again"
            ),
        ),
    };
    Some(Warning::new(code, message))
}

/// Checkpoints whose evidence decides about closing a step. Where evidence is required, a step that has no checkpoint
/// and no steps of its own is proven by any evidence, as its criteria would be: an empty step would be a way around it.
pub(crate) fn to_prove(
    scope: &Scope<'_>,
    step: &Step,
    named: &BTreeSet<Checkpoint>,
) -> Result<BTreeSet<Checkpoint>, ToolError> {
    let mut required = checkpoint::required(step, named);
    if required.is_empty()
        && scope.config.requires_evidence(&scope.workspace)
        && store::record::children::<Step>(scope.db(), &scope.workspace, &step.id, 1)?.is_empty()
    {
        required.insert(Checkpoint::Criteria);
    }
    Ok(required)
}

/// Requires evidence that proves checkpoints, where the workspace says so.
pub(crate) fn want(
    scope: &Scope<'_>,
    step: &Located<Step>,
    checkpoints: impl IntoIterator<Item = Checkpoint>,
    now: &Moment,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    let proof = Proof::of(scope, &step.record.id)?;
    want_of(scope, &proof, &step.path.to_string(), checkpoints, now, refusals)
}

/// The same for evidence that is read already.
pub(crate) fn want_of(
    scope: &Scope<'_>,
    proof: &Proof,
    path: &str,
    checkpoints: impl IntoIterator<Item = Checkpoint>,
    now: &Moment,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    if !scope.config.requires_evidence(&scope.workspace) {
        return Ok(());
    }
    for checkpoint in checkpoints {
        for fault in proof.faults(scope, checkpoint, now, Look::Now)? {
            refusals.add(Reason::EvidenceRequired {
                path: path.to_owned(),
                checkpoint,
                fault: fault.to_string(),
            });
        }
    }
    Ok(())
}
