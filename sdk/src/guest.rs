//! Guest side: implements the component's exports with a [`Pack`], and a [`Host`] with its imports.

pub mod policy;

use serde_json::Value as Json;

use crate::budget::Reserved;
use crate::workspace::Upcoming;
use crate::{
    Approval, ApprovalError, ApprovalRequest, ApprovalStatus, ArtifactError, ArtifactKind, BudgetError,
    CallInfo, ClientPart, Command, Cx, DbError, Effect, Envelope, Event, FileEntry, FoundOperation,
    GitAccess, Host, LedgerError, Level, Listing, Migration, NextCall, Operation, OperationFilter, Outcome,
    Pack, ProcessError, Row, SeenWorkTree, Slot, TestOutcome, TestedTree, Tier, ToolError, Transaction,
    Value, Want, WorkTreeChange, WorkspaceError, WorkspaceInfo,
};

/// Bindings that `cargo xtask docs` generates from `wit/`.
#[allow(
    unsafe_code,
    unreachable_pub,
    unused_qualifications,
    missing_docs,
    clippy::all,
    clippy::cast_possible_truncation,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
#[rustfmt::skip]
pub mod bindings;

mod approvals;
mod ask;
mod process;
mod record;
mod workspace;

pub use bindings::export_component;

use bindings::exports::tollgate::host::pack as wit;
use bindings::tollgate::host::{clock_and_ids, component, connections, log, storage};

/// Implemented by `export_pack!`.
pub trait Exported {
    /// Pack behind the exports.
    const PACK: &'static Pack;
}

impl<E: Exported> wit::Guest for E {
    fn describe() -> wit::Manifest {
        manifest(E::PACK)
    }

    fn call(cx: wit::Context, tool: String, arguments: String) -> Result<wit::Reply, wit::ToolError> {
        let call = CallInfo {
            op_id: cx.op_id,
            envelope_id: cx.envelope_id,
            identity: cx.identity,
            client: cx.client,
            config: cx.config,
            session_id: cx.session_id,
            answers: cx.answers.into_iter().map(ask::answer).collect(),
            remembered: cx.remembered,
        };
        let run = E::PACK.tool(&tool).map(|entry| entry.call);
        let Some(run) = run.or_else(|| E::PACK.prompt(&tool).map(|entry| entry.call)) else {
            let err = ToolError::new(
                "UNKNOWN_TOOL",
                format!("`{tool}` is not a tool of {}", E::PACK.name),
            );
            return Err(wire_error(err, false));
        };
        let cx = Cx::new(&Imports, &call);
        match run(&cx, &arguments) {
            Ok(reply) => Ok(wit::Reply {
                structured: reply.structured,
                text: reply.text,
                content: reply.content.into_iter().map(ask::content).collect(),
            }),
            Err(err) => Err(wire_error(err, cx.keeps_rows())),
        }
    }
}

fn manifest(pack: &Pack) -> wit::Manifest {
    wit::Manifest {
        name: pack.name.to_owned(),
        version: pack.version.to_owned(),
        summary: pack.summary.to_owned(),
        instructions: pack.instructions.to_owned(),
        wants: pack.wants.iter().map(wire_want).collect(),
        migrations: pack.migrations.iter().map(wire_migration).collect(),
        tools: pack.tools.iter().map(wire_tool).collect(),
        prompts: pack.prompts.iter().map(wire_prompt).collect(),
        config_schema: pack.config_schema.map(|make| make().to_string()),
        render_tool: pack.render_tool.map(str::to_owned),
    }
}

fn wire_tool(entry: &crate::Entry) -> wit::Tool {
    let mut input = (entry.input_schema)();
    let description = match input
        .as_object_mut()
        .and_then(|schema| schema.remove("description"))
    {
        Some(Json::String(text)) => text,
        _ => String::new(),
    };
    wit::Tool {
        name: entry.name.to_owned(),
        title: entry.title.to_owned(),
        description,
        effect: wire_effect(entry.effect),
        tier: match entry.tier {
            Tier::Core => wit::Tier::Core,
            Tier::Standard => wit::Tier::Standard,
            Tier::Full => wit::Tier::Full,
        },
        destructive: entry.hints.destructive,
        idempotent: entry.hints.idempotent,
        open_world: entry.hints.open_world,
        members: entry.hints.members.map(str::to_owned),
        input_schema: input.to_string(),
        output_schema: (entry.output_schema)().to_string(),
        aliases: entry.aliases.iter().map(|&alias| alias.to_owned()).collect(),
    }
}

fn wire_prompt(entry: &crate::PromptEntry) -> wit::Prompt {
    wit::Prompt {
        name: entry.name.to_owned(),
        title: entry.title.to_owned(),
        description: entry.description(),
        arguments: entry
            .arguments()
            .into_iter()
            .map(|argument| wit::PromptArgument {
                name: argument.name,
                description: argument.description,
                required: argument.required,
            })
            .collect(),
    }
}

