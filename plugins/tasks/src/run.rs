//! Test runs of the ledger as evidence: what a call claims of a run is not believed, what the ledger has of it is.

use tollgate_kit::runs::{Look, TestRun};
use tollgate_sdk::{Effect, FoundOperation, Operation, OperationFilter, Timestamp, ToolError};

use crate::model::EventType;
use crate::mutation::{BOOKKEEPING_TOOLS, InEnvelope, Moment};
use crate::scope::Scope;
use crate::store::{envelope, event};

/// Most operations of this pack that are examined between a run and its use as evidence.
const MAX_OPERATIONS_BETWEEN: u32 = 200;
/// Most events of the workspace that are examined.
const MAX_EVENTS: i64 = 1_000;

/// Events of writes that record something about the work and do not change it.
const RECORDING_EVENTS: &[EventType] = &[
    EventType::EvidenceCaptured,
    EventType::StepVerified,
    EventType::NoteAdded,
    EventType::StepClaimed,
    EventType::LeaseRenewed,
    EventType::LeaseReleased,
    EventType::TemplateSaved,
];

/// A test run that the ledger has.
#[derive(Debug)]
pub(crate) struct Run {
    /// 0 if all tests passed, otherwise 1.
    pub exit_code: i32,
    /// Result in words, for example `passed, 14 tests`.
    pub summary: String,
    /// Mutation counts when the run began.
    pub taken: Moment,
}

/// The test run with an operation id, or the reason why it is none of this workspace. Where evidence is required, also
/// the reason why it can never prove anything.
pub(crate) fn look_up(scope: &Scope<'_>, op_id: &str) -> Result<Result<Run, String>, ToolError> {
    let found = TestRun::find(scope.cx.ledger(), op_id, scope.workspace.as_str())?;
    let run = match found {
        Ok(run) => run,
        Err(fault) => return Ok(Err(fault)),
    };
    let fault = match scope.config.requires_evidence(&scope.workspace) {
        true => run.in_vain(),
        false => run.elsewhere(),
    };
    if let Some(fault) = fault {
        return Ok(Err(fault));
    }
    Ok(Ok(Run {
        exit_code: i32::from(!run.passed()),
        summary: run.in_words(),
        taken: taken(scope, &run.found)?,
    }))
}

/// Reason why a run does not prove what the work tree of now does. All of it is asked anew: what was stored of the run
/// is not believed.
pub(crate) fn doubt(scope: &Scope<'_>, op_id: &str, look: Look) -> Result<Option<String>, ToolError> {
    let found = TestRun::find(scope.cx.ledger(), op_id, scope.workspace.as_str())?;
    Ok(match found {
        Ok(run) => run.doubt(look),
        Err(fault) => Some(fault),
    })
}

/// The counts when a run began.
fn taken(scope: &Scope<'_>, found: &FoundOperation) -> Result<Moment, ToolError> {
    let began = Timestamp::from_ms(found.operation.at_ms);
    let first = scope.counters.events.saturating_sub(MAX_EVENTS);
    let since = event::count_since(scope.db(), &scope.workspace, first, began, RECORDING_EVENTS)?;
    Ok(Moment {
        mutations: scope.counters.mutations.saturating_sub(since),
        envelope: in_envelope(scope, found)?,
    })
}

/// The envelope's counts when a run began, without this pack's own records, as they are counted for other evidence.
fn in_envelope(scope: &Scope<'_>, found: &FoundOperation) -> Result<Option<InEnvelope>, ToolError> {
    let (Some(id), Some(mutations)) = (&found.operation.envelope_id, found.mutations) else {
        return Ok(None);
    };
    let passed = envelope::passed(scope.db(), id)?;
    let before = passed.saturating_sub(recorded_since(scope, &found.operation)?);
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    Ok(Some(InEnvelope {
        id: id.clone(),
        mutations: signed(mutations).saturating_sub(before.max(0)),
        edits: Some(found.edits.map_or(0, signed)),
    }))
}

/// Records of this pack in a run's envelope since the run. If there are too many, some count as changes, and the run
/// as out of date.
fn recorded_since(scope: &Scope<'_>, run: &Operation) -> Result<i64, ToolError> {
    let filter = OperationFilter {
        envelope_id: run.envelope_id.clone(),
        pack: Some(crate::PACK.name.to_owned()),
        effect: Some(Effect::Write),
        after: Some(run.seq),
        limit: MAX_OPERATIONS_BETWEEN,
        ..OperationFilter::default()
    };
    let since = scope.cx.ledger().query_whole(&filter)?;
    let recorded = since
        .iter()
        .filter(|operation| BOOKKEEPING_TOOLS.contains(&operation.tool.as_str()))
        .count();
    Ok(i64::try_from(recorded).unwrap_or(i64::MAX))
}
