//! Replay of recorded calls with a policy that was not active then, to show what it would have decided.
//!
//! The calls are replayed in order, and the ledger that the policy sees grows with them. For each call it therefore
//! sees what it would have seen then. A call that the policy denies is in that ledger as denied, whatever its actual
//! outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tollgate_components::catalog::Catalog;
use tollgate_components::loading::Origin;
use tollgate_components::policies::{Decision, Described, Phase, Source};
use tollgate_core::effect::Effect;
use tollgate_core::failure_class::FailureClass;
use tollgate_gate::{ChainVerdicts, Trial};
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_store::storage::{Operation, OperationFilter, Session, StoredOperation};

use super::recorded::{Missing, Records};
use super::tally::{Example, HypotheticalVerdict, Tally, ToolTally};
use super::{End, aside, at_leisure, compare};
use crate::config::Config;
use crate::host::HostContext;

/// Number of rows read at once.
const BATCH_ROWS: u32 = 500;
/// Number of rows before the first evaluated call that policies may look back at.
const HISTORY_ROWS: u32 = 10_000;

/// Result of replaying recorded calls with a policy.
#[derive(Debug, Serialize)]
pub struct Replay {
    /// Start of the evaluated time.
    pub since: String,
    /// Tools whose calls the policy evaluated.
    pub tools: Vec<ToolTally>,
    /// Calls that could not be replayed, by reason.
    pub missing: BTreeMap<Missing, u64>,
    /// Calls whose result the policy would have evaluated, but was not recorded.
    pub without_result: u64,
    /// Calls that the policy does not evaluate.
    pub not_judged: u64,
}

/// Replays the calls recorded since a time with a policy, within `time`. Nothing is changed. Only a built-in
/// policy, or one with a grant, gets access to files of workspaces.
pub async fn replay(
    context: &HostContext,
    config: &Config,
    workspaces: &Workspaces,
    source: Source,
    since: String,
    examples: usize,
    time: Duration,
) -> anyhow::Result<Replay> {
    let end = End::after(time);
    let is_trusted = matches!(source.origin, Origin::Builtin(_)) || source.grants.workspaces.is_some();
    let nothing = Workspaces::default();
    let workspaces = if is_trusted { workspaces } else { &nothing };
    let described = Described::of(context.loader(), &source.origin, source.sha256.as_deref()).await;
    let described = described.map_err(|problems| anyhow::anyhow!("{}", problems.join("; ")))?;
    let limit = source.limits.time;
    let source = at_leisure(source, &described);
    let catalog = context.load_to_try(config, workspaces, source).await?;
    if let Some(unloaded) = catalog.policies().failures().next() {
        anyhow::bail!("{unloaded}");
    }
    aside(|| show(context, catalog, since, Tally::new(examples, limit), end))
}

fn show(
    context: &HostContext,
    catalog: Arc<Catalog>,
    since: String,
    tally: Tally,
    end: End,
) -> anyhow::Result<Replay> {
    let artifacts = context.artifacts()?;
    let session = context.database().read_session()?;
    let trial = Trial::of(context.services(), catalog.policies().policies())?;
    let mut past = Past {
        records: Records {
            session: &session,
            store: artifacts.as_ref(),
        },
        catalog,
        trial,
        tally,
        not_judged: 0,
        end,
    };
    past.go_through(&since)?;
    Ok(Replay {
        since,
        missing: past.tally.missing.clone(),
        without_result: past.tally.without_result,
        not_judged: past.not_judged,
        tools: past.tally.tools(),
    })
}

/// Recorded calls, and the policy that evaluates them.
struct Past<'a> {
    records: Records<'a>,
    catalog: Arc<Catalog>,
    trial: Trial,
    tally: Tally,
    not_judged: u64,
    end: End,
}

