//! One round: load, kill, restart, check.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::check::{Checker, Depth};
use crate::host::{self, Host, Recipe};
use crate::known::Shared;
use crate::load;
use crate::place::Place;
use crate::promise::{Broken, Promise};
use crate::sabotage::Sabotage;

/// Duration of a round's load before the kill, in milliseconds.
const LOAD_MS: std::ops::RangeInclusive<u64> = 5..=100;
/// Time from the start of a host to its kill during the start, in milliseconds.
const STARTING_MS: std::ops::RangeInclusive<u64> = 0..=120;
/// Rounds between checks of all data. The other checks cover new data only.
const THOROUGH: u32 = 10;

/// Hosts on one data directory, and the knowledge about them.
pub(crate) struct Torture {
    recipe: Recipe,
    hosts: Vec<Host>,
    shared: Arc<Shared>,
    checker: Checker,
    random: Rng,
    killed: u64,
}

impl Torture {
    /// Starts the hosts in a new place.
    pub(crate) fn start(server: &Path, place: Place, hosts: u32, seed: u64) -> anyhow::Result<Torture> {
        let recipe = Recipe {
            server: std::path::absolute(server)?,
            place,
        };
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

    /// Runs load, kills some hosts, starts others in their place, and checks.
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
        sabotage.commit(&self.recipe.place)?;
        // A host would put right what others left.
        if sabotage.promise == Promise::Visible {
            host::ask(&self.recipe, &self.shared, Vec::new())?;
        }
        self.checker.check(&self.shared, Depth::Everything)
    }

    fn stop(&mut self) -> anyhow::Result<()> {
        self.hosts.drain(..).try_for_each(Host::stop)
    }

    /// Number of killed hosts, and of checked replies.
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
