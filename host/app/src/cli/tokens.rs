//! `tollgate tokens`

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand};
use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use tollgate::config::Config;
use tollgate_core::clock::{self, Clock as _, SystemClock};
use tollgate_core::scopes::{Scope, Scopes};
use tollgate_mcp::auth::{self, TokenHash, TokenLine, TokenLines};
use tollgate_sdk::Timestamp;

use super::flag_help::configured;
use super::{Global, file, out};

#[derive(Debug, Subcommand)]
pub(super) enum Tokens {
    /// Create a token and print it once; only its hash is kept, and running servers accept the token at once
    Add(Add),
    /// Show the owners of tokens, with scopes and expiry
    List(List),
    /// Revoke a token; servers end its sessions at once
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct TokenFile {
    #[arg(long, help = configured("server.auth.token_file"), value_name = "FILE", env = "TOLLGATE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// Owner of the token; the ledger records token:NAME
    #[arg(value_parser = name)]
    name: String,
    /// read (tools that read), write (all tools), metrics (only /metrics), see-all (operations, envelopes and reports
    /// of everybody; reads); may be repeated [default: write]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    scopes: Vec<Scope>,
    /// Time of expiry: 90d, 24h, or 2027-01-31T00:00:00Z [default: never]
    #[arg(long, value_name = "TIME", value_parser = end)]
    expires: Option<i64>,
    #[command(flatten)]
    file: TokenFile,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    file: TokenFile,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// Owner of the token; a token without a name belongs to `default`
    name: String,
    #[command(flatten)]
    file: TokenFile,
}

impl Tokens {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            Tokens::Add(add) => add.run(global),
            Tokens::List(list) => list.run(global),
            Tokens::Revoke(revoke) => revoke.run(global),
        }
    }
}

impl Add {
    fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let path = self.file.find(global)?;
        let _lock = lock(&path)?;
        check(&path)?;
        let token = auth::new_token().context("the system provides no random numbers")?;
        let line = TokenLine {
            name: self.name,
            hash: TokenHash::of(&token),
            is_plain: false,
            scopes: Scopes::of(self.scopes),
            expires_ms: self.expires,
        };
        let text = TokenLines::added(&file::read(&path)?, &line).map_err(anyhow::Error::msg)?;
        file::replace(&path, &text)?;
        let expires = line.expires_ms.map(|end| Timestamp::from_ms(end).to_string());
        if global.json {
            out::print_json(&json!({
                "name": line.name,
                "token": token,
                "scopes": line.scopes.to_string(),
                "expires_at": expires,
                "token_file": path,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        out::print(&token);
        let end = expires.map_or_else(|| "never expires".to_owned(), |end| format!("expires at {end}"));
        out::warn(&format!(
            "this is {}'s token, with the scope {}; the token {end}. It is shown only now: {} contains only its hash",
            line.name,
            line.scopes,
            path.display()
        ));
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let path = self.file.find(global)?;
        check(&path)?;
        let read = TokenLines::parse(&file::read(&path)?);
        let now = SystemClock.now_ms();
        let expires = |line: &TokenLine| line.expires_ms.map(|end| Timestamp::from_ms(end).to_string());
        if global.json {
            let tokens: Vec<_> = read
                .lines
                .iter()
                .map(|line| {
                    json!({
                        "name": line.name,
                        "scopes": line.scopes.to_string(),
                        "expires_at": expires(line),
                        "expired": line.is_over(now),
                        "hashed": !line.is_plain,
                    })
                })
                .collect();
            out::print_json(&json!({ "token_file": path, "tokens": tokens, "problems": read.problems }));
        } else {
            let rows: Vec<Vec<String>> = read
                .lines
                .iter()
                .map(|line| {
                    let end = expires(line).unwrap_or_else(|| "never".to_owned());
                    vec![
                        line.name.clone(),
                        line.scopes.to_string(),
                        if line.is_over(now) {
                            format!("{end}, expired")
                        } else {
                            end
                        },
                        if line.is_plain { "the token" } else { "hash" }.to_owned(),
                    ]
                })
                .collect();
            out::print(&out::table(&["NAME", "SCOPES", "EXPIRES", "KEPT AS"], &rows));
        }
        for problem in &read.problems {
            out::warn(&format!("{}:{problem}", path.display()));
        }
        Ok(if read.problems.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

impl Revoke {
    fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let path = self.file.find(global)?;
        let _lock = lock(&path)?;
        check(&path)?;
        let text = TokenLines::without(&file::read(&path)?, &self.name).map_err(anyhow::Error::msg)?;
        // A server does not start with an empty file, and a running one then admits no one.
        let left = TokenLines::parse(&text).lines.len();
        file::replace(&path, &text)?;
        if global.json {
            out::print_json(&json!({ "revoked": self.name, "tokens_left": left, "token_file": path }));
        } else {
            out::print(&format!(
                "revoked {}; {} left in {}",
                self.name,
                tollgate_core::text::counted(left, "token"),
                path.display()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl TokenFile {
    fn find(self, global: &Global) -> anyhow::Result<PathBuf> {
        if let Some(path) = self.token_file {
            return Ok(path);
        }
        let config = Config::load(global.config.as_deref())?;
        match config.server.auth.token_file {
            Some(path) => Ok(path),
            None => bail!(
                "no token file is configured; set `token_file = \"tokens\"` in [server.auth] of the configuration, or \
                 pass --token-file FILE here and to `tollgate serve`"
            ),
        }
    }
}

/// Locks the file against other commands until dropped.
fn lock(path: &Path) -> anyhow::Result<File> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    #[allow(clippy::disallowed_methods, reason = "the operator names the file in it")]
    let opened = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    flock(&opened, FlockOperation::LockExclusive)
        .with_context(|| format!("cannot lock {}", folder.display()))?;
    Ok(opened)
}

/// Refuses a file that others can read, as a server would.
fn check(path: &Path) -> anyhow::Result<()> {
    if let Ok(found) = path.metadata() {
        ensure!(found.is_file(), "{} is not a file", path.display());
        ensure!(
            found.mode() & 0o077 == 0,
            "the token file {0} can be read by others; run `chmod 600 {0}`",
            path.display()
        );
    }
    Ok(())
}

fn name(text: &str) -> Result<String, String> {
    if tollgate_core::text::is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("a name consists of at most 64 letters, digits, `-`, `_` and `.`".to_owned())
    }
}

/// Expiry of a token, in milliseconds since 1970.
fn end(text: &str) -> Result<i64, String> {
    let now = SystemClock.now_ms();
    let end = match clock::span_ms(text) {
        Some(span) => now.checked_add(span),
        None => Timestamp::parse(text).map(Timestamp::as_ms),
    };
    match end {
        Some(end) if end > now => Ok(end),
        Some(_) => Err("this time is not in the future".to_owned()),
        None => Err("not a time; write 24h, 90d, 52w, or 2027-01-31T00:00:00Z".to_owned()),
    }
}
