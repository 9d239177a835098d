//! Address of a PostgreSQL database, and the reasons for which a database is refused.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tollgate_core::hash::hex;
use tollgate_sql::MAX_NAME;

use super::roles::{Roles, Wall};
use super::settings::{IDLE_TIMEOUT_MS, IDLE_TIMEOUT_OF_NOBODY_MS, LOCK_TIMEOUT_MS};
use super::tls::{MaybeTls, Tls};
use crate::storage::engine::steps::CORE_NAME;
use crate::storage::error::StoreFailure;

/// Time limit for a connection, for each address of a name.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of keepalive probes after [`CONNECT_TIMEOUT`] of silence, and the number of unanswered ones after which
/// the connection is lost.
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
pub(super) const KEEPALIVE_RETRIES: u32 = 3;
/// Default lease of a host.
const DEFAULT_LEASE: Duration = Duration::from_secs(15);
/// Most letters of a connection name from the URL. The host's id follows it, and the server keeps 63 bytes.
const MAX_OWN_NAME: usize = 24;
/// Schema of the host's own tables.
pub(super) const SCHEMA: &str = "tollgate_host";
/// Schema of the functions for statements of components, which every role may use.
pub(super) const OF_FUNCTIONS: &str = "tollgate";
/// Accepted URL schemes. The library parses anything else as key-value pairs, and prints unknown ones.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Reason for which a PostgreSQL database is not used. Each message has a remedy.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The URL is malformed.
    #[error("the database URL is malformed: {0}; write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Url(String),
    /// The URL requests TLS without verification.
    #[error("sslmode is {0}; use verify-full, or disable for a server on this machine")]
    SslMode(String),
    /// A remote server without TLS.
    #[error(
        "{0} is not on this machine and sslmode is disable, so anyone on the network path can read the stored data; \
         use sslmode=verify-full"
    )]
    Insecure(String),
    /// The trusted certificates cannot be read.
    #[error("cannot use the certificates of {0}: {1}")]
    Certificates(String, String),
    /// No connection could be made.
    #[error(
        "{place} cannot be reached or refuses the connection: {reason}; {}",
        remedy(reason)
    )]
    Unreachable {
        /// Address, without the password.
        place: String,
        /// Message of the server or of the system.
        reason: String,
    },
    /// The connection was not made in time.
    #[error("{place} did not answer within {} s; check that the server runs and can be reached", CONNECT_TIMEOUT.as_secs())]
    Silent {
        /// Address.
        place: String,
    },
    /// The server's version is too old.
    #[error(
        "the server is PostgreSQL {found}, but at least {} is needed; upgrade the server",
        super::settings::LEAST_VERSION
    )]
    TooOld {
        /// Major version of the server.
        found: i64,
    },
    /// The server is read-only.
    #[error(
        "the server is read-only: it is a standby, or its transactions are read-only by default; give the URL of the \
         primary"
    )]
    ReadOnly,
    /// A crash of the server may lose committed rows.
    #[error(
        "{0} is off on the server, so a crash loses or damages committed rows; turn it on in postgresql.conf"
    )]
    NotDurable(&'static str),
    /// The database has another encoding.
    #[error("the encoding of the database is {0}; create it with ENCODING 'UTF8' TEMPLATE template0")]
    Encoding(String),
    /// Triggers do not run in sessions of the role.
    #[error("session_replication_role is {0}, so triggers do not run; reset it for the role of the URL")]
    TriggersOff(String),
    /// The server does not run the triggers, or runs other ones.
    #[error(
        "the server accepted an out-of-order ledger row, so its triggers do not work; use PostgreSQL itself"
    )]
    NoTriggers,
    /// Advisory locks have no effect on the server.
    #[error(
        "advisory locks have no effect on this server, so calls would not run one after another; connect to PostgreSQL \
         directly, not through a pooler"
    )]
    NoLocks,
    /// The server has too few free connections.
    #[error(
        "the server has {free} connections left, but a host needs {needed}; raise max_connections, or the limit of the \
         role or database"
    )]
    TooFewConnections {
        /// Number of free connections.
        free: i64,
        /// Number of connections that a host needs.
        needed: i64,
    },
    /// A component has no usable role, although roles are required.
    #[error("the role {role} of a component {why}; {remedy}")]
    NoRole {
        /// Name of the role.
        role: String,
        /// Fault of the role.
        why: &'static str,
        /// Remedy.
        remedy: &'static str,
    },
    /// The tables cannot be created or migrated.
    #[error(
        "the role of the URL may not create {0}; grant it CREATE on the database, or create the schema with that role as owner"
    )]
    MayNotCreate(String),
}

