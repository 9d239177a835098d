//! Reserves, commits and drops budget units, and adds any event to the ledger.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{
    BudgetError, Cx, Effect, Event, Migration, OperationFilter, Pack, Reservation, Tool, ToolError, Want,
    tools,
};

/// Use units in a write call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Name of the budget to use.
    budget: String,
    /// Number of units to reserve.
    reserve: u64,
    /// Number of units to commit. Default: drop the reservation.
    commit: Option<u64>,
    /// Fail at the end of the call. Default false.
    #[serde(default)]
    fail: bool,
}

impl Tool for Write {
    const NAME: &'static str = "reserve_write";
    const TITLE: &'static str = "Book in a write";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let reservation = cx.budget().reserve(&self.budget, self.reserve)?;
        finish(reservation, self.commit)?;
        cx.db
            .execute("INSERT INTO reserve_rows (body) VALUES (NULL)", &[])?;
        if self.fail {
            return Err(ToolError::new("ASKED_TO_FAIL", "asked to fail"));
        }
        Ok(counters(cx))
    }
}

/// End of a run call after a reservation.
#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Return,
    Trap,
    Hang,
    // Commit inside a transaction that is dropped.
    RollBack,
    // Commit inside a transaction that is committed.
    Together,
    // Reserve inside a transaction.
    Nested,
}

/// Use units in a run call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Name of the budget to use.
    budget: String,
    /// Number of units to reserve.
    reserve: u64,
    /// Number of units to commit. Default: drop the reservation.
    commit: Option<u64>,
    /// End of the call after the reservation.
    ending: Ending,
}

impl Tool for Run {
    const NAME: &'static str = "reserve_run";
    const TITLE: &'static str = "Book in a run";
    const EFFECT: Effect = Effect::Run;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        if self.ending == Ending::Nested {
            let nested = cx
                .transaction(|_| Ok::<_, ToolError>(cx.budget().reserve(&self.budget, self.reserve).err()))?;
            return Ok(Done::new(format!("{nested:?}")));
        }
        let reservation = cx.budget().reserve(&self.budget, self.reserve)?;
        match self.ending {
            Ending::Trap => {
                std::mem::forget(reservation);
                panic!("asked to trap");
            }
            Ending::Hang => loop {
                std::hint::black_box(());
            },
            Ending::RollBack => {
                let undone: Result<(), ToolError> = cx.transaction(|_| {
                    finish(reservation, self.commit)?;
                    Err(ToolError::new("UNDONE", "undone"))
                });
                Ok(Done::new(format!(
                    "{:?} {}",
                    undone.is_err(),
                    counters(cx).result
                )))
            }
            Ending::Together => {
                cx.transaction(|db| {
                    db.execute("INSERT INTO reserve_rows (body) VALUES (NULL)", &[])?;
                    finish(reservation, self.commit).map_err(ToolError::from)
                })?;
                Ok(counters(cx))
            }
            Ending::Return | Ending::Nested => {
                finish(reservation, self.commit)?;
                Ok(counters(cx))
            }
        }
    }
}

/// Return the envelope and try to reserve in a read call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {}

impl Tool for Read {
    const NAME: &'static str = "reserve_read";
    const TITLE: &'static str = "Look";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let refused = cx.budget().reserve("approvals", 1).err();
        Ok(Done::new(format!("{refused:?} {}", counters(cx).result)))
    }
}

/// Add an event to the record of a write call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Type of the event, for example task.created.
    event_type: String,
    /// Names of the changed entities.
    #[serde(default)]
    changed: Vec<String>,
    /// Fingerprint of a failure. Default none.
    failure: Option<String>,
    /// Fingerprint of a change. Default none.
    mutation: Option<String>,
    /// Number of times to add the event.
    #[serde(default)]
    times: u32,
    /// Fail at the end of the call. Default false.
    #[serde(default)]
    fail: bool,
}

impl Record {
    fn record(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let mut event = Event::new(&self.event_type).changed(self.changed).note("noted");
        if let Some(failure) = &self.failure {
            event = event.failure(failure, ["it fails"]);
        }
        event.mutation_fingerprint = self.mutation;
        for _ in 0..self.times.max(1) {
            cx.ledger().append(&event)?;
        }
        if self.fail {
            return Err(ToolError::new("ASKED_TO_FAIL", "asked to fail"));
        }
        Ok(Done::new("recorded"))
    }
}

impl Tool for Record {
    const NAME: &'static str = "reserve_record";
    const TITLE: &'static str = "Record";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        self.record(cx)
    }
}

/// Add an event to the record of a read call.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Notice(Record);

impl Tool for Notice {
    const NAME: &'static str = "reserve_notice";
    const TITLE: &'static str = "Notice";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        self.0.record(cx)
    }
}

/// Query the ledger.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Only operations with this failure fingerprint.
    failure: Option<String>,
    /// Only operations of this tool.
    of_tool: Option<String>,
    /// Only operations after this number.
    after: Option<u64>,
    /// Maximum number of operations.
    limit: u32,
}

impl Tool for Query {
    const NAME: &'static str = "reserve_query";
    const TITLE: &'static str = "Query";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let found = cx.ledger().query(&OperationFilter {
            failure_fingerprint: self.failure,
            tool: self.of_tool,
            after: self.after,
            limit: self.limit,
            ..OperationFilter::default()
        })?;
        let lines: Vec<String> = found
            .iter()
            .map(|operation| format!("{} {}", operation.seq, operation.tool))
            .collect();
        Ok(Done::new(lines.join(", ")))
    }
}

fn finish(reservation: Reservation<'_>, commit: Option<u64>) -> Result<(), BudgetError> {
    match commit {
        Some(used) => reservation.commit(used),
        None => Ok(()),
    }
}

fn counters(cx: &Cx<'_>) -> Done {
    let Some(envelope) = cx.budget().current() else {
        return Done::new("no envelope");
    };
    let counters: Vec<String> = envelope
        .counters
        .iter()
        .map(|counter| format!("{} {}/{:?}", counter.name, counter.used, counter.limit))
        .collect();
    Done::new(counters.join(", "))
}

const PACK: Pack = Pack {
    name: "reserve",
    version: "0.1.0",
    summary: "Spends budgets and writes into the ledger.",
    wants: &[
        Want::LedgerQuery,
        Want::Budget("approvals"),
        Want::Budget("missing"),
    ],
    tools: tools![Write, Run, Read, Record, Notice, Query],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE reserve_rows (id INTEGER PRIMARY KEY, body BLOB);",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
