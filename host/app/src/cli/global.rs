//! Options of every command, combined with a configuration.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use tollgate::config::Config;
use tollgate_store::data_dir::{DATABASE, DataDir};
use tollgate_store::storage::{Database, Server};

use super::flag_help::{with_default, with_details};
use super::{log, path, workspace};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// The configuration file [default: tollgate/tollgate.toml in the user's configuration directory]
    #[arg(long, global = true, env = "TOLLGATE_CONFIG", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(path))]
    pub(super) config: Option<PathBuf>,
    #[arg(long, help = with_default("data_dir"), global = true, env = "TOLLGATE_DATA_DIR", value_name = "DIR",
        value_parser = PathBufValueParser::new().try_map(path))]
    pub(super) data_dir: Option<PathBuf>,
    #[arg(
        long,
        help = with_default("storage.url"),
        global = true,
        env = "TOLLGATE_DATABASE",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(super) database: Option<String>,
    #[arg(long, help = with_default("cache_dir"), global = true, env = "TOLLGATE_CACHE_DIR", value_name = "DIR",
        value_parser = PathBufValueParser::new().try_map(path))]
    pub(super) cache_dir: Option<PathBuf>,
    #[arg(
        long = "workspace",
        help = with_details(
            "workspaces.*.path",
            "A configured workspace of this name moves to the directory. The flag may be repeated"
        ),
        global = true,
        env = "TOLLGATE_WORKSPACE",
        value_name = "NAME=PATH",
        value_parser = workspace
    )]
    pub(super) workspaces: Vec<(String, PathBuf)>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Format of the log on standard error
    #[arg(
        long,
        global = true,
        env = "TOLLGATE_LOG_FORMAT",
        default_value = "text",
        value_name = "FORMAT"
    )]
    pub(super) log_format: LogFormat,
    /// Log level: off, error, warn, info, debug, trace, or directives such as `tollgate=debug` [default: warn, and
    /// the server's own actions]
    #[arg(
        long,
        global = true,
        env = "TOLLGATE_LOG",
        value_name = "FILTER",
        value_parser = log::filter
    )]
    pub(super) log: Option<String>,
    /// The user's own umask.
    #[arg(skip)]
    pub(super) umask: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

impl Global {
    /// Database server. `None` if the database is a file of the data directory.
    pub(super) fn server(&self, config: &Config) -> anyhow::Result<Option<Server>> {
        let environment = |name: &str| std::env::var(name).ok();
        Ok(config.storage.server(self.database.as_deref(), environment)?)
    }

    /// Server named by another option, in the same forms as the database's.
    pub(super) fn server_of(&self, config: &Config, url: &str) -> anyhow::Result<Server> {
        let environment = |name: &str| std::env::var(name).ok();
        let server = config.storage.server(Some(url), environment)?;
        server.context("the URL does not name a server")
    }

    /// Opens the database of a data directory and migrates it.
    pub(super) fn database(&self, config: &Config, data: &DataDir) -> anyhow::Result<Database> {
        let opened = match self.server(config)? {
            Some(server) => Database::connect(server),
            None => Database::open(&data.database()),
        };
        opened.context("cannot use the database")
    }

    /// Opens the database of a data directory as it is. Nothing is created.
    pub(super) fn existing_database(&self, config: &Config, data: &DataDir) -> anyhow::Result<Database> {
        Ok(match self.server(config)? {
            Some(server) => Database::on(server),
            None => Database::existing(&data.database()),
        })
    }

    /// Returns whether a host may have used the database. A file must exist; the content of a server is checked when it
    /// is read.
    pub(super) fn has_database(&self, config: &Config, data: &DataDir) -> anyhow::Result<bool> {
        Ok(self.server(config)?.is_some() || data.has(DATABASE))
    }

    /// Refuses commands that need a database file, if the database is on a server.
    pub(super) fn only_file(&self, config: &Config, instead: &str) -> anyhow::Result<()> {
        match self.server(config)? {
            None => Ok(()),
            Some(server) => {
                anyhow::bail!("the database is {server}, not a file in the data directory; {instead}")
            }
        }
    }
}