/// Remedy for a failed connection.
fn remedy(reason: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if says(&["SQLSTATE 3D000"]) {
        "check the database's name in the URL, or create the database: tollgate storage init"
    } else if says(&["SQLSTATE 28P01", "SQLSTATE 28000"]) {
        "check the role and password in the URL, and which connections pg_hba.conf of the server allows"
    } else if says(&["does not support TLS"]) {
        "a server on another machine requires TLS: turn it on there (ssl = on), and name its certificate with \
         sslrootcert"
    } else {
        "check that the server runs, and check the address, role and password in the URL"
    }
}

impl ServerError {
    /// Kind of the failure.
    pub(in crate::storage) fn kind(&self) -> StoreFailure {
        match self {
            ServerError::Unreachable { .. } | ServerError::Silent { .. } => StoreFailure::Lost,
            ServerError::ReadOnly => StoreFailure::NotWritable,
            ServerError::TooFewConnections { .. } => StoreFailure::Busy,
            _ => StoreFailure::Other,
        }
    }
}

/// Default number of concurrent writing calls on one host. A server's default limit of 100 connections then has room
/// for two hosts.
const DEFAULT_LANES: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Address and settings of a PostgreSQL database.
#[derive(Clone)]
pub struct Server {
    pub(super) config: Config,
    pub(super) tls: MaybeTls,
    pub(super) schema: String,
    /// TLS parameters of the URL, as written in it.
    pub(super) tls_parameters: Vec<String>,
    /// Host of this process, once it has joined.
    pub(super) served: Arc<OnceLock<Served>>,
    pub(super) roles: Roles,
    /// Number of concurrent writing calls on one host.
    pub(in crate::storage) lanes: NonZeroUsize,
    pub(super) wall: Arc<Wall>,
}

/// Separator in connection names, between the name from the URL and the host's id.
pub(in crate::storage) fn mark_of_hosts(schema: &str) -> String {
    if schema == SCHEMA {
        return " ".to_owned();
    }
    // Identifies another set of hosts in the same database.
    format!(" {}/", &hex(&Sha256::digest(schema))[..8])
}

/// Host data that sessions need.
pub(super) struct Served {
    /// Id of the host. Its write transactions fail after others declared it dead.
    pub(super) host: String,
    /// Hash of its data directory.
    pub(super) place: String,
    /// Longest lease of any host, in milliseconds.
    longest_lease_ms: AtomicI64,
}

impl Server {
    /// The same address for sessions before a host has joined.
    pub(crate) fn of_nobody(self) -> Server {
        Server {
            served: Arc::default(),
            ..self
        }
    }

    /// Sets the host of the sessions.
    pub(in crate::storage) fn serve(&self, host: &str, place: &str, lease: Duration) {
        let _ = self.served.set(Served {
            host: host.to_owned(),
            place: place.to_owned(),
            longest_lease_ms: AtomicI64::new(
                i64::try_from(lease.max(DEFAULT_LEASE).as_millis()).unwrap_or(i64::MAX),
            ),
        });
    }

    /// Settings of a new connection. Its name on the server ends with the host's id.
    pub(super) fn to_connect(&self) -> Config {
        let mut config = self.config.clone();
        if let (Some(name), Some(served)) = (self.config.get_application_name(), self.served.get()) {
            let shown: String = name
                .chars()
                .filter(char::is_ascii_graphic)
                .take(MAX_OWN_NAME)
                .collect();
            config.application_name(format!("{shown}{}{}", mark_of_hosts(&self.schema), served.host));
        }
        config
    }

    /// Time that a session waits for a lock, in milliseconds. A host that hangs keeps its locks for its lease, and
    /// until another host notices.
    pub(super) fn lock_timeout_ms(&self) -> u128 {
        let lease = self
            .served
            .get()
            .map_or(0, |served| served.longest_lease_ms.load(Ordering::Relaxed));
        u128::from(lease.unsigned_abs()).saturating_add(LOCK_TIMEOUT_MS)
    }

