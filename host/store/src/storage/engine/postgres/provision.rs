//! Creation of a role, a database and a schema for a host, by an administrator of the server.
//!
//! Names and passwords from the operator are never parsed as SQL: names are quoted, and the server gets only the
//! verifier that it would store of a password, so that no statement log contains the password.

use serde::Serialize;
use thiserror::Error;
use tokio_postgres::config::Host;

use super::error::Failure;
use super::server::{Server, ServerError};
use super::settings::{quoted, session};
use super::wire::Wire;
use crate::storage::session::Access;

/// Longest name that PostgreSQL does not truncate, in bytes.
const LONGEST_NAME: usize = 63;

/// Names to create on a server.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Role for hosts.
    pub role: &'a str,
    /// Password, if the role must be created.
    pub password: Option<&'a str>,
    /// Database.
    pub database: &'a str,
    /// Schema for the host's tables in the database.
    pub schema: &'a str,
}

/// Result: the created objects, and a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provisioned {
    /// True if the role was created.
    pub role_made: bool,
    /// True if the database was created.
    pub database_made: bool,
    /// True if the schema was created.
    pub schema_made: bool,
    /// URL with the word PASSWORD in place of the password.
    pub url: String,
}

/// Reason for which something was not created.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// The server cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A name is malformed.
    #[error("{0:?} is not a name: 1 to {LONGEST_NAME} bytes, without control characters")]
    Name(String),
    /// The role must be created, and no password was given.
    #[error("the role {0} does not exist, and creating it needs a password: --password-file FILE")]
    NoPassword(String),
    /// The role cannot log in.
    #[error(
        "the role {0} exists but cannot log in; allow it with ALTER ROLE … LOGIN, or name another with --role"
    )]
    NoLogin(String),
    /// The database has another encoding.
    #[error(
        "the database {0} exists with the encoding {1}, but a host needs UTF8; name another with --name, or recreate \
         this one with ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding(String, String),
    /// The database must be created, and the role of the URL may not create it.
    #[error(
        "the role of --admin may not create the database {0}, so nothing was created; name one that may (ALTER ROLE … \
         CREATEDB), or create the database first, with ENCODING 'UTF8' TEMPLATE template0"
    )]
    MayNotMake(String),
    /// A statement failed.
    #[error("{doing} failed: {reason}")]
    Failed {
        /// Step that failed.
        doing: String,
        /// Message of the server.
        reason: String,
    },
}

impl Server {
    /// Creates the missing objects, as the role of this URL. Existing ones stay unchanged.
    pub fn provision(&self, wanted: &Wanted<'_>) -> Result<Provisioned, ProvisionError> {
        for name in [wanted.role, wanted.database, wanted.schema] {
            check(name)?;
        }
        let wire = session(self, Access::Write)?;
        // Checked before anything is created.
        may_make_database(&wire, wanted)?;
        let role_made = make_role(&wire, wanted)?;
        let database_made = make_database(&wire, wanted)?;
        let mut there = self.clone();
        there.config.dbname(wanted.database);
        let wire = session(&there, Access::Write)?;
        let schema_made = make_schema(&wire, wanted)?;
        Ok(Provisioned {
            role_made,
            database_made,
            schema_made,
            url: self.shape(wanted),
        })
    }

    /// True if the server has a role with this name.
    pub fn has_role(&self, role: &str) -> Result<bool, ProvisionError> {
        check(role)?;
        let wire = session(self, Access::Write)?;
        let sql = format!("SELECT 1 FROM pg_roles WHERE rolname = {}", literal(role));
        Ok(first(&wire, &sql)?.is_some())
    }

    /// URL for hosts, without the password.
    fn shape(&self, wanted: &Wanted<'_>) -> String {
        let (role, database) = (escaped(wanted.role), escaped(wanted.database));
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let mut parameters = Vec::new();
        let mut url = match self.config.get_hosts().first() {
            Some(Host::Unix(folder)) => {
                parameters.push(format!("host={}", folder.display()));
                parameters.push(format!("user={role}"));
                parameters.push("password=PASSWORD".to_owned());
                format!("postgres:///{database}")
            }
            Some(Host::Tcp(host)) => format!("postgres://{role}:PASSWORD@{host}:{port}/{database}"),
            None => format!("postgres://{role}:PASSWORD@localhost:{port}/{database}"),
        };
        parameters.extend(self.tls_parameters.iter().cloned());
        if wanted.schema != super::server::SCHEMA {
            parameters.push(format!("schema={}", wanted.schema));
        }
        if !parameters.is_empty() {
            url.push('?');
            url.push_str(&parameters.join("&"));
        }
        url
    }
}

