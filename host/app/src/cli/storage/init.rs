//! `tollgate storage init`

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate_store::data_dir::DataDir;
use tollgate_store::storage::{Provisioned, Server, Wanted};

use super::{Global, out};
use crate::cli::file;

/// Bytes of a generated password.
const PASSWORD_BYTES: usize = 32;

/// Existing objects are not changed, so the command can be repeated. Without `--admin` it only creates the host's
/// tables, with the configured URL.
#[derive(Debug, Args)]
pub(in crate::cli) struct Init {
    /// URL of a role that may create roles and databases, env:VARIABLE or file:PATH with the URL in it
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// Role that hosts log in as
    #[arg(long, value_name = "NAME", default_value = "tollgate", requires = "admin")]
    role: String,
    /// Name of the database
    #[arg(long, value_name = "NAME", default_value = "tollgate", requires = "admin")]
    name: String,
    /// Schema of the host's tables
    #[arg(
        long,
        value_name = "NAME",
        default_value = "tollgate_host",
        requires = "admin"
    )]
    schema: String,
    /// File with the password of the role; if it does not exist, a password is generated and written to it. An existing
    /// role keeps its own
    #[arg(long, value_name = "FILE", requires = "admin")]
    password_file: Option<PathBuf>,
}

impl Init {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        match &self.admin {
            Some(admin) => self.provision(global, &global.server_of(&config, admin)?),
            None => make_tables(global, &config),
        }
    }

    fn provision(&self, global: &Global, admin: &Server) -> anyhow::Result<ExitCode> {
        // Do not generate a password that is not used.
        let password = match admin.has_role(&self.role)? {
            true => None,
            false => self.password_file.as_deref().map(password).transpose()?,
        };
        let made = admin.provision(&Wanted {
            role: &self.role,
            password: password.as_deref(),
            database: &self.name,
            schema: &self.schema,
        })?;
        if global.json {
            out::print_json(&json!(made));
            return Ok(ExitCode::SUCCESS);
        }
        out::print(&self.told(&made));
        Ok(ExitCode::SUCCESS)
    }

    fn told(&self, made: &Provisioned) -> String {
        let is_made = |made: bool| if made { "created" } else { "already exists" };
        let password = match (&self.password_file, made.role_made) {
            (Some(file), true) => format!("the password of the role, which is in {}", file.display()),
            _ => "the password of the role, which was not changed".to_owned(),
        };
        format!(
            "role {}: {}\ndatabase {}: {}\nschema {}: {}\n\nURL of the database (replace PASSWORD with {password}):\n  {}\n\
             Store it in a file that only you can read, and set storage.url = \"file:PATH\". Then run tollgate storage check",
            self.role,
            is_made(made.role_made),
            self.name,
            is_made(made.database_made),
            self.schema,
            is_made(made.schema_made),
            made.url,
        )
    }
}

/// Password from a file, or a new one that is stored in the file before it is used.
fn password(path: &Path) -> anyhow::Result<String> {
    use std::os::unix::fs::MetadataExt as _;

    match path.metadata() {
        Err(err) if err.kind() == ErrorKind::NotFound => {
            let mut bytes = [0; PASSWORD_BYTES];
            getrandom::fill(&mut bytes).map_err(|err| anyhow::anyhow!("no password was generated: {err}"))?;
            let password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            file::create(path, &format!("{password}\n"))?;
            Ok(password)
        }
        Err(err) => Err(err).with_context(|| format!("cannot read {}", path.display())),
        Ok(found) => {
            ensure!(
                found.mode() & 0o077 == 0,
                "other users can read {}; make the file private: chmod 600 {0}",
                path.display()
            );
            let text = file::read(path)?;
            let password = text.trim_end_matches(['\r', '\n']);
            ensure!(
                !password.is_empty() && !password.contains(['\n', '\0']),
                "{} does not contain a password on one line",
                path.display()
            );
            Ok(password.to_owned())
        }
    }
}

fn make_tables(global: &Global, config: &Config) -> anyhow::Result<ExitCode> {
    let server = global.server(config)?.context(
        "no server is configured; set storage.url or pass --database, or pass --admin to create a database on a server",
    )?;
    let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
    let database = global.database(config, &data)?;
    let head = database.read_session()?.ledger().head()?;
    if global.json {
        out::print_json(&json!({ "place": server.to_string(), "head": head }));
    } else {
        out::print(&format!(
            "the host's tables exist on {server}; the head of the ledger is row {}. Components create their tables when a host starts",
            head.seq
        ));
    }
    Ok(ExitCode::SUCCESS)
}