    /// Time after which the server ends an idle transaction, in milliseconds. Hosts that hang are noticed by other
    /// hosts. This limit covers programs that are not hosts, or have not joined yet.
    pub(super) fn idle_timeout_ms(&self) -> u128 {
        match self.served.get() {
            Some(_) => IDLE_TIMEOUT_MS,
            None => IDLE_TIMEOUT_OF_NOBODY_MS,
        }
    }

    /// Records the longest lease of all hosts.
    pub(in crate::storage) fn note_lease(&self, lease_ms: i64) {
        if let Some(served) = self.served.get() {
            served.longest_lease_ms.fetch_max(lease_ms, Ordering::Relaxed);
        }
    }

    /// Parses a URL. For `sslmode`, only `verify-full` and `disable` are supported. The default for remote servers is
    /// `verify-full`. `sslrootcert` names a PEM file of certificates to trust instead of the system's, and `schema`
    /// the schema of the host's tables.
    pub fn from_url(url: &str) -> Result<Server, ServerError> {
        check_form(url)?;
        let (url, own) = split(url)?;
        let mut config = Config::from_str(&url).map_err(|err| {
            let reason = std::error::Error::source(&err).map_or_else(|| err.to_string(), ToString::to_string);
            ServerError::Url(reason)
        })?;
        if config.get_hosts().is_empty() {
            return Err(ServerError::Url("it does not name a host".to_owned()));
        }
        if own.schema.as_deref() == Some(OF_FUNCTIONS) {
            let taken = format!("the schema {OF_FUNCTIONS} is the one for functions of components");
            return Err(ServerError::Url(taken));
        }
        if let Some(schema) = own.schema.as_deref().filter(|schema| !is_plain(schema)) {
            let name = format!(
                "schema is {schema}; it must be 1 to 30 letters, digits and _ and must not begin with pg_"
            );
            return Err(ServerError::Url(name));
        }
        config.connect_timeout(CONNECT_TIMEOUT);
        config.tcp_user_timeout(CONNECT_TIMEOUT);
        config.keepalives_idle(CONNECT_TIMEOUT);
        config.keepalives_interval(KEEPALIVE_INTERVAL);
        config.keepalives_retries(KEEPALIVE_RETRIES);
        if config.get_hosts().len() > 1 {
            // Only the primary, at any of the addresses.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if config.get_application_name().is_none() {
            config.application_name("tollgate");
        }
        let far_address = config
            .get_hostaddrs()
            .iter()
            .find(|address| !address.is_loopback());
        let elsewhere = config
            .get_hosts()
            .iter()
            .find(|host| !is_here(host))
            .map(name)
            .or_else(|| far_address.map(ToString::to_string));
        let is_secured = match (own.ssl_mode.as_deref(), elsewhere) {
            (Some("verify-full"), _) | (None, Some(_)) => true,
            // A URL that names certificates must use TLS.
            (None, None) => own.root_cert.is_some(),
            (Some("disable"), None) => false,
            (Some("disable"), Some(host)) => return Err(ServerError::Insecure(host)),
            (Some(other), _) => return Err(ServerError::SslMode(other.to_owned())),
        };
        config.ssl_mode(match is_secured {
            true => SslMode::Require,
            false => SslMode::Disable,
        });
        let tls = is_secured.then(|| trusted(own.root_cert)).transpose()?;
        Ok(Server {
            config,
            tls: MaybeTls(tls),
            schema: own.schema.unwrap_or_else(|| SCHEMA.to_owned()),
            tls_parameters: own.tls_parameters,
            served: Arc::default(),
            roles: Roles::default(),
            lanes: DEFAULT_LANES,
            wall: Arc::default(),
        })
    }
}

impl Server {
    /// The database with this many concurrent writing calls on a host. `None` means the default, four.
    #[must_use]
    pub fn with_lanes(self, lanes: Option<NonZeroUsize>) -> Server {
        Server {
            lanes: lanes.unwrap_or(DEFAULT_LANES),
            ..self
        }
    }