fn wire_migration(step: &Migration) -> component::Migration {
    component::Migration {
        name: step.name.to_owned(),
        sql: step.sql.to_owned(),
    }
}

fn wire_want(want: &Want) -> component::Want {
    match *want {
        Want::WorkspaceRead(name) => component::Want::WorkspaceRead(name.to_owned()),
        Want::WorkspaceWrite(prefix) => component::Want::WorkspaceWrite(prefix.to_owned()),
        Want::Process(program) => component::Want::Process(program.to_owned()),
        Want::Tests => component::Want::Tests,
        Want::Git(GitAccess::Read) => component::Want::Git(component::GitAccess::Read),
        Want::Git(GitAccess::Write) => component::Want::Git(component::GitAccess::Write),
        Want::LedgerQuery => component::Want::LedgerQuery,
        Want::Budget(name) => component::Want::Budget(name.to_owned()),
        Want::Artifacts => component::Want::Artifacts,
        Want::Client(ClientPart::Model) => component::Want::Client(component::ClientPart::Model),
        Want::Client(ClientPart::Roots) => component::Want::Client(component::ClientPart::Roots),
    }
}

fn wire_error(err: ToolError, keep_rows: bool) -> wit::ToolError {
    wit::ToolError {
        code: err.code,
        message: err.message,
        remediation: err.remediation,
        blockers: err
            .blockers
            .into_iter()
            .map(|blocker| wit::Blocker {
                code: blocker.code,
                message: blocker.message,
                field: blocker.field,
                next_call: blocker.next_call.map(wire_next_call),
            })
            .collect(),
        context: Json::Object(err.context).to_string(),
        next_call: err.next_call.map(wire_next_call),
        keep_rows,
        asking: err.asking.map(|asking| ask::asking(*asking)),
    }
}

fn wire_effect(effect: Effect) -> component::Effect {
    match effect {
        Effect::Read => component::Effect::Read,
        Effect::Write => component::Effect::Write,
        Effect::Run => component::Effect::Run,
    }
}

fn read_effect(effect: component::Effect) -> Effect {
    match effect {
        component::Effect::Read => Effect::Read,
        component::Effect::Write => Effect::Write,
        component::Effect::Run => Effect::Run,
    }
}

fn wire_next_call(call: NextCall) -> component::NextCall {
    component::NextCall {
        tool: call.tool,
        arguments: Json::Object(call.arguments).to_string(),
    }
}

/// Implements [`Host`] with the imports of the component.
pub struct Imports;

