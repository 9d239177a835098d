//! Content of a client's entry: flags, configuration and this program's own path.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use tollgate::clients::{Client, Places, Scope, Server, Token};
use tollgate::config::Config;

use super::runner::{self, Home};
use super::{Global, file, out, utf8};

/// Variable from which `serve` itself takes a token.
const TOKEN_VARIABLE: &str = "TOLLGATE_TOKEN";

#[derive(Debug, Args)]
pub(super) struct Target {
    /// For the project in the current directory, in a file to be committed, instead of all your projects
    #[arg(long)]
    pub(super) project: bool,
    /// For all your projects, which is the default
    #[arg(long, conflicts_with = "project", hide = true)]
    pub(super) user: bool,
    /// The client connects to a running server instead of starting one [default: server.http of the configuration]
    #[arg(long, value_name = "URL", value_parser = address)]
    http: Option<String>,
    /// The client reads its token from this environment variable
    #[arg(long, value_name = "NAME", value_parser = variable)]
    bearer_env: Option<String>,
    /// The client reads its token from this file, which contains only the token
    #[arg(long, value_name = "FILE", conflicts_with = "bearer_env")]
    token_file: Option<PathBuf>,
    /// Load only these packs
    #[arg(long, value_delimiter = ',', value_name = "PACK,…", env = "TOLLGATE_PACKS")]
    pub(super) packs: Vec<String>,
    /// Further arguments for `serve`, after `--`
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(super) serve: Vec<String>,
}

impl Target {
    /// Server of a client's entry.
    pub(super) fn server(&self, global: &Global, client: Client, places: &Places) -> anyhow::Result<Server> {
        let config = config(global);
        let listens = match std::env::var("TOLLGATE_HTTP") {
            Ok(address) => address.parse().ok().or(config.server.http),
            Err(_) => config.server.http,
        };
        match (&self.http, listens) {
            (Some(url), _) => self.connects(url.clone(), client, &config),
            (None, Some(address)) => self.connects(url_of(address)?, client, &config),
            (None, None) => self.starts(global, places),
        }
    }

    fn connects(&self, url: String, client: Client, config: &Config) -> anyhow::Result<Server> {
        ensure!(
            self.serve.is_empty() && (self.http.is_none() || self.packs.is_empty()),
            "the client connects to {url}, where a server already runs; arguments for `serve` and --packs are only for \
             entries that start a server"
        );
        let token = match (&self.bearer_env, &self.token_file) {
            (Some(name), _) => Some(Token::Variable(name.clone())),
            (None, Some(file)) => Some(Token::File(lone_token(file)?)),
            (None, None) if config.server.auth.token_file.is_some() && self.http.is_none() => {
                if client.reads_variables() {
                    out::warn(&format!(
                        "the server requires a token; {} reads the token from {TOKEN_VARIABLE} (to use another \
                         variable, pass --bearer-env)",
                        client.title()
                    ));
                    Some(Token::Variable(TOKEN_VARIABLE.to_owned()))
                } else {
                    out::warn(&format!(
                        "the server requires a token, but {} cannot read a token from a variable; write \
                         \"Authorization\": \"Bearer …\" into the headers of the entry",
                        client.title()
                    ));
                    None
                }
            }
            (None, None) => None,
        };
        Ok(Server::Http { url, token })
    }

    fn starts(&self, global: &Global, places: &Places) -> anyhow::Result<Server> {
        ensure!(
            self.bearer_env.is_none() && self.token_file.is_none(),
            "tokens are only for servers over HTTP; pass --http URL, or set server.http in the configuration"
        );
        let mut words = self.program(places)?.into_iter();
        let command = words.next().context("the program has no name")?;
        let mut args: Vec<String> = words.chain(["serve".to_owned()]).collect();
        let before = args.len();
        // The client starts the program in another directory, so relative paths must be made absolute.
        for (flag, path) in [
            ("--config", &global.config),
            ("--data-dir", &global.data_dir),
            ("--cache-dir", &global.cache_dir),
        ] {
            if let Some(path) = path {
                args.extend([flag.to_owned(), utf8(&std::path::absolute(path)?)?]);
            }
        }
        for (name, path) in &global.workspaces {
            let path = utf8(&std::path::absolute(path)?)?;
            args.extend(["--workspace".to_owned(), format!("{name}={path}")]);
        }
        if self.project && args.len() > before {
            out::warn(
                "the entry contains paths of this machine; for an entry that works on other machines, omit --config, \
                 --data-dir, --cache-dir and --workspace",
            );
        }
        if !self.packs.is_empty() {
            args.extend(["--packs".to_owned(), self.packs.join(",")]);
        }
        args.extend(self.serve.iter().cloned());
        Ok(Server::Stdio { command, args })
    }