impl Past<'_> {
    fn go_through(&mut self, since: &str) -> anyhow::Result<()> {
        let session: &Session = self.records.session;
        // A host may be adding rows at the same time.
        let end = session.ledger().head()?.seq;
        let mut place = session.operations().place_before(since)?;
        let before = OperationFilter {
            before: Some(place + 1),
            ..OperationFilter::default()
        };
        let mut history = session.operations().list(&before, HISTORY_ROWS)?;
        history.reverse();
        let history: Vec<Operation> = history.iter().filter_map(StoredOperation::operation).collect();
        self.trial.record(&history)?;
        while place < end {
            let next = OperationFilter {
                after: Some(place),
                ..OperationFilter::default()
            };
            let rows = session.operations().list(&next, BATCH_ROWS)?;
            let Some(last) = rows.last() else { break };
            place = last.seq;
            for row in rows.iter().filter(|row| row.seq <= end) {
                self.step(row, since)?;
            }
        }
        Ok(())
    }

    /// Replays a call, and adds it to the ledger that the policy sees.
    fn step(&mut self, row: &StoredOperation, since: &str) -> anyhow::Result<()> {
        self.end.look()?;
        let Some(mut operation) = row.operation() else {
            return Ok(());
        };
        if row.timestamp.as_str() >= since
            && let Some(code) = self.judge(row, operation.effect)?
        {
            operation.success = Some(false);
            operation.error_code = Some(code);
            operation.failure_class = Some(FailureClass::Refused.as_str().to_owned());
            operation.result_hash = None;
            operation.mutation_fingerprint = None;
            operation.failure_fingerprint = None;
        }
        Ok(self.trial.record(&[operation])?)
    }

    /// Evaluates a call, if the policy covers it. Returns the code of a denial.
    fn judge(&mut self, row: &StoredOperation, effect: Effect) -> anyhow::Result<Option<String>> {
        if !self.may_judge(&row.tool) {
            self.not_judged += 1;
            return Ok(None);
        }
        let request = match self.records.request(row, effect)? {
            Ok(request) => request,
            Err(missing) => {
                self.tally.miss(missing);
                return Ok(None);
            }
        };
        let given: Value = serde_json::from_str(&request.arguments).unwrap_or_default();
        let verdicts = self.trial.evaluate(&self.catalog, request)?;
        let (decision, took) = self.review(row, effect, &verdicts)?;
        if !verdicts.was_judged && took.is_zero() {
            self.not_judged += 1;
            return Ok(None);
        }
        let hypothetical = hypothetical(&decision, &given, verdicts.amended.as_ref());
        let code = match &hypothetical {
            HypotheticalVerdict::Deny { code, .. } => Some(code.clone()),
            HypotheticalVerdict::Fail { .. } => Some("POLICY_FAILED".to_owned()),
            HypotheticalVerdict::Pass
            | HypotheticalVerdict::Amend { .. }
            | HypotheticalVerdict::Ask { .. } => None,
        };
        let example = Example {
            op_id: row.op_id.clone(),
            timestamp: row.timestamp.clone(),
            hypothetical,
        };
        self.tally.count(&row.tool, verdicts.took + took, example);
        Ok(code)
    }

    /// Returns whether the policy may evaluate a tool. For a tool that runs others, the arguments decide.
    fn may_judge(&self, tool: &str) -> bool {
        let chain = self.catalog.policies();
        let runs_others = || {
            self.catalog
                .find(tool)
                .is_some_and(|tool| tool.spec.members.is_some())
        };
        chain.judges(Phase::Request, tool) || chain.judges(Phase::Response, tool) || runs_others()
    }

    /// Evaluates the recorded result too, unless the call was already denied. Returns the final decision.
    fn review(
        &mut self,
        row: &StoredOperation,
        effect: Effect,
        verdicts: &ChainVerdicts,
    ) -> anyhow::Result<(Decision, Duration)> {
        let before = || (verdicts.decision.clone(), Duration::ZERO);
        let is_over = matches!(verdicts.decision, Decision::Deny(_));
        if is_over || !Trial::is_reviewed(&self.catalog, verdicts) {
            return Ok(before());
        }
        let Some(outcome) = self.records.outcome(row)? else {
            self.tally.without_result += 1;
            return Ok(before());
        };
        let (after, took) = self.trial.review(&self.catalog, verdicts, &outcome, effect)?;
        Ok(match after {
            Decision::Pass => (verdicts.decision.clone(), took),
            denied => (denied, took),
        })
    }
}

fn hypothetical(decision: &Decision, given: &Value, amended: Option<&Value>) -> HypotheticalVerdict {
    match (decision, amended) {
        (Decision::Deny(err), _) => match err.context.get("cause").and_then(Value::as_str) {
            Some(cause) if err.code == "POLICY_FAILED" => HypotheticalVerdict::Fail {
                cause: cause.to_owned(),
            },
            _ => HypotheticalVerdict::Deny {
                code: err.code.clone(),
                message: err.message.clone(),
            },
        },
        (Decision::Ask(question), _) => HypotheticalVerdict::Ask {
            message: question.message.clone(),
        },
        // Only the paths, not the values, which may be sensitive.
        (Decision::Pass, Some(amended)) => HypotheticalVerdict::Amend {
            places: compare::paths(given, amended)
                .into_iter()
                .map(|change| change.path)
                .collect(),
        },
        (Decision::Pass, None) => HypotheticalVerdict::Pass,
    }
}
