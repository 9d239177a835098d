//! What a tool works with during one call.

use std::cell::Cell;

use serde::de::DeserializeOwned;

use crate::{
    Answer, ArtifactError, ArtifactKind, Budget, CallInfo, Db, DbError, Host, Id, Ledger, Level, Timestamp,
    ToolError, Workspace, WorkspaceError,
};

/// One call's storage, workspaces, clock, ids, log and configuration.
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
    /// The pack's own tables.
    pub db: Db<'a>,
    host: &'a dyn Host,
    call: &'a CallInfo,
    keep_rows: Cell<bool>,
    /// Mutations that are counted for calls beside this one which did not begin yet.
    mutations_ahead: u64,
    /// A call inside another call, whose arguments no gate has compared with the tool's schema.
    is_member: bool,
}

impl<'a> Cx<'a> {
    /// A context over a host. The SDK makes it; packs receive it.
    pub fn new(host: &'a dyn Host, call: &'a CallInfo) -> Cx<'a> {
        Cx {
            db: Db::of_call(host),
            host,
            call,
            keep_rows: Cell::new(false),
            mutations_ahead: 0,
            is_member: false,
        }
    }

    /// The context of one of the calls that this call runs. The envelope counted them all before the first;
    /// this one does not see the `mutations_ahead` of those that come after it.
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

    /// Runs `body` as one short transaction: in a `Run` tool, the only way to storage. An error
    /// undoes it.
    pub fn transaction<T, E: From<DbError>>(
        &self,
        body: impl FnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.host.begin()?;
        let result = body(Db::of_transaction(&*transaction))?;
        transaction.commit()?;
        Ok(result)
    }

    /// The time by the host's clock.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.host.now_ms())
    }

    /// A new identifier of the wanted kind.
    pub fn new_id<I: Id>(&self) -> I {
        I::from_text(self.host.new_id(I::PREFIX))
    }

    /// The pack's `config` table. `CONFIG_INVALID` if it does not fit, naming the mistake.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let text = match self.call.config.as_str() {
            "" => "{}",
            text => text,
        };
        serde_json::from_str(text).map_err(|err| {
            ToolError::new("CONFIG_INVALID", format!("the pack's config does not fit: {err}"))
                .remediation("The operator corrects the [packs.NAME.config] table.")
        })
    }

    /// The MCP client's own name, as it claims.
    pub fn client(&self) -> Option<&str> {
        self.call.client.as_deref()
    }

    /// Who calls, if the transport proved it.
    pub fn identity(&self) -> Option<&str> {
        self.call.identity.as_deref()
    }

    /// The host process, as a UUID that is the same for all its calls.
    pub fn session_id(&self) -> &str {
        &self.call.session_id
    }

    /// In a `Write` tool: what this call wrote stays even if it returns an error. For a record of
    /// refusals; a call that may have changed something else must not ask for it.
    pub fn keep_rows(&self) {
        self.keep_rows.set(true);
    }

    /// Whether [`keep_rows`](Cx::keep_rows) was called.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.keep_rows.get()
    }

    /// What the user answered to the question of this key, if this call comes again after it asked.
    pub fn answer(&self, key: &str) -> Option<&Answer> {
        self.call.answers.iter().find(|answer| answer.key == key)
    }

    /// What this call wanted to know when it comes again; see [`ToolError::remember`].
    pub fn remembered(&self) -> Option<&str> {
        self.call.remembered.as_deref()
    }

    /// The operation's id in the ledger.
    pub fn op_id(&self) -> &str {
        &self.call.op_id
    }

    /// The envelope the call belongs to.
    pub fn envelope_id(&self) -> Option<&str> {
        self.call.envelope_id.as_deref()
    }

    /// The record of this call, and past ones if granted.
    pub fn ledger(&self) -> Ledger<'a> {
        Ledger::new(self.host)
    }

    /// Keeps content with this operation, as far as the operator keeps such content at all, and returns the
    /// id to read it by with `artifact_get`. Content goes after a while, so what has to stay belongs into
    /// the pack's own tables.
    ///
    /// In a `Write` tool an error takes the artifact back with the rows.
    pub fn keep_artifact(&self, kind: ArtifactKind, content: &[u8]) -> Result<Option<String>, ArtifactError> {
        self.host.keep_artifact(kind, content)
    }

    /// The limits of the envelope around this call, and named budgets.
    pub fn budget(&self) -> Budget<'a> {
        Budget::new(self.host, self.mutations_ahead)
    }

    /// Writes a line to the operator's log.
    pub fn log(&self, level: Level, message: &str) {
        self.host.log(level, message);
    }

    /// Tells the client how far a `Run` tool is, if it asked to be told. `done` never falls; what comes
    /// too often is dropped.
    pub fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        self.host.progress(done, total, message);
    }

    /// The workspaces the pack may use, sorted. Empty without a grant.
    pub fn workspaces(&self) -> Vec<String> {
        self.host.workspace_names()
    }

    /// One workspace, for its files and for programs that run in it.
    pub fn workspace(&self, name: &str) -> Result<Workspace<'a>, WorkspaceError> {
        Workspace::open(self.host, name)
    }
}
