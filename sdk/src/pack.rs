//! Declaration of a pack.

use crate::{Entry, GitAccess, PromptEntry};

/// A tool pack: name, requested capabilities, tables and tools.
///
/// ```
/// use tollgate_sdk::{Migration, Pack, Want};
///
/// const PACK: Pack = Pack {
///     name: "release-notes",
///     version: "0.1.0",
///     summary: "Notes of what was released.",
///     wants: &[Want::WorkspaceWrite("notes/")],
///     migrations: &[Migration { name: "0001_init", sql: "CREATE TABLE release_notes_notes (text TEXT NOT NULL);" }],
///     ..Pack::EMPTY
/// };
/// assert_eq!(PACK.table_prefix(), "release_notes_");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Pack {
    /// Name, `^[a-z][a-z0-9-]{0,31}$`. Tables start with this name, `-` becoming `_`.
    pub name: &'static str,
    /// Version of the pack.
    pub version: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Instructions for agents that use the tools.
    pub instructions: &'static str,
    /// Capabilities that the operator must grant.
    pub wants: &'static [Want],
    /// Steps of the schema, in order. Append only.
    pub migrations: &'static [Migration],
    /// Tool table, made with [`tools!`](crate::tools).
    pub tools: &'static [Entry],
    /// Prompt table, made with [`prompts!`](crate::prompts).
    pub prompts: &'static [PromptEntry],
    /// Generates the JSON Schema of the pack's `config` table, if it has one.
    pub config_schema: Option<fn() -> serde_json::Value>,
    /// Name of the `Run` tool that renders the pack's files in a workspace, given `{"workspace": name}`. The host calls
    /// the tool if another host crashed after a commit and before the file writes that follow it.
    pub render_tool: Option<&'static str>,
}

impl Pack {
    /// An empty pack, to fill in with `..Pack::EMPTY`.
    pub const EMPTY: Pack = Pack {
        name: "",
        version: "0.0.0",
        summary: "",
        instructions: "",
        wants: &[],
        migrations: &[],
        tools: &[],
        prompts: &[],
        config_schema: None,
        render_tool: None,
    };

    /// Finds a tool by its name or one of its aliases.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&'static Entry> {
        self.tools
            .iter()
            .find(|tool| tool.name == name || tool.aliases.contains(&name))
    }

    /// Finds a prompt by its name.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&'static PromptEntry> {
        self.prompts.iter().find(|prompt| prompt.name == name)
    }

    /// Prefix of all tables of this pack.
    #[must_use]
    pub fn table_prefix(&self) -> String {
        format!("{}_", self.name.replace('-', "_"))
    }
}

/// A capability in addition to the pack's own storage, clock, ids and log.
///
/// ```
/// # use tollgate_sdk::{GitAccess, Pack, Want};
/// const PACK: Pack = Pack {
///     name: "release-notes",
///     wants: &[Want::WorkspaceRead("*"), Want::WorkspaceWrite("notes/"), Want::Git(GitAccess::Read)],
///     ..Pack::EMPTY
/// };
/// # assert_eq!(PACK.wants.len(), 3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Reads the named workspace, or all workspaces if the name is `*`.
    WorkspaceRead(&'static str),
    /// Writes below a prefix of its workspaces, for example `.gsd/`.
    WorkspaceWrite(&'static str),
    /// Runs this program with any arguments.
    Process(&'static str),
    /// Runs the test commands that the operator registered, exactly as registered.
    Tests,
    /// Runs git, within the limits set for each workspace.
    Git(GitAccess),
    /// Reads past operations of every pack.
    LedgerQuery,
    /// Reserves units of the named budget.
    Budget(&'static str),
    /// Keeps artifacts with the pack's operations.
    Artifacts,
    /// Asks the client for more than a form that its user fills in. See [`Question`](crate::Question).
    Client(ClientPart),
}

/// Part of a client that a pack may request.
///
/// ```
/// # use tollgate_sdk::{ClientPart, Pack, Want};
/// const PACK: Pack = Pack { name: "notes", wants: &[Want::Client(ClientPart::Model)], ..Pack::EMPTY };
/// # assert_eq!(PACK.wants.len(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientPart {
    /// Model of the client, at its user's expense.
    Model,
    /// Names of the client's folders.
    Roots,
}

/// A step of a pack's schema.
///
/// ```
/// # use tollgate_sdk::Migration;
/// const SECOND: Migration = Migration {
///     name: "0002_author",
///     sql: "ALTER TABLE notes_notes ADD COLUMN author TEXT;",
/// };
/// # assert_eq!(SECOND.name, "0002_author");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// File name without extension, `NNNN_name`.
    pub name: &'static str,
    /// SQL in the subset that SQLite and PostgreSQL share.
    pub sql: &'static str,
}

/// Creates a [`Migration`] from a file, for example `migration!("../../../migrations/work", "0001_init")`.
///
/// ```
/// # use tollgate_sdk::{Migration, migration};
/// // The file is named from where this source file is.
/// const FIRST: Migration = migration!("../../migrations/convergence", "0001_init");
/// assert!(FIRST.sql.contains("CREATE TABLE convergence_"));
/// ```
#[macro_export]
macro_rules! migration {
    ($folder:literal, $name:literal) => {
        $crate::Migration {
            name: $name,
            sql: include_str!(concat!($folder, "/", $name, ".sql")),
        }
    };
}

/// Exports a [`Pack`] from a component. Does nothing on a native target, where packs are tested.
///
/// ```
/// # use tollgate_sdk::Pack;
/// pub const PACK: Pack = Pack { name: "notes", ..Pack::EMPTY };
/// tollgate_sdk::export_pack!(PACK);
/// ```
#[macro_export]
macro_rules! export_pack {
    ($pack:path) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;
            impl $crate::guest::Exported for Component {
                const PACK: &'static $crate::Pack = &$pack;
            }
            $crate::guest::export_component!(Component);
        };
        #[cfg(all(test, not(target_family = "wasm")))]
        const _: () = $crate::native::require_storage(&$pack);
    };
}
