//! Native backend over SQLite, with a fixed clock and sequential ids, for testing packs without wasm.
//!
//! [`Session`] runs each call as the host does: a `Write` tool in a transaction that an error rolls back, and a `Read`
//! tool without permission to write. [`Script`] runs lines of `tool {arguments}` in a session and prints the outcomes,
//! for tests to compare. [`Workspace`] is a real directory. Programs really run, if the pack requests them and the
//! session allows them.

mod approvals;
mod backend;
#[cfg(feature = "storage")]
mod portable;
mod recollection;
mod record;
mod schema_check;
mod script;
mod spawn;
#[cfg_attr(not(feature = "storage"), path = "native/no_storage.rs")]
mod storage;
pub mod table;
#[cfg(feature = "storage")]
mod tape;
mod workspaces;

mod judge;

pub use judge::{Judge, Judged};

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde_json::Value as Json;

pub use backend::Backend;
pub use record::Artifact;
use record::Record;
pub use script::{Check, Script, ShortForms, line_of};
use storage::Storage;
pub use workspaces::Workspace;
use workspaces::Workspaces;

use crate::permit::Asked;
use crate::{
    Answer, Approval, ApprovalRequest, ApprovalStatus, CallInfo, Counter, Cx, Effect, Entry, Envelope, Event,
    FoundOperation, Operation, Pack, Question, Reply, SeenWorkTree, Slot, TestOutcome, TestedTree, ToolError,
    WorkTreeChange, stale,
};

/// Start time of the clock: 2026-01-01T00:00:00Z.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, native::{EPOCH_MS, Session}};
/// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// assert_eq!(cx.now().as_ms(), EPOCH_MS);
/// session.advance_ms(60_000);
/// assert_eq!(cx.now().as_ms(), EPOCH_MS + 60_000);
/// ```
pub const EPOCH_MS: i64 = 1_767_225_600_000;

/// Remedy for tests that use tables when the SDK was built without a database.
const MISSING_STORAGE: &str = "to test tables, enable the feature `storage` of tollgate-sdk in Cargo.toml: [dev-dependencies] tollgate-sdk = { …, features = [\"storage\"] }";

/// Fails to compile if a pack has tables and the SDK has no database for testing them.
///
/// # Panics
/// If the pack has migrations, and the feature `storage` is missing.
#[doc(hidden)]
pub const fn require_storage(pack: &Pack) {
    assert!(
        cfg!(feature = "storage") || pack.migrations.is_empty(),
        "{}",
        MISSING_STORAGE
    );
}

/// Id of the host process, as packs see it.
const SESSION_ID: &str = "00000000-0000-7000-8000-000000000000";

/// A pack over an in-memory or file database.
///
/// ```
/// # use tollgate_sdk::{Cx, Effect, Entry, Hints, Pack, Tier, Tool, ToolError, tools};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Clear {}
/// # #[derive(serde::Serialize, schemars::JsonSchema)]
/// # struct Cleared {}
/// # impl Tool for Clear {
/// #     const NAME: &'static str = "notes_clear";
/// #     const TITLE: &'static str = "Throw all notes away";
/// #     const EFFECT: Effect = Effect::Write;
/// #     const TIER: Tier = Tier::Full;
/// #     const HINTS: Hints = Hints::DESTRUCTIVE;
/// #     type Output = Cleared;
/// #     fn run(self, _: &Cx<'_>) -> Result<Cleared, ToolError> { Ok(Cleared {}) }
/// #     // …
/// # }
/// # use tollgate_sdk::native::Session;
/// const PACK: Pack = Pack { name: "notes", tools: tools![Clear], ..Pack::EMPTY };
/// let session = Session::new(&PACK);
/// let log = session.script(
///     r#"
///     notes_clear {}
///     notes_clear {"all": true}
///     "#,
/// );
/// assert!(log.trim().starts_with("ok {}"), "{log}");
/// ```
pub struct Session {
    pack: &'static Pack,
    backend: Backend,
    call: RefCell<CallInfo>,
    answerer: Cell<Option<Answerer>>,
    /// True if arguments are checked against the schema of their tool.
    is_checked: bool,
}

/// Answers a question of a call, or returns `None` to leave the question unanswered.
type Answerer = fn(&Question) -> Option<Answer>;

impl Session {
    /// Opens the pack over an empty in-memory database.
    ///
    /// # Panics
    /// If a migration fails. That is a mistake in the pack, which a test should show.
    #[must_use]
    pub fn new(pack: &'static Pack) -> Session {
        let all = 0..pack.migrations.len();
        Session::over(pack, Storage::new(pack.name, pack.migrations, all))
    }

