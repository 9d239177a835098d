//! Calls over pipes: tollgate beside a server without gate and sandbox, and a server with constant replies.

use serde_json::{Map, Value};

use super::{Setup, per_call, requests};
use crate::client::Client;
use crate::machine;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, Sample, take_turns};
use crate::workload::{self, Kind, Request, Seeded, Tools as _};

/// Largest time of a read beyond the protocol, with many in flight on one core, in microseconds.
const READ_LIMIT: f64 = 60.0;
/// Calls in flight in the case of many.
const MANY: usize = 32;

/// Measures reads and writes, with one and many in flight, on one core and on all.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    machine::on_one_core(|| compare(setup, report, Cores::One))?;
    compare(setup, report, Cores::All)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cores {
    One,
    All,
}

impl Cores {
    fn name(self) -> &'static str {
        match self {
            Cores::One => "one core",
            Cores::All => "all cores",
        }
    }
}

/// A server with a filled database.
struct Contestant {
    client: Client,
    tasks: Seeded,
}

fn compare(setup: &Setup, report: &mut Report, cores: Cores) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let mut tollgate = filled(Client::start(setup.tollgate(&dir.path().join("data")))?)?;
    let plain = filled(Client::start(setup.plain(dir.path())?)?)?;
    let null = Contestant {
        client: Client::start(setup.null(&tollgate.replies(report)?)?)?,
        tasks: tollgate.tasks.clone(),
    };
    let mut contestants = [null, plain, tollgate];
    for kind in Kind::ALL {
        for in_flight in [1, MANY] {
            let case = Case {
                kind,
                in_flight,
                cores,
            };
            case.measure(setup, report, &mut contestants)?;
        }
    }
    contestants
        .into_iter()
        .try_for_each(|contestant| contestant.client.stop())
}

fn filled(mut client: Client) -> anyhow::Result<Contestant> {
    let tasks = workload::seed(&mut client)?;
    Ok(Contestant { client, tasks })
}

impl Contestant {
    /// One round of calls: microseconds for each. Ledger rows of reads follow their replies, so a write ends the round:
    /// it has to wait for them.
    fn round(&mut self, requests: &[Request], in_flight: usize) -> anyhow::Result<f64> {
        let last = [Kind::Create.request(&self.tasks, 0)];
        let elapsed = self.client.run(requests, in_flight)? + self.client.run(&last, 1)?;
        Ok(per_call(elapsed, requests.len() + 1))
    }

    /// The server's reply to each kind of call, for the server with constant replies.
    fn replies(&mut self, report: &mut Report) -> anyhow::Result<Value> {
        let mut replies = Map::new();
        report.text("");
        for kind in Kind::ALL {
            let request = kind.request(&self.tasks, 0);
            let reply = self.client.call(&request)?;
            report.text(&format!(
                "the reply to {} has {} bytes",
                kind.name(),
                reply.to_string().len()
            ));
            let task = request.arguments.get("task_id").and_then(Value::as_str);
            replies.insert(task.unwrap_or(request.tool).to_owned(), reply);
        }
        Ok(Value::Object(replies))
    }
}

/// One comparison.
#[derive(Debug, Clone, Copy)]
struct Case {
    kind: Kind,
    in_flight: usize,
    cores: Cores,
}

impl Case {
    fn measure(
        self,
        setup: &Setup,
        report: &mut Report,
        contestants: &mut [Contestant; 3],
    ) -> anyhow::Result<()> {
        let before = processor_seconds(contestants)?;
        let mut calls = 0;
        let rounds = contestants.each_mut().map(|contestant| {
            let requests = requests(self.kind, &contestant.tasks, &setup.effort);
            calls = (requests.len() + 1) * (setup.effort.rounds + 1);
            let round: Round<'_> = Box::new(move || contestant.round(&requests, self.in_flight));
            round
        });
        let samples = take_turns(setup.effort.rounds, rounds)?;
        let after = processor_seconds(contestants)?;
        self.record(report, &samples);
        let used = |index: usize| {
            let seconds = after[index] - before[index];
            Quantity(seconds * 1e6 / calls as f64, Unit::Microseconds)
        };
        report.text(&format!(
            "  CPU time of the server for each call: null {}, plain {}, tollgate {}",
            used(0),
            used(1),
            used(2)
        ));
        Ok(())
    }

    fn record(self, report: &mut Report, samples: &[Sample; 3]) {
        let [null, plain, tollgate] = samples;
        let Case {
            kind,
            in_flight,
            cores,
        } = self;
        let name = format!("{}, stdio, {in_flight} in flight, {}", kind.name(), cores.name());
        report.heading(&name);
        report.row("null server", null, Unit::Microseconds, null);
        report.row("plain server", plain, Unit::Microseconds, null);
        report.row("tollgate", tollgate, Unit::Microseconds, null);
        let net = |sample: &Sample| Quantity(sample.median() - null.median(), Unit::Microseconds);
        report.text(&format!(
            "  net of the null server: tollgate {}, plain server {}; {:.0} calls/s through tollgate",
            net(tollgate),
            net(plain),
            1e6 / tollgate.median()
        ));
        let is_goal = kind != Kind::Create && in_flight == MANY && cores == Cores::One;
        report.add(Figure {
            name,
            value: Quantity(tollgate.median(), Unit::Microseconds),
            baseline: "plain",
            baseline_value: Quantity(plain.median(), Unit::Microseconds),
            target: is_goal.then_some(Target::at_most("net", net(tollgate), READ_LIMIT)),
        });
    }
}

fn processor_seconds(contestants: &[Contestant; 3]) -> anyhow::Result<[f64; 3]> {
    let mut seconds = [0.0; 3];
    for (contestant, seconds) in contestants.iter().zip(&mut seconds) {
        *seconds = machine::processor_seconds(contestant.client.process())?;
    }
    Ok(seconds)
}