impl Host for Imports {
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        storage::query(sql, &wire_params(params))
            .map(rows)
            .map_err(db_error)
    }

    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        storage::execute(sql, &wire_params(params)).map_err(db_error)
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, DbError> {
        let transaction = storage::Transaction::begin().map_err(db_error)?;
        Ok(Box::new(transaction))
    }

    fn now_ms(&self) -> i64 {
        clock_and_ids::now()
    }

    fn new_id(&self, prefix: &str) -> String {
        clock_and_ids::new_id(prefix)
    }

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => log::Level::Debug,
            Level::Info => log::Level::Info,
            Level::Warn => log::Level::Warn,
            Level::Error => log::Level::Error,
        };
        log::write(level, message);
    }

    fn append_event(&self, event: &Event) -> Result<(), LedgerError> {
        record::append(event)
    }

    fn set_test_outcome(&self, outcome: &TestOutcome) -> Result<(), LedgerError> {
        record::set_test_outcome(outcome)
    }

    fn seen_work_tree(&self, workspace: &str) -> Result<SeenWorkTree, LedgerError> {
        record::seen_work_tree(workspace)
    }

    fn edits_over_envelopes(&self, workspace: &str) -> Result<Option<u64>, LedgerError> {
        record::edits_over_envelopes(workspace)
    }

    fn changed_since(&self, workspace: &str, edits: u64) -> Result<Option<WorkTreeChange>, LedgerError> {
        record::changed_since(workspace, edits)
    }

    fn query_ledger(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        record::query(filter)
    }

    fn query_whole(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        record::query_whole(filter)
    }

    fn find_operation(&self, op_id: &str) -> Result<Option<FoundOperation>, LedgerError> {
        record::find(op_id)
    }

    fn compare_work_tree(&self, op_id: &str, workspace: &str) -> Result<TestedTree, LedgerError> {
        record::compare_work_tree(op_id, workspace)
    }

    fn connection(&self) -> Option<String> {
        connections::current()
    }

    fn is_connected(&self, name: &str) -> bool {
        connections::is_open(name)
    }

    fn take_once(&self, key: &str, until_ms: i64) -> Result<bool, LedgerError> {
        record::take_once(key, until_ms)
    }

    fn take_slot(&self, slot: &Slot) -> Result<Option<u64>, LedgerError> {
        record::take_slot(slot)
    }

    fn keep_artifact(&self, kind: ArtifactKind, content: &[u8]) -> Result<Option<String>, ArtifactError> {
        record::keep(kind, content)
    }

    fn ask_approval(&self, request: &ApprovalRequest) -> Result<Approval, ApprovalError> {
        approvals::ask(request)
    }

    fn find_approval(&self, key: &str) -> Result<Option<Approval>, ApprovalError> {
        approvals::find(key)
    }

    fn settle_approval(
        &self,
        key: &str,
        status: ApprovalStatus,
        by: Option<&str>,
        note: Option<&str>,
    ) -> Result<bool, ApprovalError> {
        approvals::settle(key, status, by, note)
    }

    fn envelope(&self) -> Option<Envelope> {
        record::envelope()
    }

    fn reserve(&self, name: &str, amount: u64) -> Result<Box<dyn Reserved + '_>, BudgetError> {
        let reserved = record::reserve(name, amount)?;
        Ok(reserved)
    }

    fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        log::progress(done, total, message);
    }

    fn workspace_names(&self) -> Vec<String> {
        workspace::names()
    }

    fn describe_workspace(&self, workspace: &str) -> Result<WorkspaceInfo, WorkspaceError> {
        workspace::describe(workspace)
    }

    fn list_files(
        &self,
        workspace: &str,
        directory: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        workspace::list(workspace, directory, after, limit)
    }

    fn list_files_unless(
        &self,
        workspace: &str,
        directory: &str,
        known: Option<u64>,
        limit: u32,
    ) -> Result<Option<Listing>, WorkspaceError> {
        workspace::list_unless(workspace, directory, known, limit)
    }

    fn stat_file(&self, workspace: &str, path: &str) -> Result<FileEntry, WorkspaceError> {
        workspace::stat(workspace, path)
    }

    fn read_file(
        &self,
        workspace: &str,
        path: &str,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<u8>, WorkspaceError> {
        workspace::read(workspace, path, offset, limit)
    }

    fn read_ahead(&self, workspace: &str, next: &[Upcoming<'_>]) {
        workspace::read_ahead(workspace, next);
    }

    fn write_file(&self, workspace: &str, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
        workspace::write(workspace, path, content)
    }

    fn append_file(&self, workspace: &str, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
        workspace::append(workspace, path, content)
    }

    fn run_process(&self, workspace: &str, command: &Command) -> Result<Outcome, ProcessError> {
        process::run(workspace, command)
    }
}

impl Transaction for storage::Transaction {
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        storage::Transaction::query(self, sql, &wire_params(params))
            .map(rows)
            .map_err(db_error)
    }

    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        storage::Transaction::execute(self, sql, &wire_params(params)).map_err(db_error)
    }

    fn commit(self: Box<Self>) -> Result<(), DbError> {
        storage::Transaction::commit(*self).map_err(db_error)
    }
}

fn rows(rows: Vec<storage::Row>) -> Vec<Row> {
    rows.into_iter()
        .map(|row| Row::new(row.into_iter().map(value).collect()))
        .collect()
}

fn wire_params(params: &[Value]) -> Vec<storage::Value> {
    params
        .iter()
        .map(|value| match value {
            Value::Null => storage::Value::Null,
            Value::Integer(number) => storage::Value::Integer(*number),
            Value::Real(number) => storage::Value::Real(*number),
            Value::Text(text) => storage::Value::Text(text.clone()),
            Value::Blob(bytes) => storage::Value::Blob(bytes.clone()),
        })
        .collect()
}

fn value(value: storage::Value) -> Value {
    match value {
        storage::Value::Null => Value::Null,
        storage::Value::Integer(number) => Value::Integer(number),
        storage::Value::Real(number) => Value::Real(number),
        storage::Value::Text(text) => Value::Text(text),
        storage::Value::Blob(bytes) => Value::Blob(bytes),
    }
}

fn db_error(err: storage::Error) -> DbError {
    match err {
        storage::Error::Refused(why) => DbError::Refused(why),
        storage::Error::Constraint(why) => DbError::Constraint(why),
        storage::Error::ReadOnly => DbError::ReadOnly,
        storage::Error::TooLarge(why) => DbError::TooLarge(why),
        storage::Error::Full => DbError::Full,
        storage::Error::Interrupted => DbError::Interrupted,
        storage::Error::TransactionState(why) => DbError::TransactionState(why),
        storage::Error::Internal => DbError::Internal,
    }
}