    /// Opens a policy, whose table names start with `policy_` and its name.
    pub(crate) fn new_policy(pack: &'static Pack) -> Session {
        let owner = format!("policy-{}", pack.name);
        let storage = Storage::new(&owner, pack.migrations, 0..pack.migrations.len());
        let session = Session::over(pack, storage);
        session.backend.requests.of_policy();
        session
    }

    /// Lets a policy read, or write if it evaluates the result of a `Write` call.
    pub(crate) fn judge_on(&self, effect: Effect) {
        self.backend.storage.allow(effect);
    }

    /// Begins the changes that a policy makes to its tables after a call.
    pub(crate) fn begin_judgement(&self, effect: Effect) {
        self.judge_on(effect);
        self.begin("judgement");
    }

    /// Ends these changes, and rolls them back unless the result passed.
    pub(crate) fn end_judgement(&self, is_kept: bool) {
        self.end("judgement", is_kept);
    }

    fn over(pack: &'static Pack, storage: Storage) -> Session {
        Session {
            pack,
            backend: Backend {
                storage,
                now: Cell::new(EPOCH_MS),
                step: Cell::new(1000),
                ids: RefCell::new(BTreeMap::new()),
                run: Cell::new(false),
                in_transaction: Cell::new(false),
                record: Record::new(pack),
                requests: approvals::Requests::default(),
                workspaces: Workspaces::new(Asked::of(pack.wants)),
                progress: RefCell::default(),
            },
            call: RefCell::new(CallInfo {
                session_id: SESSION_ID.to_owned(),
                ..CallInfo::default()
            }),
            answerer: Cell::new(None),
            is_checked: false,
        }
    }

    /// Registers a directory. The pack gets the access to it that its `wants` request.
    #[must_use]
    pub fn workspace(mut self, workspace: Workspace) -> Session {
        self.backend.workspaces.add(workspace);
        self
    }

    /// Grants a program that the pack requests.
    #[must_use]
    pub fn allow_program(mut self, program: &str) -> Session {
        self.backend.workspaces.allow(program);
        self
    }

    /// Progress reports of the calls so far, as `done/total message`.
    #[must_use]
    pub fn progress(&self) -> Vec<String> {
        self.backend.progress.borrow().clone()
    }

    /// Sets the pack's `config` table.
    #[must_use]
    pub fn config(self, config: &Json) -> Session {
        self.call.borrow_mut().config = config.to_string();
        self
    }

    /// Sets the MCP client's name for the following calls.
    pub fn set_client(&self, client: &str) {
        self.call.borrow_mut().client = Some(client.to_owned());
    }

    /// Sets the answers for the following calls, and the state that was stored with their questions.
    pub fn set_answers(&self, answers: Vec<Answer>, state: Option<&str>) {
        let mut call = self.call.borrow_mut();
        call.answers = answers;
        call.remembered = state.map(str::to_owned);
    }

    /// Answers questions of the following calls, as a client with a user does. A call that asks is repeated once with
    /// the answers.
    pub fn answer_with(&self, answerer: fn(&Question) -> Option<Answer>) {
        self.answerer.set(Some(answerer));
    }

    /// Leaves questions of the following calls unanswered.
    pub fn answer_nothing(&self) {
        self.answerer.set(None);
    }

    /// Sets the proven identity for the following calls.
    pub fn set_identity(&self, identity: &str) {
        self.call.borrow_mut().identity = Some(identity.to_owned());
    }

    /// Puts the following calls into an envelope, or into none. The envelope counts them as the host does.
    pub fn set_envelope(&self, id: Option<&str>) {
        self.call.borrow_mut().envelope_id = id.map(str::to_owned);
        let counter = |name: &str| Counter {
            name: name.to_owned(),
            used: 0,
            limit: None,
        };
        self.backend.record.envelope.replace(id.map(|id| Envelope {
            id: id.to_owned(),
            counters: vec![counter("mutations"), counter("test_runs")],
            remaining_seconds: None,
        }));
    }

    /// Counts mutations of other packs in the envelope.
    pub fn mutate_elsewhere(&self, mutations: u64) {
        self.backend.record.count("mutations", mutations);
    }

    /// Sets the number of edits of work trees that the envelope has counted, including those of editors.
    pub fn set_edits(&self, edits: u64) {
        if let Some(envelope) = &mut *self.backend.record.envelope.borrow_mut() {
            envelope.counters.retain(|counter| counter.name != "edits");
            envelope.counters.push(Counter {
                name: "edits".to_owned(),
                used: edits,
                limit: None,
            });
        }
    }

