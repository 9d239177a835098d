//! One round: load, harm, restart, check.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fastrand::Rng;
use proxy::Proxy;
use rustix::process::Signal;

use crate::check::{Checker, Depth};
use crate::host::{self, Host, Recipe};
use crate::known::{Outage, Shared};
use crate::load;
use crate::look::Database;
use crate::place::{BEYOND_CALL_WAIT, BEYOND_LEASE, CALL_WAIT_LIMIT, NOTICE_TIMEOUT, Place, SHORT_OUTAGE};
use crate::promise::{Broken, Promise};
use crate::sabotage::Sabotage;
use crate::server::{Harm, Server};
use crate::tally::Tally;

/// Duration of a round's load before the harm, in milliseconds.
const LOAD_MS: std::ops::RangeInclusive<u64> = 5..=100;
/// Factor by which calls on a server take longer than on a file.
const SLOWER: u64 = 4;
/// Time from the start of a host to its kill during the start, in milliseconds.
const STARTING_MS: std::ops::RangeInclusive<u64> = 0..=120;
/// Time for which the network is silent or slow, in milliseconds.
const NETWORK_MS: std::ops::RangeInclusive<u64> = 10..=400;
/// Maximum delay of each piece on a slow network, in milliseconds.
const DELAY_MS: std::ops::RangeInclusive<u64> = 1..=4;
/// Time for which a host is stopped with SIGSTOP, in milliseconds.
const STOPPED_MS: std::ops::RangeInclusive<u64> = 10..=1500;
/// Rows that must exist before a sabotage.
const DATA: [&str; 6] = [
    "SELECT count(*) FROM core_operations WHERE op_type = 'mutation' AND envelope_id IS NOT NULL",
    "SELECT count(*) FROM task_store_events",
    "SELECT count(*) FROM tasks_roots WHERE kind = 'task'",
    "SELECT count(*) FROM convergence_runs WHERE command = 'torture'",
    "SELECT count(*) FROM conductor_logs",
    "SELECT count(*) FROM core_tasks",
];
/// Round with a long outage of a server. It takes as long as many other rounds, and is early enough for short runs.
const LONG_OUTAGE: u32 = 5;
/// Rounds between checks of all data. The other checks cover new data only.
const THOROUGH: u32 = 10;

/// Events of a round.
enum Event {
    /// Some hosts are killed.
    Hosts,
    /// The database's server is harmed.
    Server(Server, Harm),
    /// The network to the database's server fails.
    Network(Fault),
    /// Hosts are restarted one after another, while the others serve.
    Restarts,
    /// A host is stopped with SIGSTOP, and continued later.
    Sleeper,
}

/// Failures of a network.
enum Fault {
    /// All connections are closed.
    Cut,
    /// All data is held back for a while, and then all connections are closed.
    Silence,
    /// All data is held back for a while.
    Pause,
    /// All data is delayed.
    Delay,
    /// The server is unreachable for so long that hosts refuse calls.
    Away,
}

/// Hosts on one database, and what is known about their promises.
pub(crate) struct Torture {
    recipe: Recipe,
    /// Proxy between the hosts and the database's server.
    proxy: Option<Proxy>,
    hosts: Vec<Host>,
    shared: Arc<Shared>,
    checker: Checker,
    random: Rng,
    tally: Tally,
    /// Time by which hosts have noticed that the server is back.
    noticed: Instant,
}

impl Torture {
    /// Starts the hosts in a new place.
    pub(crate) fn start(server: &Path, mut place: Place, hosts: u32, seed: u64) -> anyhow::Result<Torture> {
        let mut proxy = None;
        if let Database::Server(database) = &mut place.database {
            let way = Proxy::to(database.address(), b"")?;
            *database = database.clone().by_way_of(way.address());
            proxy = Some(way);
        }
        let recipe = Recipe {
            server: std::path::absolute(server)?,
            place,
        };
        let mut torture = Torture {
            checker: Checker::new(recipe.clone()),
            recipe,
            proxy,
            hosts: Vec::new(),
            shared: Arc::default(),
            random: Rng::with_seed(seed),
            tally: Tally::default(),
            noticed: Instant::now(),
        };
        let homes = torture.recipe.place.data.clone();
        for home in homes.into_iter().cycle().take(usize::try_from(hosts)?) {
            torture.join(home)?;
        }
        Ok(torture)
    }