    /// Command that starts this program. A file to be committed contains only the program's name. Others contain the
    /// path under which it is found, which stays valid across updates by a package manager. For a program in a
    /// temporary cache, it is the command that fills the cache.
    fn program(&self, places: &Places) -> anyhow::Result<Vec<String>> {
        let this = std::env::current_exe().context("cannot determine the path of the tollgate executable")?;
        let this = this.canonicalize().unwrap_or(this);
        match runner::home(&this, places) {
            Home::Lasting => Ok(vec![self.path(&this, places)?]),
            Home::Runner { words, files } => {
                if !files.is_empty() {
                    out::warn(&format!("the entry works as long as {} exists", files.join(", ")));
                }
                Ok(words)
            }
            Home::Cache(folder) => {
                out::warn(&format!(
                    "this program is in the cache {}, which may be emptied; install tollgate (docs/install.md) and add \
                     the client again with --force",
                    folder.display()
                ));
                Ok(vec![utf8(&this)?])
            }
        }
    }

    /// The name or path of a program that is installed.
    fn path(&self, this: &Path, places: &Places) -> anyhow::Result<String> {
        let found = places.program("tollgate");
        let is_same = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == this);
        let is_this = |path: &PathBuf| is_same(path) || runner::is_starter_of(path, this);
        match (found, self.scope()) {
            (Some(found), Scope::Project) if is_this(&found) => Ok("tollgate".to_owned()),
            (Some(found), Scope::User) if is_same(&found) => utf8(&found),
            (None, Scope::Project) => {
                out::warn(
                    "tollgate is not on the PATH, so the project's entry contains a path of this machine; to share the \
                     entry, put tollgate on the PATH and run `tollgate clients add` again with --force",
                );
                utf8(this)
            }
            (Some(other), Scope::Project) => {
                out::warn(&format!(
                    "`tollgate` on the PATH is another program ({}), so the entry contains the path of this program",
                    other.display()
                ));
                utf8(this)
            }
            (_, Scope::User) => utf8(this),
        }
    }

    pub(super) fn scope(&self) -> Scope {
        super::scope(self.project)
    }
}

/// The configuration, or the defaults if it cannot be used, which the check reports.
pub(super) fn config(global: &Global) -> Config {
    Config::load(global.config.as_deref()).unwrap_or_else(|err| {
        out::warn(&tollgate_core::text::chain(&err));
        Config::default()
    })
}

/// Address at which clients on this machine reach a server.
fn url_of(address: SocketAddr) -> anyhow::Result<String> {
    ensure!(
        address.port() != 0,
        "server.http has port 0, which picks a free port at each start; set another port, or pass --http URL"
    );
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(format!("http://{}/mcp", SocketAddr::new(ip, address.port())))
}

/// An address of a server.
fn address(text: &str) -> Result<String, String> {
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => Ok(text.to_owned()),
        _ => Err("write an address such as http://127.0.0.1:8765/mcp".to_owned()),
    }
}

/// Name of a variable, which entries contain in braces.
fn variable(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !text.is_empty() && text.chars().all(is_name) && !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err("write the name of a variable, such as TOLLGATE_TOKEN: letters, digits and `_`".to_owned())
}

/// Path of a file whose whole content clients send as the token.
fn lone_token(path: &PathBuf) -> anyhow::Result<String> {
    let text = file::read(path)?;
    ensure!(
        !text.trim().is_empty() && !text.trim().contains(char::is_whitespace),
        "{} must contain only a token, because clients send the whole file; write the token to a separate file",
        path.display()
    );
    utf8(&std::path::absolute(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_at_becomes_one_to_connect_to() {
        let url = |text: &str| url_of(text.parse().unwrap()).unwrap();
        assert_eq!(url("0.0.0.0:8765"), "http://127.0.0.1:8765/mcp");
        assert_eq!(url("[::]:80"), "http://[::1]:80/mcp");
        assert_eq!(url("192.0.2.1:1"), "http://192.0.2.1:1/mcp");
        assert!(url_of("127.0.0.1:0".parse().unwrap()).is_err());
    }

    #[test]
    fn only_names_of_variables_come_between_braces() {
        for name in ["A", "_x1", "TOLLGATE_TOKEN"] {
            assert!(variable(name).is_ok(), "{name}");
        }
        for name in ["", "1A", "A-B", "A}", "$A", "A:-x", "é"] {
            assert!(variable(name).is_err(), "{name}");
        }
    }

    #[test]
    fn only_addresses_of_http_are_written() {
        assert!(address("https://tollgate.example/mcp").is_ok());
        for text in ["", "127.0.0.1:8765", "file:///x", "tollgate"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