    /// Requests for approval so far, oldest first, with their answers. See [`Approvals`](crate::Approvals).
    #[must_use]
    pub fn approvals(&self) -> Vec<(ApprovalRequest, Approval)> {
        self.backend.requests.all()
    }

    /// Answers the open request with a key, as a person would. A name such as `token:ada` counts as a proven identity.
    ///
    /// # Panics
    /// If there is no open request with the key.
    pub fn answer_approval(&self, key: &str, approve: bool, by: &str) {
        let status = if approve {
            ApprovalStatus::Approved
        } else {
            ApprovalStatus::Rejected
        };
        let now_ms = self.backend.now.get();
        let answered = self.backend.requests.answer(key, status, Some(by), None, now_ms);
        assert!(answered, "no request with the key {key:?} is open");
    }

    /// Gives the envelope a named budget.
    pub fn set_budget(&self, name: &str, limit: u64) {
        self.backend.record.set_budget(name, limit);
    }

    /// Keeps artifacts for the pack from now on, as if the operator had enabled them.
    pub fn keep_artifacts(&self) {
        self.backend.record.keeps_artifacts.set(true);
    }

    /// Artifacts that the calls so far kept.
    #[must_use]
    pub fn artifacts(&self) -> Vec<Artifact> {
        self.backend.record.artifacts.borrow().clone()
    }

    /// Sets the work tree that the calls of the envelope observed in a workspace, for
    /// [`Ledger::seen_work_tree`](crate::Ledger::seen_work_tree).
    pub fn set_work_tree(&self, workspace: &str, seen: SeenWorkTree) {
        self.backend
            .record
            .work_trees
            .borrow_mut()
            .insert(workspace.to_owned(), seen);
    }

    /// Sets the number of edits of a workspace over all envelopes, for
    /// [`Ledger::edits_over_envelopes`](crate::Ledger::edits_over_envelopes).
    pub fn set_edits_over_envelopes(&self, workspace: &str, edits: u64) {
        self.backend
            .record
            .edits_over_envelopes
            .borrow_mut()
            .insert(workspace.to_owned(), edits);
    }

    /// Sets the changes in a workspace since a number of edits, for
    /// [`Ledger::changed_since`](crate::Ledger::changed_since).
    pub fn set_change(&self, workspace: &str, edits: u64, change: WorkTreeChange) {
        self.backend
            .record
            .work_tree_changes
            .borrow_mut()
            .insert((workspace.to_owned(), edits), change);
    }

    /// Sets the operations that queries of the ledger find.
    pub fn set_operations(&self, operations: Vec<Operation>) {
        self.backend.record.operations.replace(operations);
    }

    /// Sets the operations that [`Ledger::find`](crate::Ledger::find) returns.
    pub fn set_found(&self, found: Vec<FoundOperation>) {
        self.backend.record.found.replace(found);
    }

    /// Sets the result of a comparison with the work tree of an operation, for
    /// [`Ledger::compare_work_tree`](crate::Ledger::compare_work_tree). By default nothing is known.
    pub fn set_tree(&self, op_id: &str, tree: TestedTree) {
        self.backend
            .record
            .trees
            .borrow_mut()
            .insert(op_id.to_owned(), tree);
    }

    /// Sets the connection of the following calls, for [`Cx::connection`]. `None` is a connection that does not last.
    pub fn set_connection(&self, name: Option<&str>) {
        self.backend.record.connection.replace(name.map(str::to_owned));
    }

    /// Ends a connection, for [`Cx::is_connected`].
    pub fn end_connection(&self, name: &str) {
        self.backend.record.ended.borrow_mut().push(name.to_owned());
    }

    /// Sets the keys that other calls have taken, for [`Ledger::take_once`](crate::Ledger::take_once).
    pub fn set_taken(&self, keys: Vec<String>) {
        self.backend.record.taken.replace(keys);
    }

    /// Slots that calls took, oldest first. See [`Ledger::take_slot`](crate::Ledger::take_slot).
    #[must_use]
    pub fn slots(&self) -> Vec<Slot> {
        self.backend.record.slots.borrow().clone()
    }

    /// Sets the slots that calls hold.
    pub fn set_slots(&self, slots: Vec<Slot>) {
        self.backend.record.slots.replace(slots);
    }