    /// Schema of an owner's tables: the host's own, or a separate one for each component.
    pub(in crate::storage) fn schema_of(&self, owner: &str) -> String {
        if owner == CORE_NAME {
            return self.schema.clone();
        }
        let name = format!("{}/{owner}", self.schema);
        if name.len() <= MAX_NAME {
            return name;
        }
        // The server would truncate the name, so that two names could become equal.
        let hash = hex(&Sha256::digest(&name));
        format!(
            "{}/{}",
            self.schema.get(..MAX_NAME / 2).unwrap_or("tollgate"),
            &hash[..24]
        )
    }
}

/// Refuses a URL in which the library would find the password in another place than the author. The message shows no
/// part of it.
fn check_form(url: &str) -> Result<(), ServerError> {
    let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
    let Some(rest) = rest else {
        let expected = format!("it does not begin with {}", SCHEMES[0]);
        return Err(ServerError::Url(expected));
    };
    let (authority, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.matches('@').count() > 1 || after.contains('@') {
        let escape = "a name or password contains @, / or ?; write them as %40, %2F and %3F";
        return Err(ServerError::Url(escape.to_owned()));
    }
    Ok(())
}

/// Parameters of a URL that only this host understands.
#[derive(Default)]
struct Own {
    ssl_mode: Option<String>,
    root_cert: Option<PathBuf>,
    schema: Option<String>,
    tls_parameters: Vec<String>,
}

/// Splits off the parameters of a URL that the library does not understand.
fn split(url: &str) -> Result<(String, Own), ServerError> {
    let Some((start, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), Own::default()));
    };
    let mut own = Own::default();
    let mut rest = Vec::new();
    for pair in query.split('&') {
        if pair.starts_with("ssl") {
            own.tls_parameters.push(pair.to_owned());
        }
        match pair.split_once('=') {
            Some(("sslmode", mode)) => own.ssl_mode = Some(decoded(mode)?),
            Some(("sslrootcert", path)) => own.root_cert = Some(decoded(path)?.into()),
            Some(("schema", schema)) => own.schema = Some(decoded(schema)?),
            _ => rest.push(pair),
        }
    }
    let mut url = start.to_owned();
    if !rest.is_empty() {
        url.push('?');
        url.push_str(&rest.join("&"));
    }
    Ok((url, own))
}

/// Percent-decoded value from a URL.
fn decoded(value: &str) -> Result<String, ServerError> {
    let malformed =
        || ServerError::Url("a % is not followed by two hexadecimal digits that encode UTF-8".to_owned());
    let mut bytes = Vec::with_capacity(value.len());
    let mut parts = value.split('%');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let (number, rest) = part.split_at_checked(2).ok_or_else(malformed)?;
        bytes.push(u8::from_str_radix(number, 16).map_err(|_| malformed())?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).map_err(|_| malformed())
}

#[allow(clippy::disallowed_methods, reason = "the path is the operator's")]
fn trusted(root_cert: Option<PathBuf>) -> Result<Tls, ServerError> {
    let Some(path) = root_cert else {
        return Tls::new(None)
            .map_err(|err| ServerError::Certificates("the system".to_owned(), err.to_string()));
    };
    let failed = |reason: String| ServerError::Certificates(path.display().to_string(), reason);
    let pem = std::fs::read(&path).map_err(|err| failed(err.to_string()))?;
    Tls::new(Some(&pem)).map_err(|err| failed(err.to_string()))
}

