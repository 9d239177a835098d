//! The same store function called natively and through the gate, in one process.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use serde_json::Value;
use tokio::runtime::Runtime;
use tollgate::config::Config;
use tollgate::host::{self, Authority, PackSelection};
use tollgate_gate::{Call, Caller, Gate};
use tollgate_sandbox::process::Environment;
use tollgate_sandbox::workspaces::Workspaces;

use super::{Setup, per_call, requests};
use crate::machine;
use crate::native::Native;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, Sample, take_turns};
use crate::workload::{self, CONFIG_FILE, Kind, Request, Tools};

/// Largest time that the gate may add to a read, in microseconds.
const READ_LIMIT: f64 = 60.0;

/// Measures reads and writes, on all cores and on one.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    compare(setup, report, "all cores")?;
    machine::on_one_core(|| compare(setup, report, "one core"))
}

fn compare(setup: &Setup, report: &mut Report, cores: &str) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let mut native = Native::create(&dir.path().join("native.db"))?;
    let native_tasks = workload::seed(&mut native)?;
    let mut gated = Gated::open(setup, dir.path())?;
    let gated_tasks = workload::seed(&mut gated)?;
    for kind in Kind::ALL {
        let native_requests = requests(kind, &native_tasks, &setup.effort);
        let gated_requests = requests(kind, &gated_tasks, &setup.effort);
        let native_round: Round<'_> = Box::new(|| natively(&native, &native_requests));
        let gated_round: Round<'_> = Box::new(|| gated.round(&gated_requests));
        let [native, gated] = take_turns(setup.effort.rounds, [native_round, gated_round])?;
        record(report, kind, cores, &native, &gated);
    }
    Ok(())
}

fn record(report: &mut Report, kind: Kind, cores: &str, native: &Sample, gated: &Sample) {
    let name = kind.name();
    report.heading(&format!("{name} in one process, one call at a time, {cores}"));
    report.row("native", native, Unit::Microseconds, native);
    report.row("through the gate", gated, Unit::Microseconds, native);
    let more = Quantity(gated.median() - native.median(), Unit::Microseconds);
    report.text(&format!("  the gate adds {more}"));
    report.add(Figure {
        name: format!("{name}, gate, {cores}"),
        value: Quantity(gated.median(), Unit::Microseconds),
        baseline: "native",
        baseline_value: Quantity(native.median(), Unit::Microseconds),
        target: (kind == Kind::Get).then_some(Target::at_most("adds", more, READ_LIMIT)),
    });
}

/// One round of native calls: microseconds for each.
fn natively(native: &Native, requests: &[Request]) -> anyhow::Result<f64> {
    let calls: Vec<String> = requests
        .iter()
        .map(|request| request.arguments.to_string())
        .collect();
    let started = Instant::now();
    for (request, arguments) in requests.iter().zip(&calls) {
        std::hint::black_box(native.run(request.tool, arguments)?);
    }
    Ok(per_call(started.elapsed(), requests.len()))
}

/// A gate in this process.
pub(super) struct Gated {
    runtime: Runtime,
    gate: Gate,
}

impl Gated {
    fn open(setup: &Setup, dir: &Path) -> anyhow::Result<Gated> {
        Gated::open_with(setup, dir, CONFIG_FILE)
    }

    pub(super) fn open_with(setup: &Setup, dir: &Path, config: &str) -> anyhow::Result<Gated> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let config = Config::parse(config, Path::new("bench.toml"))?;
        let data_dir = dir.join("data");
        let pack_selection = PackSelection::default();
        let authority = Authority {
            executable: setup.executable.clone(),
            environment: Some(Environment::new(|name| std::env::var(name).ok())),
            umask: 0o077,
            cache_dir: None,
            server: None,
        };
        let workspaces = Workspaces::default();
        let gate = runtime.block_on(host::open(
            &config,
            &data_dir,
            authority,
            workspaces,
            &pack_selection,
        ))?;
        if let Some(failure) = gate.catalog().failures().first() {
            anyhow::bail!("{failure}");
        }
        Ok(Gated { runtime, gate })
    }

    /// One round of calls: microseconds for each. The rows of reads follow their replies, so the round ends when these
    /// rows are on disk too.
    pub(super) fn round(&self, requests: &[Request]) -> anyhow::Result<f64> {
        let calls = requests.iter().map(call).collect::<anyhow::Result<Vec<Call>>>()?;
        let started = Instant::now();
        self.runtime.block_on(async {
            for call in calls {
                std::hint::black_box(self.gate.call(call).await?.result?);
            }
            self.gate.flush().await;
            anyhow::Ok(())
        })?;
        Ok(per_call(started.elapsed(), requests.len()))
    }
}

impl Tools for Gated {
    fn call(&mut self, request: &Request) -> anyhow::Result<Value> {
        let outcome = self.runtime.block_on(self.gate.call(call(request)?))?;
        let reply = outcome
            .result
            .with_context(|| format!("{} was refused", request.tool))?;
        Ok(Value::Object(reply.structured()))
    }
}

fn call(request: &Request) -> anyhow::Result<Call> {
    let arguments = request.arguments.as_object().cloned();
    let arguments = arguments.context("arguments are an object")?;
    Ok(Call::new(request.tool, arguments, Caller::default()))
}