fn check(name: &str) -> Result<(), ProvisionError> {
    let is_name = (1..=LONGEST_NAME).contains(&name.len()) && !name.chars().any(char::is_control);
    match is_name {
        true => Ok(()),
        false => Err(ProvisionError::Name(name.to_owned())),
    }
}

/// Quoted text literal. Sessions read backslashes literally.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Name escaped for a URL.
fn escaped(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(escape).collect()
}

fn failed(doing: String) -> impl FnOnce(Failure) -> ProvisionError {
    move |failure| ProvisionError::Failed {
        reason: failure
            .message()
            .map_or_else(|| failure.to_string(), str::to_owned),
        doing,
    }
}

/// The first column of the first row, if there is a row.
fn first(wire: &Wire, sql: &str) -> Result<Option<String>, ProvisionError> {
    let said = wire.ask(sql).map_err(failed("reading what exists".to_owned()))?;
    Ok(said.into_iter().next().flatten())
}

fn make_role(wire: &Wire, wanted: &Wanted<'_>) -> Result<bool, ProvisionError> {
    let role = wanted.role;
    let found = first(
        wire,
        &format!(
            "SELECT rolcanlogin FROM pg_roles WHERE rolname = {}",
            literal(role)
        ),
    )?;
    match found.as_deref() {
        Some("t") => return Ok(false),
        Some(_) => return Err(ProvisionError::NoLogin(role.to_owned())),
        None => {}
    }
    let Some(password) = wanted.password else {
        return Err(ProvisionError::NoPassword(role.to_owned()));
    };
    let stored = postgres_protocol::password::scram_sha_256(password.as_bytes());
    // Before version 16, a role that may create roles can also grant itself those that access files and programs of
    // the server.
    let is_bounded = first(
        wire,
        "SELECT current_setting('server_version_num')::int >= 160000",
    )?;
    let of_components = match is_bounded.as_deref() {
        Some("t") => "CREATEROLE",
        _ => "NOCREATEROLE",
    };
    let sql = format!(
        "CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB {of_components} NOREPLICATION PASSWORD {}",
        quoted(role),
        literal(&stored)
    );
    wire.script(&sql, None)
        .map_err(failed(format!("creating the role {role}")))?;
    Ok(true)
}

fn may_make_database(wire: &Wire, wanted: &Wanted<'_>) -> Result<(), ProvisionError> {
    let may = first(
        wire,
        &format!(
            "SELECT (SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user)
                OR EXISTS (SELECT 1 FROM pg_database WHERE datname = {})",
            literal(wanted.database)
        ),
    )?;
    match may.as_deref() {
        Some("t") => Ok(()),
        _ => Err(ProvisionError::MayNotMake(wanted.database.to_owned())),
    }
}

