//! MCP clients: where each keeps its servers, and what an entry for Tollgate looks like there.
//!
//! Everything here works on text; reading and writing files is the command line's.

mod edit;

use std::path::PathBuf;

use serde_json::{Map, Value, json};

pub use edit::EditError;

/// A client this host knows how to be added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
}

/// Whose configuration it goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The project in the current directory.
    Project,
    /// All of the user's projects.
    User,
}

/// How the client reaches Tollgate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// It starts the program.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It connects to one that runs.
    Http {
        /// Where.
        url: String,
    },
}

/// The name of the entry.
const ENTRY: &str = "tollgate";
/// Seconds a client should wait for the first start, which compiles the packs.
const STARTUP_SEC: i64 = 20;
/// Seconds a client should wait for a call, which may run tests.
const CALL_SEC: i64 = 660;

/// What one client's file is like.
struct Format {
    project: &'static str,
    user: &'static str,
    /// The table that holds the servers.
    servers: &'static str,
    is_toml: bool,
}

impl Client {
    fn format(self) -> Format {
        let json = |project, user, servers| Format {
            project,
            user,
            servers,
            is_toml: false,
        };
        match self {
            Client::ClaudeCode => json(".mcp.json", ".claude.json", "mcpServers"),
            Client::Cursor => json(".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
            Client::Vscode if cfg!(target_os = "macos") => json(
                ".vscode/mcp.json",
                "Library/Application Support/Code/User/mcp.json",
                "servers",
            ),
            Client::Vscode => json(".vscode/mcp.json", ".config/Code/User/mcp.json", "servers"),
            Client::Gemini => json(".gemini/settings.json", ".gemini/settings.json", "mcpServers"),
            Client::Codex => Format {
                project: ".codex/config.toml",
                user: ".codex/config.toml",
                servers: "mcp_servers",
                is_toml: true,
            },
        }
    }

    /// Its file, relative to the project or to the user's home.
    #[must_use]
    pub fn file(self, scope: Scope) -> PathBuf {
        let format = self.format();
        match scope {
            Scope::Project => format.project.into(),
            Scope::User => format.user.into(),
        }
    }

    /// A whole file that holds the entry alone.
    #[must_use]
    pub fn snippet(self, server: &Server) -> String {
        self.added("", server, false).unwrap_or_default()
    }

    /// A file's text with the entry in it; everything else stays as it is. An entry of that name
    /// which says something else is only replaced by force.
    pub fn added(self, text: &str, server: &Server, force: bool) -> Result<String, EditError> {
        let format = self.format();
        let entry = self.entry(server);
        if format.is_toml {
            edit::toml(text, format.servers, ENTRY, &entry, force)
        } else {
            edit::json(text, format.servers, ENTRY, &entry, force)
        }
    }

    /// What a file's text says about Tollgate. The error says why it cannot be read.
    pub fn found(self, text: &str) -> Result<Option<Server>, String> {
        let format = self.format();
        let whole: Value = if format.is_toml {
            toml::from_str(text).map_err(|err: toml::de::Error| err.message().to_owned())?
        } else {
            serde_json::from_str(text).map_err(|err| err.to_string())?
        };
        let entry = &whole[format.servers][ENTRY];
        let url = entry["url"].as_str().or(entry["httpUrl"].as_str());
        Ok(match (entry["command"].as_str(), url) {
            (Some(command), _) => Some(Server::Stdio {
                command: command.to_owned(),
                args: entry["args"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|argument| argument.as_str().map(str::to_owned))
                    .collect(),
            }),
            (None, Some(url)) => Some(Server::Http { url: url.to_owned() }),
            (None, None) => None,
        })
    }

    fn entry(self, server: &Server) -> Map<String, Value> {
        let entry = match (self, server) {
            (Client::Codex, Server::Stdio { command, args }) => json!({
                "command": command,
                "args": args,
                "startup_timeout_sec": STARTUP_SEC,
                "tool_timeout_sec": CALL_SEC,
            }),
            (Client::Codex, Server::Http { url }) => json!({ "url": url, "tool_timeout_sec": CALL_SEC }),
            (Client::Gemini, Server::Stdio { command, args }) => {
                json!({ "command": command, "args": args, "timeout": CALL_SEC * 1000 })
            }
            (Client::Gemini, Server::Http { url }) => json!({ "httpUrl": url, "timeout": CALL_SEC * 1000 }),
            (Client::Cursor, Server::Stdio { command, args }) => json!({ "command": command, "args": args }),
            (Client::Cursor, Server::Http { url }) => json!({ "url": url }),
            (Client::ClaudeCode | Client::Vscode, Server::Stdio { command, args }) => {
                json!({ "type": "stdio", "command": command, "args": args })
            }
            (Client::ClaudeCode | Client::Vscode, Server::Http { url }) => {
                json!({ "type": "http", "url": url })
            }
        };
        match entry {
            Value::Object(entry) => entry,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use expect_test::expect;

    use super::*;

    fn stdio() -> Server {
        Server::Stdio {
            command: "/bin/tollgate".to_owned(),
            args: vec!["serve".to_owned()],
        }
    }

    #[test]
    fn each_client_has_its_own_shape() {
        let http = Server::Http {
            url: "http://127.0.0.1:8765/mcp".to_owned(),
        };
        let mut all = String::new();
        for client in Client::value_variants() {
            let file = client.file(Scope::Project);
            all += &format!(
                "{}\n{}{}\n",
                file.display(),
                client.snippet(&stdio()),
                client.snippet(&http)
            );
        }
        expect![[r#"
            .mcp.json
            {
              "mcpServers": {
                "tollgate": {
                  "type": "stdio",
                  "command": "/bin/tollgate",
                  "args": [
                    "serve"
                  ]
                }
              }
            }
            {
              "mcpServers": {
                "tollgate": {
                  "type": "http",
                  "url": "http://127.0.0.1:8765/mcp"
                }
              }
            }

            .cursor/mcp.json
            {
              "mcpServers": {
                "tollgate": {
                  "command": "/bin/tollgate",
                  "args": [
                    "serve"
                  ]
                }
              }
            }
            {
              "mcpServers": {
                "tollgate": {
                  "url": "http://127.0.0.1:8765/mcp"
                }
              }
            }

            .vscode/mcp.json
            {
              "servers": {
                "tollgate": {
                  "type": "stdio",
                  "command": "/bin/tollgate",
                  "args": [
                    "serve"
                  ]
                }
              }
            }
            {
              "servers": {
                "tollgate": {
                  "type": "http",
                  "url": "http://127.0.0.1:8765/mcp"
                }
              }
            }

            .codex/config.toml
            [mcp_servers.tollgate]
            command = "/bin/tollgate"
            args = ["serve"]
            startup_timeout_sec = 20
            tool_timeout_sec = 660
            [mcp_servers.tollgate]
            url = "http://127.0.0.1:8765/mcp"
            tool_timeout_sec = 660

            .gemini/settings.json
            {
              "mcpServers": {
                "tollgate": {
                  "command": "/bin/tollgate",
                  "args": [
                    "serve"
                  ],
                  "timeout": 660000
                }
              }
            }
            {
              "mcpServers": {
                "tollgate": {
                  "httpUrl": "http://127.0.0.1:8765/mcp",
                  "timeout": 660000
                }
              }
            }

        "#]]
        .assert_eq(&all);
    }

    #[test]
    fn adding_twice_is_adding_once() {
        for client in Client::value_variants() {
            let once = client.added("", &stdio(), false).unwrap();
            assert_eq!(client.found(&once), Ok(Some(stdio())), "{client:?}");
            assert_eq!(client.added(&once, &stdio(), false).unwrap(), once, "{client:?}");
        }
    }

    #[test]
    fn an_entry_that_says_something_else_stays() {
        let other = Server::Stdio {
            command: "/old/tollgate".to_owned(),
            args: Vec::new(),
        };
        for client in Client::value_variants() {
            let text = client.snippet(&other);
            assert!(
                matches!(client.added(&text, &stdio(), false), Err(EditError::Taken { .. })),
                "{client:?}"
            );
            assert_eq!(
                client.added(&text, &stdio(), true).unwrap(),
                client.snippet(&stdio())
            );
        }
    }

    #[test]
    fn what_else_is_in_a_file_stays() {
        let json = "{\n  \"z\": [1, 2],\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"a\": \"é\"\n}\n";
        let text = Client::ClaudeCode.added(json, &stdio(), false).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["mcpServers"]["other"]["command"], "x");
        assert_eq!(value["mcpServers"]["tollgate"]["command"], "/bin/tollgate");
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["z", "mcpServers", "a"]);
        let toml = "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let text = Client::Codex.added(toml, &stdio(), false).unwrap();
        assert!(text.starts_with(toml), "{text}");
        assert!(
            text.contains("[mcp_servers.tollgate]\ncommand = \"/bin/tollgate\""),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_kept_whole_is_left_alone() {
        for text in [
            "{ // a comment\n}",
            "[]",
            "{\"mcpServers\": 1}",
            "{",
            "\u{feff}{}",
        ] {
            assert!(Client::Cursor.added(text, &stdio(), true).is_err(), "{text}");
        }
        for text in ["= 1", "mcp_servers = 1", "[[mcp_servers]]\na = 1"] {
            assert!(Client::Codex.added(text, &stdio(), true).is_err(), "{text}");
        }
    }
}
