//! A PostgreSQL server that the torture harms. Whoever started the server starts it again after each crash.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use fastrand::Rng;
use postgres::{Client, Config, NoTls};
use rustix::process::{Pid, Signal, kill_process};

/// Time for a server to recover from a crash. It first syncs every file, in addition to the other load on the disk.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval between two attempts to reach a server.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Sessions of hosts.
const SESSIONS: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    AND backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY state <> 'active', pid";

/// Roles of the components of a database.
const ROLES: &str = "SELECT quote_ident(rolname) FROM pg_roles, pg_database
    WHERE datname = $1 AND starts_with(rolname, 'tollgate_' || to_hex(pg_database.oid::bigint) || '_')";

/// A database on a server, with a superuser role.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    user: String,
    address: SocketAddr,
    database: String,
    /// Address for hosts, if it differs from the server's.
    by_way_of: Option<SocketAddr>,
}

/// Ways to harm a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// One session is killed with SIGKILL. The server then ends all other sessions and recovers.
    KilledSession,
    /// One session is ended by the server.
    EndedSession,
    /// The server ends all sessions immediately and stops without a checkpoint.
    Immediate,
    /// The server rolls back all transactions and stops.
    Fast,
    /// The server's main process is killed. Its sessions notice this themselves.
    Killed,
}

impl Harm {
    /// All kinds of harm. Likelier ones are listed more than once.
    pub(crate) const ALL: [Harm; 8] = [
        Harm::KilledSession,
        Harm::KilledSession,
        Harm::KilledSession,
        Harm::EndedSession,
        Harm::EndedSession,
        Harm::Immediate,
        Harm::Fast,
        Harm::Killed,
    ];
}

impl Server {
    /// Reads a URL such as `postgres://USER@127.0.0.1:PORT/postgres`.
    pub(crate) fn from_url(url: &str) -> anyhow::Result<Server> {
        let config: Config = url.parse().context("the database's URL is malformed")?;
        let rest = url.split_once('@').context("the URL names no user")?.1;
        let address = rest.split(['/', '?']).next().unwrap_or_default();
        Ok(Server {
            user: config.get_user().context("the URL names no user")?.to_owned(),
            address: address.parse().context("the server has to be at IP:PORT")?,
            database: config.get_dbname().unwrap_or("postgres").to_owned(),
            by_way_of: None,
        })
    }

    /// Address of the server itself.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same server for hosts that use another address.
    pub(crate) fn by_way_of(self, address: SocketAddr) -> Server {
        Server {
            by_way_of: Some(address),
            ..self
        }
    }

    /// URL for hosts.
    pub(crate) fn url(&self) -> String {
        let address = self.by_way_of.unwrap_or(self.address);
        format!("postgres://{}@{address}/{}", self.user, self.database)
    }

    /// Connects to the database, past the proxy.
    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        let mut config = Config::new();
        config
            .host(&self.address.ip().to_string())
            .port(self.address.port())
            .user(&self.user)
            .dbname(&self.database)
            .application_name("torture")
            .connect_timeout(Duration::from_secs(10));
        let client = config.connect(NoTls);
        client.context("the database server cannot be reached")
    }

    /// Makes an empty database.
    pub(crate) fn new_database(&self, name: &str) -> anyhow::Result<Server> {
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        self.connect()?.batch_execute(&sql)?;
        Ok(Server {
            database: name.to_owned(),
            ..self.clone()
        })
    }

    /// Removes a database with the sessions in it, and the roles of its components.
    pub(crate) fn drop_database(&self, name: &str) -> anyhow::Result<()> {
        let mut client = self.connect()?;
        let roles = client.query(ROLES, &[&name])?;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
        for role in roles {
            let role: String = role.get(0);
            client.batch_execute(&format!("DROP ROLE {role}"))?;
        }
        Ok(())
    }

    /// Harms the server. Returns at once, with a session that does not survive it.
    pub(crate) fn harm(&self, harm: Harm, random: &mut Rng) -> anyhow::Result<Option<Client>> {
        let mut client = self.connect()?;
        let is_harmed = match harm {
            Harm::KilledSession | Harm::EndedSession => {
                let sessions: Vec<i32> = client
                    .query(SESSIONS, &[])?
                    .iter()
                    .map(|row| row.get(0))
                    .collect();
                // The first ones are at work, so that they are preferred half of the time.
                let most = match random.bool() {
                    true => sessions.len().min(2),
                    false => sessions.len(),
                };
                let Some(session) = (most > 0).then(|| sessions[random.usize(..most)]) else {
                    return Ok(None);
                };
                if harm == Harm::KilledSession {
                    signal(session, Signal::KILL)?
                } else {
                    client.execute("SELECT pg_terminate_backend($1)", &[&session])?;
                    false
                }
            }
            Harm::Immediate => signal(first_process(&mut client)?, Signal::QUIT)?,
            Harm::Fast => signal(first_process(&mut client)?, Signal::INT)?,
            Harm::Killed => signal(first_process(&mut client)?, Signal::KILL)?,
        };
        Ok(is_harmed.then_some(client))
    }

    /// Waits until the server has ended a session and accepts connections again.
    pub(crate) fn wait(&self, session: Option<Client>) -> anyhow::Result<()> {
        let until = Instant::now() + RECOVERY_TIMEOUT;
        if let Some(mut session) = session {
            while session.simple_query("SELECT 1").is_ok() {
                ensure!(Instant::now() < until, "the database server was not harmed");
                std::thread::sleep(LOOK_INTERVAL);
            }
        }
        loop {
            let asked = self.connect().and_then(|mut client| {
                let counted = client.query_one("SELECT count(*) FROM pg_class", &[])?;
                Ok(counted.get::<_, i64>(0))
            });
            match asked {
                Ok(_) => return Ok(()),
                Err(err) if Instant::now() > until => {
                    return Err(err.context("the database server is not back"));
                }
                Err(_) => std::thread::sleep(LOOK_INTERVAL),
            }
        }
    }
}

/// Main process of the server.
fn first_process(client: &mut Client) -> anyhow::Result<i32> {
    let file: String = client
        .query_one("SELECT pg_read_file('postmaster.pid')", &[])?
        .get(0);
    let number = file.lines().next().unwrap_or_default().trim();
    number.parse().context("the server names no process")
}

/// Signals a process. Returns false if it has already ended.
fn signal(process: i32, signal: Signal) -> anyhow::Result<bool> {
    let pid = Pid::from_raw(process).context("the server names no process")?;
    match kill_process(pid, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(err) => Err(err).context("the server may not be harmed by this user"),
    }
}
