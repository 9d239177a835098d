//! Context of a tool during one call.

use std::cell::Cell;

use serde::de::DeserializeOwned;

#[cfg(target_family = "wasm")]
use crate::Host;
use crate::host::HostRef;
use crate::{
    Answer, Approvals, ArtifactError, ArtifactKind, Budget, CallInfo, Db, DbError, Id, Ledger, Level,
    TERMINAL, Timestamp, ToolError, Workspace, WorkspaceError,
};

/// Storage, workspaces, clock, ids, log and configuration of one call.
///
/// ```
/// use tollgate_sdk::{Cx, ToolError, params};
///
/// fn remember(cx: &Cx<'_>, text: &str) -> Result<u64, ToolError> {
///     Ok(cx.db.execute(
///         "INSERT INTO notes_notes (text, at) VALUES (?1, ?2)",
///         params![text, cx.now()],
///     )?)
/// }
/// # use tollgate_sdk::{CallInfo, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack { name: "notes", ..Pack::EMPTY }), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
/// # session.sql("CREATE TABLE notes_notes (text TEXT, at TEXT)");
/// assert_eq!(remember(&cx, "the build needs protoc")?, 1);
/// # Ok::<(), ToolError>(())
/// ```
pub struct Cx<'a> {
    /// Tables of the pack.
    pub db: Db<'a>,
    host: HostRef<'a>,
    call: &'a CallInfo,
    keep_rows: Cell<bool>,
    /// Counted mutations of batched calls that have not started yet.
    mutations_ahead: u64,
    /// True for a call inside another call, because the gate has not checked its arguments against the tool's schema.
    is_member: bool,
}

impl<'a> Cx<'a> {
    /// Creates a context over a host. The SDK does this; packs receive a context. In a component, the host is always
    /// that of its imports; any other host is for native tests.
    pub fn new(host: HostRef<'a>, call: &'a CallInfo) -> Cx<'a> {
        Cx {
            db: Db::of_call(host),
            host,
            call,
            keep_rows: Cell::new(false),
            mutations_ahead: 0,
            is_member: false,
        }
    }

    /// Context of one call in a batch. The envelope counted all calls before the first one; this call does not
    /// see the `mutations_ahead` of later ones.
    #[must_use]
    pub fn member(&self, mutations_ahead: u64) -> Cx<'a> {
        Cx {
            mutations_ahead,
            is_member: true,
            ..Cx::new(self.host, self.call)
        }
    }

    /// Returns whether the gate has checked this call's arguments against the schema. Native tests have no gate.
    pub(crate) fn is_checked(&self) -> bool {
        cfg!(target_family = "wasm") && !self.is_member
    }

    /// Runs `body` in a short transaction: in a `Run` tool, the only access to storage. An error rolls the
    /// transaction back.
    pub fn transaction<T, E: From<DbError>>(
        &self,
        body: impl FnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.host.begin()?;
        let result = body(Db::of_transaction(&*transaction))?;
        transaction.commit()?;
        Ok(result)
    }

    /// Current time of the host's clock.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.host.now_ms())
    }

    /// Creates a new identifier of a type.
    pub fn new_id<I: Id>(&self) -> I {
        I::from_text(self.host.new_id(I::PREFIX))
    }

    /// Parses the pack's configuration into a type. Fails with `CONFIG_INVALID` and describes the mistake.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let text = match self.call.config.as_str() {
            "" => "{}",
            text => text,
        };
        serde_json::from_str(text).map_err(|err| {
            ToolError::new("CONFIG_INVALID", format!("the pack's config is invalid: {err}")).remediation(
                "Ask the operator to correct the [packs.NAME.config] table in the configuration.",
            )
        })
    }

    /// Name of the MCP client, as the client claims. Names that begin with `tollgate` are the host's own.
    pub fn client(&self) -> Option<&str> {
        self.call.client.as_deref()
    }

    /// Returns whether a person makes the call with `tollgate call` in a terminal. The host proves this. Questions
    /// ([`ToolError::ask`](crate::ToolError::ask)) are answered in the terminal as well.
    pub fn is_at_terminal(&self) -> bool {
        self.client() == Some(TERMINAL)
    }

    /// Identity of the caller, if the transport proved one.
    pub fn identity(&self) -> Option<&str> {
        self.call.identity.as_deref()
    }

    /// UUID of the host process, the same for all its calls.
    pub fn session_id(&self) -> &str {
        &self.call.session_id
    }

    /// Name of this call's connection, for [`is_connected`](Cx::is_connected) in later calls. `None` if the connection
    /// cannot carry later calls, for example a single request over HTTP, and in tools other than `Write`.
    pub fn connection(&self) -> Option<String> {
        self.host.connection()
    }

    /// Checks whether a connection is open, which means that neither the connection nor its host process has ended.
    pub fn is_connected(&self, name: &str) -> bool {
        self.host.is_connected(name)
    }

    /// In a `Write` tool, keeps the rows of this call even if the call returns an error. Use this to record refusals.
    /// Do not use this in a call that may have changed anything else.
    pub fn keep_rows(&self) {
        self.keep_rows.set(true);
    }

    /// Checks whether [`keep_rows`](Cx::keep_rows) was called.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.keep_rows.get()
    }

    /// Answer of the user to the question with this key, if this call was repeated after asking.
    pub fn answer(&self, key: &str) -> Option<&Answer> {
        self.call.answers.iter().find(|answer| answer.key == key)
    }

    /// State stored with [`ToolError::remember`], if this call was repeated after asking.
    pub fn remembered(&self) -> Option<&str> {
        self.call.remembered.as_deref()
    }

    /// Id of the operation in the ledger.
    pub fn op_id(&self) -> &str {
        &self.call.op_id
    }

    /// Envelope that the call belongs to.
    pub fn envelope_id(&self) -> Option<&str> {
        self.call.envelope_id.as_deref()
    }

    /// Record of this call, and of past operations if granted.
    pub fn ledger(&self) -> Ledger<'a> {
        Ledger::new(self.host)
    }

    /// Keeps content with this operation, if the operator keeps content of this kind. Returns the id for
    /// `artifact_get`. Artifacts expire; store lasting data in the pack's own tables.
    ///
    /// In a `Write` tool an error discards the artifact together with the rows.
    pub fn keep_artifact(&self, kind: ArtifactKind, content: &[u8]) -> Result<Option<String>, ArtifactError> {
        self.host.keep_artifact(kind, content)
    }

    /// Requests for decisions that the component waits for. In a `Run` tool requests commit with the open transaction,
    /// or at once if there is none.
    pub fn approvals(&self) -> Approvals<'a> {
        Approvals::new(self.host)
    }

    /// Limits of the envelope around this call, and named budgets.
    pub fn budget(&self) -> Budget<'a> {
        Budget::new(self.host, self.mutations_ahead)
    }

    /// Writes a line to the operator's log.
    pub fn log(&self, level: Level, message: &str) {
        self.host.log(level, message);
    }

    /// Reports the progress of a `Run` tool to the client, if the client asked for progress. `done` never
    /// decreases; reports that are too frequent are dropped.
    pub fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        self.host.progress(done, total, message);
    }

    /// Names of the workspaces that the pack may use, sorted. Empty without a grant.
    pub fn workspaces(&self) -> Vec<String> {
        self.host.workspace_names()
    }

    /// Opens a workspace, for its files and for programs that run in it.
    pub fn workspace(&self, name: &str) -> Result<Workspace<'a>, WorkspaceError> {
        Workspace::open(self.host, name)
    }
}
