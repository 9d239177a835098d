//! `cargo xtask cluster`: hosts behind a load balancer, killed and restarted under load.

mod agent;
mod http;
mod ledger;
mod load;
mod machine;

use std::io::Read as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::components::{self, Profile};
use crate::postgres::{self, server::Server};
use crate::run::say;

use agent::Agent;
use ledger::Ledger;
use load::{Account, Death, Load};
use machine::{Balancer, Common, Machine, until};

/// Variable with which a CI without HAProxy may skip this test.
const WITHOUT: &str = "TOLLGATE_WITHOUT_HAPROXY";
/// Number of concurrent agents.
const AGENTS: usize = 6;
/// Answers of a host after its start before it is killed or stopped, so that it is under load.
const ANSWERS: usize = 25;
/// Number of changes that the second envelope allows.
const LIMIT: usize = 60;
/// Number of requests in a session of an older protocol version.
const REQUESTS: u32 = 10;

/// Flags of `cargo xtask cluster`.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// Engine of the database; both by default
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Number of times that each host is killed, and then restarted
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Use this program instead of building one
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Create the folder with data, configurations and logs here, and keep it
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Place of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// A file in one data directory that both hosts have
    Sqlite,
    /// A server; each host has a data directory of its own
    Postgres,
}

impl Cluster {
    /// Runs the test, and returns its summary.
    pub(crate) fn all(&self) -> anyhow::Result<String> {
        let balancer = Balancer::version()?;
        let tollgate = match &self.server {
            Some(server) => server.canonicalize().context("the program does not exist")?,
            None => components::build_host(Profile::Dev)?,
        };
        let engines = match self.engine {
            Some(engine) => vec![engine],
            None => vec![Engine::Sqlite, Engine::Postgres],
        };
        let mut came_to = vec![balancer];
        for engine in engines {
            let told = self.on(engine, &tollgate)?;
            say(&told);
            came_to.push(told);
        }
        Ok(came_to.join("; "))
    }

    /// Runs the test in CI. Without HAProxy it fails, unless the environment permits skipping it.
    pub(crate) fn in_ci() -> anyhow::Result<String> {
        if let Err(err) = Balancer::version()
            && std::env::var_os(WITHOUT).is_some()
        {
            let why = format!("left out: {err:#}, and {WITHOUT} is set");
            say(&format!("hosts behind a balancer are {why}"));
            return Ok(why);
        }
        let engine = match postgres::newest() {
            Err(err) if postgres::may_be_left_out() => {
                say(&format!(
                    "hosts behind a balancer are tested only on SQLite: {err:#}"
                ));
                Some(Engine::Sqlite)
            }
            _ => None,
        };
        let cluster = Cluster {
            engine,
            rounds: 2,
            server: None,
            keep: None,
        };
        cluster.all()
    }

    fn on(&self, engine: Engine, tollgate: &Path) -> anyhow::Result<String> {
        let folder = Folder::new(self.keep.as_deref())?;
        let (server, name) = match engine {
            Engine::Sqlite => (None, "SQLite".to_owned()),
            Engine::Postgres => {
                let newest = postgres::newest()?;
                (Some(Server::start(&newest)?), postgres::version(&newest)?)
            }
        };
        say(&format!("== two hosts on {name}, behind HAProxy"));
        let token = token()?;
        let token_file = folder.path.join("tokens");
        private(&token_file, &format!("agent {token}\n"))?;
        let common = Common {
            tollgate: tollgate.to_owned(),
            token_file,
            database: server.as_ref().map(Server::url),
        };
        let data = |name: &str| match engine {
            Engine::Sqlite => folder.path.join("data"),
            Engine::Postgres => folder.path.join(format!("data-{name}")),
        };
        let machine = |name| Machine::new(&common, name, &folder.path, data(name));
        let mut machines = [machine("one")?, machine("two")?];
        for machine in &mut machines {
            machine.start()?;
        }
        let balancer = Balancer::start(&folder.path, &machines)?;
        let agent = Agent::new(balancer.address, &token);
        let played = self.play(&agent, &mut machines);
        let played = played.with_context(|| {
            let said = [machines[0].said(), machines[1].said(), balancer.said()];
            format!(
                "on {name}\nhost one: {}\nhost two: {}\nHAProxy: {}",
                said[0], said[1], said[2]
            )
        })?;
        Ok(format!("{name}: {played}"))
    }

    /// Kills, restarts and stops the hosts under load, and compares the ledger with the replies that agents got.
    fn play(&self, agent: &Agent, machines: &mut [Machine; 2]) -> anyhow::Result<String> {
        stay(agent, machines)?;
        let mut told = Vec::new();

        let envelope = opened(agent, 1_000_000)?;
        let killed = under_load(agent, &envelope, |load| self.kill_each(load, machines))?;
        killed.check()?;
        told.push(format!(
            "{} kills, {} calls acknowledged and {} lost with their host",
            killed.deaths.len(),
            killed.acknowledged.len(),
            killed.unanswered.len()
        ));
        say(&told[0]);

        let restarted = under_load(agent, &envelope, |load| self.restart_each(load, machines))?;
        restarted.check()?;
        told.push(format!(
            "{} restarts, {} calls acknowledged and none lost",
            self.rounds * machines.len(),
            restarted.acknowledged.len()
        ));
        say(&told[1]);

        let limited = opened(agent, LIMIT)?;
        let exhausted = exhaust(agent, &limited, &mut machines[0])?;
        exhausted.check()?;
        let counted = [mutations(agent, &envelope)?, mutations(agent, &limited)?];

        for machine in machines.iter_mut() {
            machine.stop()?;
        }
        let mut rows = 0;
        for machine in machines.iter() {
            let ledger = Ledger::of(machine)?;
            let mut there = 0;
            for account in [&killed, &restarted, &exhausted] {
                there += ledger.check(account)?;
            }
            say(&format!(
                "host {}: the ledger is verified, and has {there} of the lost calls",
                machine.name
            ));
            let changed = [ledger.changes(&envelope), ledger.changes(&limited)];
            ensure!(
                changed == counted && changed[1] == LIMIT,
                "the ledger has {changed:?} changes, the envelopes count {counted:?}, and the second allows {LIMIT}"
            );
            rows = ledger.len();
        }
        let slowest = killed.slowest.max(restarted.slowest);
        told.push(format!(
            "{} of {LIMIT} allowed changes made during a kill",
            counted[1]
        ));
        told.push(format!(
            "{rows} rows verified from both hosts, slowest call {:.1} s",
            slowest.as_secs_f32()
        ));
        Ok(told.join(", "))
    }