/// True for a valid name of a host's schema. Names of components' schemas begin with it.
fn is_plain(schema: &str) -> bool {
    // The server reserves names with this prefix.
    !schema.starts_with("pg_")
        && (1..=30).contains(&schema.len())
        && schema
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// True if the server is on this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

fn name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(at, host)| {
            let port = ports.get(at).or(ports.first());
            port.map_or_else(|| name(host), |port| format!("{}:{port}", name(host)))
        });
        let hosts: Vec<String> = hosts.collect();
        let database = self.config.get_dbname().unwrap_or_default();
        write!(f, "postgres://{}/{database}", hosts.join(","))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self}, {})", self.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<(SslMode, String), String> {
        let server = Server::from_url(url).map_err(|err| err.to_string())?;
        Ok((server.config.get_ssl_mode(), server.to_string()))
    }

    #[test]
    fn a_server_elsewhere_is_reached_by_tls_alone() {
        let here = Ok((SslMode::Disable, "postgres://localhost:5432/t".to_owned()));
        assert_eq!(read("postgres://ada:secret@localhost/t"), here);
        assert_eq!(
            read("postgres://ada@localhost/t?sslmode=disable&connect_timeout=3"),
            here
        );
        for socket in ["postgres:///t?host=/run/pg&user=ada", "postgres://%2Frun%2Fpg/t"] {
            assert_eq!(read(socket).unwrap().0, SslMode::Disable, "{socket}");
        }
        for url in [
            "postgres://ada:pw@localhost/t?hostaddr=10.0.0.5",
            "postgres://ada@db.example/t",
            "postgres://ada@127.0.0.1,10.0.0.1/t?sslmode=verify-full",
        ] {
            assert_eq!(read(url).unwrap().0, SslMode::Require, "{url}");
        }
        for (url, says) in [
            (
                "postgres://ada@db.example/t?sslmode=disable",
                "db.example is not on this machine",
            ),
            (
                "postgres://ada@localhost,db.example/t?sslmode=disable",
                "db.example is not",
            ),
            (
                "postgres://ada@db.example/t?sslmode=require",
                "sslmode is require; use verify-full",
            ),
            ("postgres://ada@localhost/t?sslmode=prefer", "sslmode is prefer"),
            (
                "postgres://ada@db.example/t?sslrootcert=/nowhere/ca.pem",
                "the certificates of /nowhere/ca.pem",
            ),
            (
                "postgres://ada@localhost/t?colour=red",
                "the database URL is malformed",
            ),
            ("postgres:///t", "it does not name a host"),
            ("mysql://localhost", "the database URL is malformed"),
            (
                "postgres://ada:pw@localhost/t?hostaddr=10.0.0.5&sslmode=disable",
                "10.0.0.5 is not on this machine",
            ),
            (
                "postgres:///t?user=ada&hostaddr=127.0.0.1",
                "it does not name a host",
            ),
            (
                "postgres://localhost/t?schema=tollgate",
                "the schema tollgate is the one for functions",
            ),
            ("postgres://localhost/t?schema=a/b", "schema is a/b; it must be"),
            (
                "postgres://localhost/t?schema=pg_catalog",
                "schema is pg_catalog; it must be",
            ),
            ("postgres://localhost/t?schema=", "schema is ; it must be"),
            (
                "postgres://localhost/t?schema=%61%2Fb",
                "schema is a/b; it must be",
            ),
            (
                "postgres://localhost/t?schema=%6",
                "a % is not followed by two hexadecimal digits",
            ),
            (
                "postgres://localhost/t?schema=%FF",
                "a % is not followed by two hexadecimal digits",
            ),
            (
                "postgres://ada@db.example/t?sslrootcert=%2Fnowhere%2Fa%20ca.pem",
                "the certificates of /nowhere/a ca.pem",
            ),
        ] {
            let refused = read(url).unwrap_err();
            assert!(refused.contains(says), "{url}: {refused}");
        }
    }

    #[test]
    fn each_owner_has_a_schema_that_no_other_has() {
        let server = Server::from_url("postgres://localhost/t?schema=a").unwrap();
        assert_eq!(server.schema_of("core"), "a");
        assert_eq!(server.schema_of("task-store"), "a/task-store");
        let long = ["x".repeat(80), format!("{}y", "x".repeat(79))].map(|name| server.schema_of(&name));
        assert!(
            long[0] != long[1] && long.iter().all(|name| name.len() <= MAX_NAME),
            "{long:?}"
        );
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        let server = Server::from_url("postgres://ada:secret@localhost:5433/t?schema=other").unwrap();
        assert_eq!(
            format!("{server:?}"),
            "Server(postgres://localhost:5433/t, other)"
        );
        for url in [
            "Postgres://ada:secret@db/t?connect_timeout=3",
            "pgsql://ada:secret@db/t",
            "postgres://ada:@secret@db/t",
            "postgres://ada:/secret@db/t",
            "postgres://ada:?secret@db/t",
            "postgres://localhost/t?password=@secret",
            "postgres://localhost/t?user=ada:secret@db",
        ] {
            let refused = Server::from_url(url).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{url}: {refused}");
        }
    }
}
