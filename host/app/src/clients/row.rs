//! Row type of the table of clients.

use super::Client;

/// Everything that differs between clients.
pub(super) struct Row {
    pub(super) client: Client,
    /// Name as people know it.
    pub(super) title: &'static str,
    /// File of a project, relative to its folder.
    pub(super) project: Option<&'static str>,
    /// File of a user.
    pub(super) user: Option<Path>,
    /// Folder that shows that a client is installed.
    pub(super) mark: Path,
    /// Programs that come with a client.
    pub(super) programs: &'static [&'static str],
    pub(super) format: Format,
    /// Key of the table that holds all servers.
    pub(super) servers: &'static str,
    pub(super) stdio: Stdio,
    pub(super) http: Http,
    pub(super) start: Start,
    /// Remaining step after a change of the user's file.
    pub(super) user_step: &'static str,
    /// Remaining step after a change of a project's file.
    pub(super) project_step: &'static str,
    pub(super) command: Own,
}

/// Place of a file of a user.
#[derive(Clone, Copy)]
pub(super) struct Path {
    pub(super) base: Base,
    pub(super) rest: &'static str,
    /// Variable with another folder, and the file's name there. If the name is empty, the variable names the file.
    pub(super) moved: Option<(&'static str, &'static str)>,
}

/// Folder that paths start at.
#[derive(Clone, Copy)]
pub(super) enum Base {
    Home,
    /// `XDG_CONFIG_HOME`, or `.config` in the home directory, on macOS as well.
    Config,
    /// Folder of desktop programs: `Library/Application Support` on macOS, otherwise as for [`Base::Config`].
    Desktop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with or without comments.
    Json,
    Toml,
    /// A table of a YAML file with other content.
    Yaml,
    /// A separate YAML file for each server.
    OwnYaml,
}

/// Fields of an entry that starts a program.
pub(super) struct Stdio {
    /// Value of `type`.
    pub(super) kind: Option<&'static str>,
    pub(super) command: &'static str,
    /// True if the program and its arguments are one list.
    pub(super) is_list: bool,
    pub(super) more: &'static [(&'static str, Extra)],
}

/// Fields of an entry that connects to a running server.
pub(super) struct Http {
    /// Value of `type`.
    pub(super) kind: Option<&'static str>,
    /// Key of the address. `None` if the client can only start programs.
    pub(super) url: Option<&'static str>,
    /// Keys that lead to the headers.
    pub(super) headers: &'static [&'static str],
    pub(super) token: Variable,
    /// Text that refers to the content of the file `FILE`.
    pub(super) file: Option<&'static str>,
    pub(super) more: &'static [(&'static str, Extra)],
}

/// Form of a token in an environment variable `NAME`.
pub(super) enum Variable {
    /// Text in the header.
    Text(&'static str),
    /// Text in the header, and a list of all variables that may be used in texts.
    Listed(&'static str, &'static str),
    /// A separate key that makes the client send the header.
    Key(&'static str),
    /// The client asks its user and stores the answer.
    Asked,
    /// Variables are not replaced.
    None,
}

/// Value of a further field.
#[derive(Clone, Copy)]
pub(super) enum Extra {
    Number(i64),
    Bool(bool),
    Text(&'static str),
    /// The list `["*"]`.
    All,
}

/// Time that a client waits for a server to answer.
pub(super) enum Start {
    Sec(u64),
    /// A field of the entry: its name, its units per second, and the default in seconds.
    Field(&'static str, u64, u64),
}

/// A client's own command that adds a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// `claude mcp add-json`
    Claude,
    /// `codex mcp add`
    Codex,
    /// `gemini mcp add` and `qwen mcp add`
    Gemini(&'static str),
    /// `copilot mcp add`
    Copilot,
    /// `code --add-mcp`
    Code(&'static str),
    None,
}

/// A path below the home directory.
pub(super) const fn home(rest: &'static str) -> Path {
    Path {
        base: Base::Home,
        rest,
        moved: None,
    }
}

/// A path below the directory of configurations.
pub(super) const fn config(rest: &'static str) -> Path {
    Path {
        base: Base::Config,
        rest,
        moved: None,
    }
}

/// A path below the directory of desktop programs' settings.
pub(super) const fn desktop(rest: &'static str) -> Path {
    Path {
        base: Base::Desktop,
        rest,
        moved: None,
    }
}

/// A path below the home directory, unless a variable names another directory.
pub(super) const fn moved(rest: &'static str, variable: &'static str, name: &'static str) -> Path {
    Path {
        base: Base::Home,
        rest,
        moved: Some((variable, name)),
    }
}

/// `command` and `args`.
pub(super) const fn stdio(kind: Option<&'static str>, more: &'static [(&'static str, Extra)]) -> Stdio {
    Stdio {
        kind,
        command: "command",
        is_list: false,
        more,
    }
}

pub(super) const fn http(
    kind: Option<&'static str>,
    url: &'static str,
    token: Variable,
    more: &'static [(&'static str, Extra)],
) -> Http {
    Http {
        kind,
        url: Some(url),
        headers: &["headers"],
        token,
        file: None,
        more,
    }
}

/// Programs only.
pub(super) const NO_HTTP: Http = Http {
    kind: None,
    url: None,
    headers: &[],
    token: Variable::None,
    file: None,
    more: &[],
};
