//! One round: load, kill, restart, check.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;

use crate::check::{Checker, Depth};
use crate::host::{Host, Recipe};
use crate::known::Shared;
use crate::promise::Broken;
use crate::sabotage::Sabotage;

/// Every row is looked for again, so none may be pruned meanwhile.
const KEEP_ALL: &str = "[ledger]\nretention_envelopes = 1000000\n";

/// How long a round's load runs before the kill, in milliseconds.
const LOAD_MS: std::ops::RangeInclusive<u64> = 5..=100;
/// When a host is killed that is still starting, in milliseconds after its start.
const STARTING_MS: std::ops::RangeInclusive<u64> = 0..=120;
/// After so many rounds everything is checked, not only what is new.
const THOROUGH: u32 = 10;

/// Hosts on one data directory, and what is known about them.
pub(crate) struct Torture {
    recipe: Recipe,
    hosts: Vec<Host>,
    shared: Arc<Shared>,
    checker: Checker,
    random: Rng,
    killed: u64,
}

impl Torture {
    /// Starts the hosts on a directory that is empty.
    pub(crate) fn start(server: &Path, dir: &Path, hosts: u32, seed: u64) -> anyhow::Result<Torture> {
        let recipe = Recipe {
            server: std::path::absolute(server)?,
            data_dir: dir.join("data"),
            config: dir.join("tollgate.toml"),
        };
        #[allow(clippy::disallowed_methods, reason = "the torture's own directory")]
        std::fs::write(&recipe.config, KEEP_ALL).context("the directory cannot be used")?;
        let mut torture = Torture {
            checker: Checker::new(recipe.clone()),
            recipe,
            hosts: Vec::new(),
            shared: Arc::default(),
            random: Rng::with_seed(seed),
            killed: 0,
        };
        for _ in 0..hosts {
            torture.join()?;
        }
        Ok(torture)
    }

    /// Lets load run, kills some hosts, starts others in their place, and checks.
    pub(crate) fn round(&mut self, number: u32) -> anyhow::Result<Vec<Broken>> {
        std::thread::sleep(Duration::from_millis(self.random.u64(LOAD_MS)));
        let victims = self.random.usize(1..=self.hosts.len());
        for _ in 0..victims {
            let host = self.hosts.swap_remove(self.random.usize(..self.hosts.len()));
            host.kill()?;
            self.killed += 1;
        }
        if self.random.u8(..4) == 0 {
            self.kill_while_starting()?;
        }
        for _ in 0..victims {
            self.join()?;
        }
        let depth = if number.is_multiple_of(THOROUGH) {
            Depth::Everything
        } else {
            Depth::Quick
        };
        self.checker.check(&self.shared, depth)
    }

    /// Lets all hosts end by themselves, starts one more, and checks everything that was ever promised.
    pub(crate) fn finish(&mut self) -> anyhow::Result<Vec<Broken>> {
        for host in self.hosts.drain(..) {
            host.stop()?;
        }
        self.join()?;
        self.checker.check(&self.shared, Depth::Everything)
    }

    /// Lets all hosts end, does something to the database, and checks everything.
    pub(crate) fn finish_after(&mut self, sabotage: &Sabotage) -> anyhow::Result<Vec<Broken>> {
        for host in self.hosts.drain(..) {
            host.stop()?;
        }
        sabotage.commit(&self.recipe.data_dir.join("tollgate.db"))?;
        self.checker.check(&self.shared, Depth::Everything)
    }

    /// Hosts that were killed, and replies that were checked.
    pub(crate) fn tally(&self) -> (u64, usize) {
        (self.killed, self.checker.checked())
    }

    fn join(&mut self) -> anyhow::Result<()> {
        let host = Host::start(&self.recipe, &self.shared, self.random.fork())?;
        self.hosts.push(host);
        Ok(())
    }

    fn kill_while_starting(&mut self) -> anyhow::Result<()> {
        let mut starting = self.recipe.spawn()?;
        std::thread::sleep(Duration::from_millis(self.random.u64(STARTING_MS)));
        starting.kill()?;
        starting.wait()?;
        self.killed += 1;
        Ok(())
    }
}