fn make_database(wire: &Wire, wanted: &Wanted<'_>) -> Result<bool, ProvisionError> {
    let (database, role) = (quoted(wanted.database), quoted(wanted.role));
    let encoding = first(
        wire,
        &format!(
            "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = {}",
            literal(wanted.database)
        ),
    )?;
    let doing = || failed(format!("creating the database {}", wanted.database));
    match encoding.as_deref() {
        Some("UTF8") => {
            let grant = format!("GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {database} TO {role}");
            let doing = format!(
                "letting the role {} use the database {}",
                wanted.role, wanted.database
            );
            wire.script(&grant, None).map_err(failed(doing))?;
            return Ok(false);
        }
        Some(other) => {
            return Err(ProvisionError::Encoding(
                wanted.database.to_owned(),
                other.to_owned(),
            ));
        }
        None => {}
    }
    let is_superuser = first(wire, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")?;
    if is_superuser.as_deref() != Some("t") {
        // All others may create a database only for a role that they are a member of.
        let grant = format!("GRANT {role} TO CURRENT_USER");
        wire.script(&grant, None).map_err(doing())?;
    }
    let create = format!("CREATE DATABASE {database} OWNER {role} TEMPLATE template0 ENCODING 'UTF8'");
    wire.script(&create, None).map_err(doing())?;
    // Otherwise every role may connect to a new database, and create temporary tables there.
    let revoke = format!("REVOKE ALL ON DATABASE {database} FROM PUBLIC");
    wire.script(&revoke, None).map_err(doing())?;
    Ok(true)
}

fn make_schema(wire: &Wire, wanted: &Wanted<'_>) -> Result<bool, ProvisionError> {
    let found = first(
        wire,
        &format!(
            "SELECT 1 FROM pg_namespace WHERE nspname = {}",
            literal(wanted.schema)
        ),
    )?;
    if found.is_some() {
        return Ok(false);
    }
    let create = format!(
        "CREATE SCHEMA {} AUTHORIZATION {}",
        quoted(wanted.schema),
        quoted(wanted.role)
    );
    wire.script(&create, None)
        .map_err(failed(format!("creating the schema {}", wanted.schema)))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Database;

    #[test]
    fn the_url_for_hosts_has_no_password() {
        let wanted = |schema: &'static str| Wanted {
            role: "to/ll@gate",
            password: Some("secret"),
            database: "t",
            schema,
        };
        let shape = |admin: &str, schema| Server::from_url(admin).unwrap().shape(&wanted(schema));
        assert_eq!(
            shape("postgres://root:pw@db.example/postgres", "tollgate_host"),
            "postgres://to%2Fll%40gate:PASSWORD@db.example:5432/t"
        );
        assert_eq!(
            shape(
                "postgres://root:pw@127.0.0.1/postgres?sslmode=verify-full",
                "tollgate_host"
            ),
            "postgres://to%2Fll%40gate:PASSWORD@127.0.0.1:5432/t?sslmode=verify-full"
        );
        assert_eq!(
            shape("postgres:///postgres?host=/run/pg&user=root", "other"),
            "postgres:///t?host=/run/pg&user=to%2Fll%40gate&password=PASSWORD&schema=other"
        );
    }

    #[test]
    fn names_are_quoted_and_passwords_are_hashed() {
        assert_eq!(literal("a'; DROP ROLE x; --"), "'a''; DROP ROLE x; --'");
        for name in ["", "a\0b", "a\nb", &"x".repeat(64)] {
            assert!(matches!(check(name), Err(ProvisionError::Name(_))), "{name:?}");
        }
        check("O'Brien \"x\"").unwrap();
    }

    #[test]
    fn a_role_and_a_database_are_made_once() {
        let Ok(url) = std::env::var("TOLLGATE_TEST_DATABASE") else {
            return;
        };
        let admin = Server::from_url(&url).unwrap();
        // A name that is an attack wherever it is not quoted.
        let name = format!("tg\"';--{}", std::process::id());
        let (role, database) = (format!("{name} r"), format!("{name} d"));
        let mut wanted = Wanted {
            role: &role,
            password: None,
            database: &database,
            schema: "tollgate_host",
        };
        let refused = admin.provision(&wanted).unwrap_err();
        assert!(matches!(refused, ProvisionError::NoPassword(_)), "{refused}");
        wanted.password = Some("s'ecret");
        let made = admin.provision(&wanted).unwrap();
        assert!(
            made.role_made && made.database_made && made.schema_made,
            "{made:?}"
        );
        assert!(!made.url.contains("ecret"), "{made:?}");
        assert!(admin.has_role(&role).unwrap() && !admin.has_role(&database).unwrap());
        wanted.password = None;
        let again = admin.provision(&wanted).unwrap();
        assert!(
            !again.role_made && !again.database_made && !again.schema_made,
            "{again:?}"
        );
        // A host works there.
        let mut server = admin.clone();
        server.config.user(&role).password("s'ecret").dbname(&database);
        let of_host = Database::connect(server).unwrap();
        assert_eq!(of_host.read_session().unwrap().ledger().head().unwrap().seq, 0);
        drop(of_host);
        let wire = session(&admin, Access::Write).unwrap();
        let bounded = first(
            &wire,
            "SELECT current_setting('server_version_num')::int >= 160000",
        )
        .unwrap();
        let may_make = format!(
            "SELECT rolcreaterole FROM pg_roles WHERE rolname = {}",
            literal(&role)
        );
        assert_eq!(first(&wire, &may_make).unwrap(), bounded);
        let stored = format!(
            "SELECT rolpassword FROM pg_authid WHERE rolname = {}",
            literal(&role)
        );
        let stored = first(&wire, &stored).unwrap().unwrap();
        assert!(stored.starts_with("SCRAM-SHA-256$"), "{stored}");
        for sql in [
            format!("DROP DATABASE {} WITH (FORCE)", quoted(&database)),
            format!("DROP ROLE {}", quoted(&role)),
        ] {
            wire.script(&sql, None).unwrap();
        }
    }
}
