//! MCP clients: the locations of their server configurations, and the format of an entry for Tollgate.
//!
//! Everything except [`look`] works on text. The command line reads and writes the files. A client is a row of the
//! table in `table.rs`. `shape.rs` writes its entries, and `edit.rs` inserts them into its files.

mod edit;
mod json;
pub mod look;
mod places;
mod row;
mod shape;
mod table;
#[cfg(test)]
mod tests;
mod toml;
mod yaml;

use std::path::PathBuf;

use serde_json::Value;

pub use edit::EditError;
pub use places::Places;
pub(crate) use places::is_program;

use row::{Format, Row, Variable};

/// A client that Tollgate can be added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// Visual Studio Code Insiders.
    VscodeInsiders,
    /// VSCodium.
    Vscodium,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Claude Desktop.
    ClaudeDesktop,
    /// opencode.
    Opencode,
    /// GitHub Copilot CLI.
    Copilot,
    /// Cline CLI.
    Cline,
    /// Cline in Visual Studio Code.
    ClineVscode,
    /// Windsurf.
    Windsurf,
    /// Zed.
    Zed,
    /// Kiro.
    Kiro,
    /// Roo Code.
    Roo,
    /// Continue.
    Continue,
    /// Goose.
    Goose,
    /// JetBrains Junie.
    Junie,
    /// Qwen Code.
    Qwen,
    /// Amp.
    Amp,
    /// LM Studio.
    LmStudio,
}

/// Scope of a client's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The project in the current directory.
    Project,
    /// All of the user's projects.
    User,
}

/// Transport between the client and Tollgate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// The client starts the program.
    Stdio {
        /// Program.
        command: String,
        /// Arguments of the program.
        args: Vec<String>,
    },
    /// The client connects to a running server.
    Http {
        /// Address.
        url: String,
        /// Token that the client sends, if any.
        token: Option<Token>,
    },
}

/// The source of a client's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// An environment variable.
    Variable(String),
    /// A file with only the token.
    File(String),
    /// The user, whom the client asks.
    Asked,
    /// The entry itself.
    Literal(String),
}

/// Entry for Tollgate in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Transport of the entry.
    pub server: Server,
    /// Variables that the entry sets for the program.
    pub env: Vec<(String, String)>,
    /// True if the entry is disabled.
    pub is_disabled: bool,
    /// Seconds that the client waits for an answer after starting the program.
    pub start_sec: u64,
}

/// Name of the entry.
const ENTRY_NAME: &str = "tollgate";
/// Name of the input that VS Code asks for.
const TOKEN_INPUT: &str = "tollgate-token";

impl Client {
    fn row(self) -> &'static Row {
        // A test keeps the two in the same order.
        let row = &table::ROWS[self as usize];
        debug_assert_eq!(row.client, self);
        row
    }

    /// Name of the client, as users know it.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// Configuration file of the client. `None` if it has none for that scope. If it reads several, an existing one.
    #[must_use]
    pub fn file(self, scope: Scope, places: &Places) -> Option<PathBuf> {
        let row = self.row();
        let file = match scope {
            Scope::Project => places.project.join(row.project?),
            Scope::User => places.of(&row.user?),
        };
        let commented = file.with_extension("jsonc");
        let has_two = self == Client::Opencode;
        Some(if has_two && !file.exists() && commented.exists() {
            commented
        } else {
            file
        })
    }

    /// Returns whether the client seems to be installed: a program on the PATH, its folder, or its file.
    #[must_use]
    pub fn is_installed(self, places: &Places) -> bool {
        let row = self.row();
        let has_file = row.user.is_some_and(|user| places.of(&user).is_file());
        has_file
            || places.of(&row.mark).is_dir()
            || row.programs.iter().any(|name| places.program(name).is_some())
    }

    /// Returns whether the file contains only this server, and is removed with it.
    #[must_use]
    pub fn has_own_file(self) -> bool {
        self.row().format == Format::OwnYaml
    }

    /// Returns whether the client can read a token from an environment variable.
    #[must_use]
    pub fn reads_variables(self) -> bool {
        !matches!(self.row().http.token, Variable::None)
    }

    /// Complete file with only the entry.
    pub fn snippet(self, server: &Server) -> Result<String, EditError> {
        self.added("", server, false)
    }

    /// Text of a file with the entry. Everything else is unchanged. An entry of that name with other content is
    /// replaced only if `force` is true.
    pub fn added(self, text: &str, server: &Server, force: bool) -> Result<String, EditError> {
        edit::add(self.row(), text, &shape::write(self.row(), server)?, force)
    }

    /// Text of a file without the entry. `None` if there is no entry. Empty if the file had nothing else.
    pub fn removed(self, text: &str) -> Result<Option<String>, EditError> {
        edit::remove(self.row(), text)
    }

    /// Entry for Tollgate in the text of a file. The error says why the text cannot be read.
    pub fn found(self, text: &str) -> Result<Option<Entry>, String> {
        let row = self.row();
        let Some(entry) = edit::found(row, text)? else {
            return Ok(None);
        };
        let Some(server) = shape::read(row, &entry) else {
            return Err(format!("`{ENTRY_NAME}` has neither a program nor an address"));
        };
        let env = ["env", "envs", "environment"]
            .into_iter()
            .filter_map(|key| entry[key].as_object())
            .flatten();
        let env = env
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect();
        let is_disabled = entry["disabled"] == Value::Bool(true) || entry["enabled"] == Value::Bool(false);
        Ok(Some(Entry {
            server,
            env,
            is_disabled,
            start_sec: shape::start_sec(row, &entry),
        }))
    }

    /// Remaining step for the user once the entry exists, if there is one.
    #[must_use]
    pub fn next_step(self, scope: Scope) -> Option<&'static str> {
        let row = self.row();
        let step = match scope {
            Scope::Project => row.project_step,
            Scope::User => row.user_step,
        };
        (!step.is_empty()).then_some(step)
    }

    /// Client's own command that adds the server, if it has one that can.
    pub fn command(self, server: &Server, scope: Scope) -> Result<Option<Vec<String>>, EditError> {
        shape::command(self.row(), server, scope)
    }
}
