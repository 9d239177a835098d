//! What a pack declares about itself.

use crate::{Entry, GitAccess, PromptEntry};

/// A tool pack: its name, what it wants, its tables and its tools.
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
    /// `^[a-z][a-z0-9-]{0,31}$`. Its tables start with this name, `-` becoming `_`.
    pub name: &'static str,
    /// The pack's own version.
    pub version: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// What an agent should know before it calls the tools.
    pub instructions: &'static str,
    /// Capabilities the operator must grant.
    pub wants: &'static [Want],
    /// Steps of the schema, in order. Append only.
    pub migrations: &'static [Migration],
    /// The tool table, made with [`tools!`](crate::tools).
    pub tools: &'static [Entry],
    /// The prompt table, made with [`prompts!`](crate::prompts).
    pub prompts: &'static [PromptEntry],
    /// Makes the JSON Schema of the pack's `config` table, if it has one.
    pub config_schema: Option<fn() -> serde_json::Value>,
    /// The `Run` tool that writes the pack's files in a workspace anew, given `{"workspace": name}`. The
    /// host calls it where another host ended between a commit and the files that follow it.
    pub render_tool: Option<&'static str>,
}

impl Pack {
    /// A pack without anything, to fill in with `..Pack::EMPTY`.
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

    /// What every table of this pack starts with.
    #[must_use]
    pub fn table_prefix(&self) -> String {
        format!("{}_", self.name.replace('-', "_"))
    }
}

/// A capability beyond storage of the pack's own, clock, ids and log.
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
    /// Reads the named workspaces, `*` being all of them.
    WorkspaceRead(&'static str),
    /// Writes below a prefix of its workspaces, such as `.gsd/`.
    WorkspaceWrite(&'static str),
    /// Runs this program, with any arguments.
    Process(&'static str),
    /// Runs the test commands that the operator registered, exactly as registered.
    Tests,
    /// Runs git, within what each workspace allows.
    Git(GitAccess),
    /// Reads past operations of every pack.
    LedgerQuery,
    /// Reserves from the named budget.
    Budget(&'static str),
    /// Keeps artifacts with its operations.
    Artifacts,
    /// Asks the client for more than a form that its user fills in; see [`Question`](crate::Question).
    Client(ClientPart),
}

/// What of a client a pack may want to ask.
///
/// ```
/// # use tollgate_sdk::{ClientPart, Pack, Want};
/// const PACK: Pack = Pack { name: "notes", wants: &[Want::Client(ClientPart::Model)], ..Pack::EMPTY };
/// # assert_eq!(PACK.wants.len(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientPart {
    /// Its model, at its user's expense.
    Model,
    /// The names of its folders.
    Roots,
}

/// One step of a pack's schema.
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
    /// `NNNN_name`, the file's name without its ending.
    pub name: &'static str,
    /// The SQL, in the subset that SQLite and PostgreSQL share.
    pub sql: &'static str,
}

/// Makes a [`Migration`] from a file, for instance
/// `migration!("../../../migrations/work", "0001_init")`.
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

/// Exports a [`Pack`] from a component. On a native target, where packs are tested, it does nothing.
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
    };
}