    /// Kills the hosts in turn under load, and starts them again.
    fn kill_each(&self, load: &Load<'_>, machines: &mut [Machine; 2]) -> anyhow::Result<Vec<Death>> {
        let mut deaths = Vec::new();
        for _ in 0..self.rounds {
            for machine in machines.iter_mut() {
                working(load, machine)?;
                deaths.push(kill(machine)?);
                machine.start()?;
                working(load, machine)?;
            }
        }
        Ok(deaths)
    }

    /// Stops the hosts in turn under load, and starts them again. No call may be lost.
    fn restart_each(&self, load: &Load<'_>, machines: &mut [Machine; 2]) -> anyhow::Result<Vec<Death>> {
        for _ in 0..self.rounds {
            for machine in machines.iter_mut() {
                working(load, machine)?;
                machine.stop()?;
                machine.start()?;
                working(load, machine)?;
            }
        }
        Ok(Vec::new())
    }
}

/// Checks that sessions of older protocol versions stay on their host, and end with it.
fn stay(agent: &Agent, machines: &mut [Machine; 2]) -> anyhow::Result<()> {
    let sessions = [agent.session()?, agent.session()?];
    for session in &sessions {
        agent.list_in(session, REQUESTS)?;
    }
    let [session, other] = &sessions;
    let machine = machines.iter_mut().find(|machine| machine.name == session.host);
    let machine = machine.context("a session at a host that does not exist")?;
    kill(machine)?;
    agent.is_over(session)?;
    machine.start()?;
    let hosts = [&session.host, &other.host].map(String::as_str);
    say(&format!(
        "sessions of older revisions stayed at hosts {}",
        hosts.join(" and ")
    ));
    Ok(())
}

fn kill(machine: &mut Machine) -> anyhow::Result<Death> {
    let (since, until) = machine.kill()?;
    Ok(Death {
        host: machine.name,
        since,
        until,
    })
}

/// Waits until a host has answered some new calls, which means that the balancer uses it.
fn working(load: &Load<'_>, machine: &Machine) -> anyhow::Result<()> {
    let before = load.answered_by(machine.name);
    until(&format!("host {} works", machine.name), || {
        load.is_over() || load.answered_by(machine.name) >= before + ANSWERS
    })
}

/// Runs a function on the hosts while agents work in an envelope.
fn under_load(
    agent: &Agent,
    envelope: &str,
    act: impl FnOnce(&Load<'_>) -> anyhow::Result<Vec<Death>>,
) -> anyhow::Result<Account> {
    let load = Load::new(agent);
    let deaths = thread::scope(|scope| {
        for _ in 0..AGENTS {
            scope.spawn(|| load.work(envelope));
        }
        let acted = act(&load);
        load.end();
        acted
    });
    Ok(load.into_account(deaths?))
}

/// Uses up an envelope with all agents, and kills a host at the same time.
fn exhaust(agent: &Agent, envelope: &str, machine: &mut Machine) -> anyhow::Result<Account> {
    let load = Load::new(agent);
    let death = thread::scope(|scope| {
        for _ in 0..AGENTS {
            scope.spawn(|| load.exhaust(envelope));
        }
        let killed = until("some of the envelope is used", || {
            load.account().acknowledged.len() >= LIMIT / 3
        })
        .and_then(|()| kill(machine));
        // Agents that have not been refused yet would wait forever.
        if killed.is_err() {
            load.end();
        }
        killed
    })?;
    machine.start()?;
    Ok(load.into_account(vec![death]))
}

/// Opens a detached envelope, which outlives its host.
fn opened(agent: &Agent, changes: usize) -> anyhow::Result<String> {
    let limits = json!({"max_mutations": changes, "max_duration_sec": 3600});
    let opened = agent.ok("envelope_open", &json!({"detached": true, "limits": limits}))?;
    let id = opened["envelope_id"]
        .as_str()
        .context("an envelope without an id")?;
    Ok(id.to_owned())
}

/// Number of changes that an envelope has counted.
fn mutations(agent: &Agent, envelope: &str) -> anyhow::Result<usize> {
    let got = agent.ok("envelope_get", &json!({"envelope_id": envelope}))?;
    let count = got["counters"]["mutation_count"].as_u64();
    Ok(usize::try_from(count.context("an envelope without a count")?)?)
}

/// Generates a token of 64 hexadecimal digits.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn token() -> anyhow::Result<String> {
    let mut random = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Creates a file that only its owner can read.
fn private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create_new(true).write(true).mode(0o600).open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(())
}

/// Folder of a run.
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    fn new(keep: Option<&Path>) -> anyhow::Result<Folder> {
        let name = format!("tollgate-cluster-{}-{:?}", std::process::id(), Instant::now());
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let within = keep.map_or_else(std::env::temp_dir, Path::to_owned);
        let path = within.join(format!("tollgate-cluster-{digits}"));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder {
            path: path.canonicalize()?,
            is_kept: keep.is_some(),
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
