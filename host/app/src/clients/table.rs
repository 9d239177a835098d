//! Table of clients: files, keys and shapes of their entries. One row for each client.
//!
//! Each row names the page that documents the format, or the program that was tried.

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
    /// Folder that a client makes when it is installed.
    pub(super) mark: Path,
    /// Programs that a client installs.
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
    /// Variable that names another folder, and the file's name there (empty: the variable names the file).
    pub(super) moved: Option<(&'static str, &'static str)>,
}

/// Folder that paths start at.
#[derive(Clone, Copy)]
pub(super) enum Base {
    Home,
    /// `XDG_CONFIG_HOME`, or `.config` at home, on macOS as well.
    Config,
    /// Folder of desktop programs: `Library/Application Support` on macOS, else as [`Base::Config`].
    Desktop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with or without comments.
    Json,
    Toml,
    /// A table of a YAML file that others write in.
    Yaml,
    /// A YAML file of its own for each server.
    OwnYaml,
}

/// Fields of an entry that starts a program.
pub(super) struct Stdio {
    /// Value of `type`.
    pub(super) kind: Option<&'static str>,
    pub(super) command: &'static str,
    /// The program and its arguments are one list.
    pub(super) is_list: bool,
    pub(super) more: &'static [(&'static str, Extra)],
}

/// Fields of an entry that connects to a running server.
pub(super) struct Http {
    /// Value of `type`.
    pub(super) kind: Option<&'static str>,
    /// Key of the address; `None` if the client only starts programs.
    pub(super) url: Option<&'static str>,
    /// Keys that lead to the headers.
    pub(super) headers: &'static [&'static str],
    pub(super) token: Variable,
    /// Text that stands for the content of the file `FILE`.
    pub(super) file: Option<&'static str>,
    pub(super) more: &'static [(&'static str, Extra)],
}