    /// Runs load, does harm, replaces the hosts that are gone, and checks.
    pub(crate) fn round(&mut self, number: u32) -> anyhow::Result<Vec<Broken>> {
        self.load();
        match self.event(number) {
            Event::Hosts => self.kill_hosts()?,
            Event::Server(server, harm) => self.harm(&server, harm)?,
            Event::Network(fault) => self.disturb(&fault)?,
            Event::Restarts => self.restart()?,
            Event::Sleeper => self.let_one_sleep()?,
        }
        if !number.is_multiple_of(THOROUGH) {
            return self.checker.check(&self.shared, Depth::Quick);
        }
        host::ask(&self.recipe, &self.shared, Vec::new())?;
        self.checker.check(&self.shared, Depth::Everything)
    }

    /// Lets all hosts exit, requests every acknowledged thing from a new host, and checks.
    pub(crate) fn finish(&mut self) -> anyhow::Result<Vec<Broken>> {
        self.stop()?;
        host::ask(&self.recipe, &self.shared, vec![load::render()])?;
        let mut broken = self.checker.check(&self.shared, Depth::Everything)?;
        broken.extend(self.checker.rendered()?);
        Ok(broken)
    }

    /// Lets all hosts exit, breaks a promise, and checks everything.
    pub(crate) fn finish_after(&mut self, sabotage: &Sabotage) -> anyhow::Result<Vec<Broken>> {
        self.stop()?;
        let broken = self.checker.check(&self.shared, Depth::Everything)?;
        anyhow::ensure!(
            broken.is_empty(),
            "promises were broken before the sabotage: {broken:?}"
        );
        sabotage.commit(&self.recipe.place)?;
        // A running host would repair what others left.
        if sabotage.promise == Promise::Visible {
            host::ask(&self.recipe, &self.shared, Vec::new())?;
        }
        self.checker.check(&self.shared, Depth::Everything)
    }

    fn stop(&mut self) -> anyhow::Result<()> {
        self.hosts.drain(..).try_for_each(Host::stop)
    }

    /// Returns whether there is data of each kind that a sabotage changes.
    pub(crate) fn has_data(&self) -> anyhow::Result<bool> {
        let snapshot = self.recipe.place.database.look()?;
        let missing = DATA.iter().map(|sql| snapshot.count(sql));
        let missing: Vec<i64> = missing.collect::<Result<_, _>>()?;
        Ok(missing.into_iter().all(|rows| rows > 0))
    }

    /// Counters of harm and of checked answers.
    pub(crate) fn tally(&self) -> Tally {
        let known = self.shared.known();
        Tally {
            checked: self.checker.checked(),
            rows: self.checker.rows(),
            unknown: known.unknown,
            unreached: known.unreached,
            ..self.tally
        }
    }

    fn load(&mut self) {
        let times = match self.recipe.place.database {
            Database::File(_) => 1,
            Database::Server(_) => SLOWER,
        };
        std::thread::sleep(Duration::from_millis(times * self.random.u64(LOAD_MS)));
    }

    /// A random event that is possible in this place.
    fn event(&mut self, round: u32) -> Event {
        let Database::Server(server) = &self.recipe.place.database else {
            return Event::Hosts;
        };
        if round == LONG_OUTAGE {
            return Event::Network(Fault::Away);
        }
        match self.random.u8(..10) {
            0..4 => {
                let harm = Harm::ALL[self.random.usize(..Harm::ALL.len())];
                Event::Server(server.clone(), harm)
            }
            4 => Event::Network(Fault::Cut),
            5 => Event::Network(Fault::Silence),
            6 if self.random.bool() => Event::Network(Fault::Pause),
            6 => Event::Network(Fault::Delay),
            7 if self.random.bool() => Event::Restarts,
            7 => Event::Sleeper,
            _ => Event::Hosts,
        }
    }

    fn kill_hosts(&mut self) -> anyhow::Result<()> {
        let homes = self.kill_some()?;
        if self.random.u8(..4) == 0 {
            self.kill_while_starting()?;
        }
        homes.into_iter().try_for_each(|home| self.join(home))
    }

    /// Kills hosts at random, and returns their data directories.
    fn kill_some(&mut self) -> anyhow::Result<Vec<PathBuf>> {
        let victims = self.random.usize(1..=self.hosts.len());
        let mut homes = Vec::new();
        for _ in 0..victims {
            let host = self.hosts.swap_remove(self.random.usize(..self.hosts.len()));
            homes.push(host.data().to_owned());
            host.kill()?;
            self.tally.killed += 1;
        }
        Ok(homes)
    }