    /// Events that the calls so far added to their records.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.backend.record.events.borrow().clone()
    }

    /// Newest outcome of tests that a call recorded with [`Ledger::set_test_outcome`](crate::Ledger::set_test_outcome).
    #[must_use]
    pub fn test_outcome(&self) -> Option<TestOutcome> {
        self.backend.record.test_outcome.borrow().clone()
    }

    /// Envelope as a call would see it now.
    #[must_use]
    pub fn envelope(&self) -> Option<Envelope> {
        self.backend.record.current()
    }

    /// Advances the clock. In addition, every call takes one second.
    pub fn advance_ms(&self, ms: i64) {
        self.backend.now.set(self.backend.now.get() + ms);
    }

    /// Runs one tool.
    pub fn call(&self, tool: &str, arguments: &str) -> Result<Reply, ToolError> {
        let entry = self.pack.tool(tool).ok_or_else(|| {
            ToolError::new(
                "UNKNOWN_TOOL",
                format!("`{tool}` is not a tool of {}", self.pack.name),
            )
        })?;
        self.backend
            .now
            .set(self.backend.now.get() + self.backend.step.get());
        if self.is_checked {
            schema_check::check(tool, &(entry.input_schema)(), arguments)?;
        }
        let call = self.call.borrow().clone();
        let result = self.call_once(entry, &call, arguments);
        let Some(again) = result.as_ref().err().and_then(|err| self.answered(err, &call)) else {
            return result;
        };
        self.call_once(entry, &again, arguments)
    }

    /// Repeats the call's context with answers to its questions, if there is an answerer.
    fn answered(&self, refusal: &ToolError, call: &CallInfo) -> Option<CallInfo> {
        let (asking, answerer) = (refusal.asking.as_ref()?, self.answerer.get()?);
        Some(CallInfo {
            answers: asking.questions.iter().filter_map(answerer).collect(),
            remembered: asking.state.clone(),
            ..call.clone()
        })
    }

    fn call_once(&self, entry: &Entry, call: &CallInfo, arguments: &str) -> Result<Reply, ToolError> {
        let cx = Cx::new(&self.backend, call);
        self.backend
            .record
            .enter(entry.name, entry.effect, self.mutations(entry, arguments));
        self.backend.requests.identity.replace(call.identity.clone());
        self.backend.requests.enter(entry.effect);
        self.backend.run.set(entry.effect == Effect::Run);
        self.backend.workspaces.enter(entry.effect);
        self.backend.storage.allow(entry.effect);
        self.begin("call");
        let result = (entry.call)(&cx, arguments);
        let kept = result.is_ok() || cx.keeps_rows();
        self.end("call", kept || entry.effect != Effect::Write);
        self.backend.run.set(false);
        self.backend.record.leave(kept);
        self.backend.requests.leave(kept);
        let warnings = self.backend.workspaces.leave(kept);
        result.map(|mut reply| {
            stale::mark_text(&mut reply.structured, &(entry.output_schema)(), &warnings);
            reply
        })
    }

    /// Mutations that a write call counts in its envelope: one, or one for each batched call that writes.
    fn mutations(&self, entry: &Entry, arguments: &str) -> u64 {
        let arguments: Json = serde_json::from_str(arguments).unwrap_or_default();
        let members = entry.hints.members.map(|name| &arguments[name]);
        let members = members.and_then(Json::as_array).into_iter().flatten();
        let writes = members.filter(|member| {
            let tool = member["tool"].as_str().and_then(|name| self.pack.tool(name));
            tool.is_some_and(|tool| tool.effect != Effect::Read)
        });
        writes.count().max(1) as u64
    }

    /// Returns the text of a prompt.
    pub fn prompt(&self, name: &str, arguments: &str) -> Result<String, ToolError> {
        let entry = self.pack.prompt(name).ok_or_else(|| {
            ToolError::new(
                "UNKNOWN_PROMPT",
                format!("`{name}` is not a prompt of {}", self.pack.name),
            )
        })?;
        let call = self.call.borrow().clone();
        self.backend.workspaces.enter(Effect::Read);
        self.backend.storage.allow(Effect::Read);
        let said = (entry.call)(&Cx::new(&self.backend, &call), arguments);
        self.backend.workspaces.leave(false);
        said.map(|reply| reply.text.unwrap_or_default())
    }

    /// Runs lines of `tool {arguments}` and returns a line for each outcome. See [`Script`].
    ///
    /// # Panics
    /// If a line is malformed, or if a call that must succeed fails.
    #[must_use]
    pub fn script(&self, script: &str) -> String {
        Script::new(self).run(script)
    }

    /// Backend of the session, for calling store functions without a tool around them.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    fn begin(&self, name: &str) {
        self.backend
            .storage
            .begin(name)
            .unwrap_or_else(|err| panic!("{name}: {err}"));
    }

    fn end(&self, name: &str, is_kept: bool) {
        let storage = &self.backend.storage;
        let ended = if is_kept {
            storage.commit(name)
        } else {
            storage.roll_back(name)
        };
        ended.unwrap_or_else(|err| panic!("{name}: {err}"));
    }
}