/// Form of a token that an environment variable `NAME` holds.
pub(super) enum Variable {
    /// Text in the header.
    Text(&'static str),
    /// Text in the header, and a list of all variables that texts may use.
    Listed(&'static str, &'static str),
    /// A key of its own, which makes the client send the header.
    Key(&'static str),
    /// The client asks its user, and keeps the answer.
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

/// Time that a client gives a server to answer.
pub(super) enum Start {
    Sec(u64),
    /// A field of the entry with so many units per second, and the seconds without it.
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

/// Seconds to wait for the first start, which may compile packs.
const STARTUP_SEC: i64 = 120;
/// Seconds to wait for a call, which may run tests.
const CALL_SEC: i64 = 660;
const CALL_MS: i64 = CALL_SEC * 1000;

const fn home(rest: &'static str) -> Path {
    Path {
        base: Base::Home,
        rest,
        moved: None,
    }
}

const fn config(rest: &'static str) -> Path {
    Path {
        base: Base::Config,
        rest,
        moved: None,
    }
}

const fn desktop(rest: &'static str) -> Path {
    Path {
        base: Base::Desktop,
        rest,
        moved: None,
    }
}

const fn moved(rest: &'static str, variable: &'static str, name: &'static str) -> Path {
    Path {
        base: Base::Home,
        rest,
        moved: Some((variable, name)),
    }
}

/// `command` and `args`.
const fn stdio(kind: Option<&'static str>, more: &'static [(&'static str, Extra)]) -> Stdio {
    Stdio {
        kind,
        command: "command",
        is_list: false,
        more,
    }
}

const fn http(
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
const NO_HTTP: Http = Http {
    kind: None,
    url: None,
    headers: &[],
    token: Variable::None,
    file: None,
    more: &[],
};

const RESTART: &str = "restart it, or reload its MCP servers";
const VSCODE_STEP: &str = "run \"MCP: List Servers\" in the command palette, start tollgate and trust it";

/// Row of VS Code or one of its builds. code.visualstudio.com, "MCP configuration reference": `servers`, `type`,
/// and `inputs` for secrets, which VS Code keeps in its secret storage.
const fn vscode(
    client: Client,
    title: &'static str,
    user: &'static str,
    mark: &'static str,
    programs: &'static [&'static str],
    program: &'static str,
) -> Row {
    Row {
        client,
        title,
        project: Some(".vscode/mcp.json"),
        user: Some(desktop(user)),
        mark: desktop(mark),
        programs,
        format: Format::Json,
        servers: "servers",
        stdio: stdio(Some("stdio"), &[]),
        http: http(Some("http"), "url", Variable::Asked, &[]),
        start: Start::Sec(120),
        user_step: VSCODE_STEP,
        project_step: VSCODE_STEP,
        command: Own::Code(program),
    }
}

/// All clients, in the order of [`Client`].
pub(super) static ROWS: &[Row] = &[
    // code.claude.com/docs, "Connect Claude Code to tools via MCP": scopes, `${NAME}`, `MCP_TIMEOUT` (30 s without it).
    Row {
        client: Client::ClaudeCode,
        title: "Claude Code",
        project: Some(".mcp.json"),
        user: Some(moved(".claude.json", "CLAUDE_CONFIG_DIR", ".claude.json")),
        mark: home(".claude"),
        programs: &["claude"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(Some("stdio"), &[]),
        http: http(Some("http"), "url", Variable::Text("${NAME}"), &[]),
        start: Start::Sec(30),
        user_step: "",
        project_step: "run `claude` in this folder and approve tollgate",
        command: Own::Claude,
    },
    // cursor.com/docs, "Model Context Protocol": `${env:NAME}` in headers.
    Row {
        client: Client::Cursor,
        title: "Cursor",
        project: Some(".cursor/mcp.json"),
        user: Some(home(".cursor/mcp.json")),
        mark: home(".cursor"),
        programs: &["cursor", "cursor-agent"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(None, &[]),
        http: http(None, "url", Variable::Text("${env:NAME}"), &[]),
        start: Start::Sec(60),
        user_step: "enable tollgate in Cursor Settings, Tools & MCP",
        project_step: "open this folder in Cursor and enable tollgate in Cursor Settings, Tools & MCP",
        command: Own::None,
    },
    vscode(
        Client::Vscode,
        "VS Code",
        "Code/User/mcp.json",
        "Code",
        &["code"],
        "code",
    ),
    vscode(
        Client::VscodeInsiders,
        "VS Code Insiders",
        "Code - Insiders/User/mcp.json",
        "Code - Insiders",
        &["code-insiders"],
        "code-insiders",
    ),
    vscode(
        Client::Vscodium,
        "VSCodium",
        "VSCodium/User/mcp.json",
        "VSCodium",
        &["codium"],
        "codium",
    ),
    // developers.openai.com/codex/mcp: time-outs in seconds (10 to start without one), `bearer_token_env_var`.
    Row {
        client: Client::Codex,
        title: "Codex",
        project: Some(".codex/config.toml"),
        user: Some(moved(".codex/config.toml", "CODEX_HOME", "config.toml")),
        mark: home(".codex"),
        programs: &["codex"],
        format: Format::Toml,
        servers: "mcp_servers",
        stdio: stdio(
            None,
            &[
                ("startup_timeout_sec", Extra::Number(STARTUP_SEC)),
                ("tool_timeout_sec", Extra::Number(CALL_SEC)),
            ],
        ),
        http: http(
            None,
            "url",
            Variable::Key("bearer_token_env_var"),
            &[("tool_timeout_sec", Extra::Number(CALL_SEC))],
        ),
        start: Start::Field("startup_timeout_sec", 1, 10),
        user_step: "",
        project_step: "open this folder in Codex once and trust it",
        command: Own::Codex,
    },
    // geminicli.com/docs, "MCP servers with the Gemini CLI": `timeout` in ms, `httpUrl`; settings replace `${NAME}`.
    Row {
        client: Client::Gemini,
        title: "Gemini CLI",
        project: Some(".gemini/settings.json"),
        user: Some(home(".gemini/settings.json")),
        mark: home(".gemini"),
        programs: &["gemini"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(None, &[("timeout", Extra::Number(CALL_MS))]),
        http: http(
            None,
            "httpUrl",
            Variable::Text("${NAME}"),
            &[("timeout", Extra::Number(CALL_MS))],
        ),
        start: Start::Field("timeout", 1000, 600),
        user_step: "servers start in trusted folders only: run `gemini` in a folder and trust it",
        project_step: "run `gemini` in this folder and trust it",
        command: Own::Gemini("gemini"),
    },
    // modelcontextprotocol.io, "Connect to local MCP servers"; remote servers are connectors of an account.
    Row {
        client: Client::ClaudeDesktop,
        title: "Claude Desktop",
        project: None,
        user: Some(desktop("Claude/claude_desktop_config.json")),
        mark: desktop("Claude"),
        programs: &[],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(None, &[]),
        http: NO_HTTP,
        start: Start::Sec(60),
        user_step: "quit Claude Desktop and start it again",
        project_step: "",
        command: Own::None,
    },
    // opencode.ai/docs/mcp-servers and /docs/config: `{env:NAME}`, `{file:PATH}`, `timeout` in ms, which is for
    // calls: 1.18.33 waited 30 s for the first answer whatever that said.
    Row {
        client: Client::Opencode,
        title: "opencode",
        project: Some("opencode.json"),
        user: Some(config("opencode/opencode.json")),
        mark: config("opencode"),
        programs: &["opencode"],
        format: Format::Json,
        servers: "mcp",
        stdio: Stdio {
            kind: Some("local"),
            command: "command",
            is_list: true,
            more: &[
                ("enabled", Extra::Bool(true)),
                ("timeout", Extra::Number(CALL_MS)),
            ],
        },
        http: Http {
            kind: Some("remote"),
            url: Some("url"),
            headers: &["headers"],
            token: Variable::Text("{env:NAME}"),
            file: Some("{file:FILE}"),
            more: &[
                ("enabled", Extra::Bool(true)),
                ("timeout", Extra::Number(CALL_MS)),
            ],
        },
        start: Start::Sec(30),
        user_step: "",
        project_step: "",
        command: Own::None,
    },
    // `copilot mcp --help` of 1.0.102: files, `type`, `tools`; docs.github.com, "Adding MCP servers for Copilot CLI".
    Row {
        client: Client::Copilot,
        title: "Copilot CLI",
        project: Some(".github/mcp.json"),
        user: Some(moved(
            ".copilot/mcp-config.json",
            "COPILOT_HOME",
            "mcp-config.json",
        )),
        mark: home(".copilot"),
        programs: &["copilot"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(Some("local"), &[("tools", Extra::All)]),
        http: http(
            Some("http"),
            "url",
            Variable::Text("${NAME}"),
            &[("tools", Extra::All)],
        ),
        start: Start::Sec(60),
        user_step: "",
        project_step: "run `copilot` in this folder and trust it",
        command: Own::Copilot,
    },
    // docs.cline.bot, "Configuring MCP servers": `type`, `timeout` in seconds; the CLI's file.
    Row {
        client: Client::Cline,
        title: "Cline CLI",
        project: None,
        user: Some(moved(
            ".cline/data/settings/cline_mcp_settings.json",
            "CLINE_MCP_SETTINGS_PATH",
            "",
        )),
        mark: home(".cline"),
        programs: &["cline"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(Some("stdio"), &[("timeout", Extra::Number(CALL_SEC))]),
        http: http(
            Some("streamableHttp"),
            "url",
            Variable::None,
            &[("timeout", Extra::Number(CALL_SEC))],
        ),
        start: Start::Sec(30),
        user_step: "",
        project_step: "",
        command: Own::None,
    },
    // The same page; the file of the extension in VS Code.
    Row {
        client: Client::ClineVscode,
        title: "Cline in VS Code",
        project: None,
        user: Some(desktop(
            "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        )),
        mark: desktop("Code/User/globalStorage/saoudrizwan.claude-dev"),
        programs: &[],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(Some("stdio"), &[("timeout", Extra::Number(CALL_SEC))]),
        http: http(
            Some("streamableHttp"),
            "url",
            Variable::None,
            &[("timeout", Extra::Number(CALL_SEC))],
        ),
        start: Start::Sec(60),
        user_step: RESTART,
        project_step: "",
        command: Own::None,
    },
    // docs.windsurf.com, "Cascade MCP integration": `serverUrl`, `${env:NAME}`.
    Row {
        client: Client::Windsurf,
        title: "Windsurf",
        project: None,
        user: Some(home(".codeium/windsurf/mcp_config.json")),
        mark: home(".codeium/windsurf"),
        programs: &["windsurf"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(None, &[]),
        http: http(None, "serverUrl", Variable::Text("${env:NAME}"), &[]),
        start: Start::Sec(60),
        user_step: "press Refresh in Cascade's list of MCP servers",
        project_step: "",
        command: Own::None,
    },
    // zed.dev/docs/ai/mcp: `context_servers`; settings have comments, and no variables.
    Row {
        client: Client::Zed,
        title: "Zed",
        project: Some(".zed/settings.json"),
        user: Some(config("zed/settings.json")),
        mark: config("zed"),
        programs: &["zed", "zeditor"],
        format: Format::Json,
        servers: "context_servers",
        stdio: stdio(None, &[]),
        http: http(None, "url", Variable::None, &[]),
        start: Start::Sec(60),
        user_step: "",
        project_step: "open this folder in Zed and trust it",
        command: Own::None,
    },
    // kiro.dev/docs/mcp/configuration: `${NAME}`, after the user approved the variable.
    Row {
        client: Client::Kiro,
        title: "Kiro",
        project: Some(".kiro/settings/mcp.json"),
        user: Some(home(".kiro/settings/mcp.json")),
        mark: home(".kiro"),
        programs: &["kiro", "kiro-cli"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(None, &[]),
        http: http(None, "url", Variable::Text("${NAME}"), &[]),
        start: Start::Sec(60),
        user_step: "",
        project_step: "open this folder in Kiro and trust it",
        command: Own::None,
    },
    // docs.roocode.com, "Using MCP in Roo Code": `type`, `timeout` in seconds up to 3,600, `${env:NAME}`.
    Row {
        client: Client::Roo,
        title: "Roo Code",
        project: Some(".roo/mcp.json"),
        user: Some(desktop(
            "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        )),
        mark: desktop("Code/User/globalStorage/rooveterinaryinc.roo-cline"),
        programs: &[],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(Some("stdio"), &[("timeout", Extra::Number(CALL_SEC))]),
        http: http(
            Some("streamable-http"),
            "url",
            Variable::Text("${env:NAME}"),
            &[("timeout", Extra::Number(CALL_SEC))],
        ),
        start: Start::Sec(60),
        user_step: RESTART,
        project_step: RESTART,
        command: Own::None,
    },
    // docs.continue.dev, "MCP": a block file for each server with `name`, `version` and `schema`.
    Row {
        client: Client::Continue,
        title: "Continue",
        project: Some(".continue/mcpServers/tollgate.yaml"),
        user: Some(home(".continue/mcpServers/tollgate.yaml")),
        mark: home(".continue"),
        programs: &["cn"],
        format: Format::OwnYaml,
        servers: "mcpServers",
        stdio: stdio(Some("stdio"), &[]),
        http: Http {
            kind: Some("streamable-http"),
            url: Some("url"),
            headers: &["requestOptions", "headers"],
            token: Variable::Text("${{ secrets.NAME }}"),
            file: None,
            more: &[],
        },
        start: Start::Sec(60),
        user_step: "choose agent mode, where Continue uses tools",
        project_step: "choose agent mode, where Continue uses tools",
        command: Own::None,
    },
    // goose's "Configuration files", and block/goose#5439 for variables: those in `env_keys` are replaced.
    Row {
        client: Client::Goose,
        title: "Goose",
        project: None,
        user: Some(config("goose/config.yaml")),
        mark: config("goose"),
        programs: &["goose"],
        format: Format::Yaml,
        servers: "extensions",
        stdio: Stdio {
            kind: Some("stdio"),
            command: "cmd",
            is_list: false,
            more: &[
                ("name", Extra::Text("tollgate")),
                ("enabled", Extra::Bool(true)),
                ("timeout", Extra::Number(CALL_SEC)),
            ],
        },
        http: http(
            Some("streamable_http"),
            "uri",
            Variable::Listed("${NAME}", "env_keys"),
            &[
                ("name", Extra::Text("tollgate")),
                ("enabled", Extra::Bool(true)),
                ("timeout", Extra::Number(CALL_SEC)),
            ],
        ),
        start: Start::Field("timeout", 1, 300),
        user_step: "start a new session",
        project_step: "",
        command: Own::None,
    },
    // junie.jetbrains.com/docs, "MCP": `url` and `headers` for remote servers, no variables.
    Row {
        client: Client::Junie,
        title: "JetBrains Junie",
        project: Some(".junie/mcp/mcp.json"),
        user: Some(home(".junie/mcp/mcp.json")),
        mark: home(".junie"),
        programs: &["junie"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(None, &[]),
        http: http(None, "url", Variable::None, &[]),
        start: Start::Sec(60),
        user_step: "check Settings, Tools, Junie, MCP Settings in the IDE",
        project_step: "check Settings, Tools, Junie, MCP Settings in the IDE",
        command: Own::None,
    },
    // qwenlm.github.io/qwen-code-docs, "MCP": a fork of Gemini CLI with its format.
    Row {
        client: Client::Qwen,
        title: "Qwen Code",
        project: Some(".qwen/settings.json"),
        user: Some(home(".qwen/settings.json")),
        mark: home(".qwen"),
        programs: &["qwen"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(None, &[("timeout", Extra::Number(CALL_MS))]),
        http: http(
            None,
            "httpUrl",
            Variable::Text("${NAME}"),
            &[("timeout", Extra::Number(CALL_MS))],
        ),
        start: Start::Field("timeout", 1000, 600),
        user_step: "",
        project_step: "run `qwen mcp approve tollgate` in this folder",
        command: Own::Gemini("qwen"),
    },
    // ampcode.com/manual, "MCP": the key has a dot in its name, `${NAME}` is replaced.
    Row {
        client: Client::Amp,
        title: "Amp",
        project: Some(".amp/settings.json"),
        user: Some(config("amp/settings.json")),
        mark: config("amp"),
        programs: &["amp"],
        format: Format::Json,
        servers: "amp.mcpServers",
        stdio: stdio(None, &[]),
        http: http(None, "url", Variable::Text("${NAME}"), &[]),
        start: Start::Sec(60),
        user_step: "",
        project_step: "run `amp mcp approve tollgate` in this folder",
        command: Own::None,
    },
    // lmstudio.ai/docs/app/mcp: Cursor's notation, without variables.
    Row {
        client: Client::LmStudio,
        title: "LM Studio",
        project: None,
        user: Some(home(".lmstudio/mcp.json")),
        mark: home(".lmstudio"),
        programs: &["lms"],
        format: Format::Json,
        servers: "mcpServers",
        stdio: stdio(None, &[]),
        http: http(None, "url", Variable::None, &[]),
        start: Start::Sec(60),
        user_step: "switch tollgate on in a chat's list of integrations",
        project_step: "",
        command: Own::None,
    },
];