    /// Harms the server, and sometimes kills hosts before it is back.
    fn harm(&mut self, server: &Server, harm: Harm) -> anyhow::Result<()> {
        let since = self.begin_outage();
        let session = server.harm(harm, &mut self.random)?;
        self.tally.harms += 1;
        let homes = match self.random.u8(..3) {
            0 => {
                self.load();
                self.kill_some()?
            }
            _ => Vec::new(),
        };
        server.wait(session)?;
        self.end_outage(since)?;
        homes.into_iter().try_for_each(|home| self.join(home))?;
        self.load();
        Ok(())
    }

    fn disturb(&mut self, fault: &Fault) -> anyhow::Result<()> {
        let since = self.begin_outage();
        let time = Duration::from_millis(self.random.u64(NETWORK_MS));
        let delay = Duration::from_millis(self.random.u64(DELAY_MS));
        let proxy = self.proxy.as_ref().context("there is no way to the server")?;
        match fault {
            Fault::Cut => proxy.cut(),
            Fault::Silence => {
                proxy.hold();
                std::thread::sleep(time);
                proxy.cut();
                proxy.release();
            }
            Fault::Pause => {
                proxy.hold();
                std::thread::sleep(time);
                proxy.release();
            }
            Fault::Delay => {
                proxy.delay(delay);
                std::thread::sleep(time);
                proxy.delay(Duration::ZERO);
            }
            Fault::Away => {
                proxy.be_away(true);
                std::thread::sleep(BEYOND_CALL_WAIT);
                proxy.be_away(false);
            }
        }
        self.tally.faults += 1;
        self.end_outage(since)?;
        self.load();
        Ok(())
    }

    /// Restarts each host.
    fn restart(&mut self) -> anyhow::Result<()> {
        for _ in 0..self.hosts.len() {
            let host = self.hosts.remove(0);
            let home = host.data().to_owned();
            host.stop()?;
            self.tally.restarted += 1;
            self.join(home)?;
        }
        Ok(())
    }

    /// Stops a host for a while. If its lease expires, hosts of other data directories close what it left open, and it
    /// must not add to that afterwards. Hosts of the same data directory see that it is alive.
    fn let_one_sleep(&mut self) -> anyhow::Result<()> {
        let at = self.random.usize(..self.hosts.len());
        let is_zombie = self.recipe.place.data.len() > 1 && self.random.bool();
        let time = match is_zombie {
            true => BEYOND_LEASE,
            false => Duration::from_millis(self.random.u64(STOPPED_MS)),
        };
        self.tally.stopped += 1;
        self.hosts[at].signal(Signal::STOP)?;
        // There is no excuse for other hosts, nor for a host that was stopped for less than its lease.
        if is_zombie {
            let _ = self.begin_outage();
            self.tally.zombies += 1;
            self.checker.expect_burial(self.hosts[at].data())?;
        }
        std::thread::sleep(time);
        self.hosts[at].signal(Signal::CONT)?;
        self.load();
        if is_zombie {
            self.noticed = self.noticed.max(Instant::now());
            self.shared.known().outage = Outage::Over(self.noticed);
        }
        Ok(())
    }

    fn begin_outage(&self) -> Instant {
        self.shared.known().outage = Outage::Now;
        Instant::now()
    }

    /// Records that a server is back that was harmed at a time.
    fn end_outage(&mut self, since: Instant) -> anyhow::Result<()> {
        let (now, time) = (Instant::now(), since.elapsed());
        if time > SHORT_OUTAGE {
            // The first host that reconnects may consider the others gone.
            for data in &self.recipe.place.data {
                self.checker.expect_burial(data)?;
            }
        }
        // For a host that commits nothing between two outages, they are a single one.
        let is_long = time > CALL_WAIT_LIMIT || since < self.noticed;
        self.noticed = if is_long { now + NOTICE_TIMEOUT } else { now };
        self.shared.known().outage = Outage::Over(self.noticed);
        Ok(())
    }

    fn join(&mut self, home: PathBuf) -> anyhow::Result<()> {
        let host = Host::start(&self.recipe, &home, &self.shared, self.random.fork())?;
        self.hosts.push(host);
        Ok(())
    }

    fn kill_while_starting(&mut self) -> anyhow::Result<()> {
        let homes = &self.recipe.place.data;
        let mut starting = self.recipe.spawn(&homes[self.random.usize(..homes.len())])?;
        std::thread::sleep(Duration::from_millis(self.random.u64(STARTING_MS)));
        starting.kill()?;
        starting.wait()?;
        self.tally.killed += 1;
        Ok(())
    }
}
