//! Slowdown of an identity's calls by another identity that calls as fast as possible.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{Setup, config_with_tokens};
use crate::http::Server;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::Sample;
use crate::workload::{self, Kind, Request, Seeded};

/// Tokens of the measured identity and of the busy one.
const BOB: &str = "bob-0123456789abcdef0123456789abcdef";
const ADA: &str = "ada-0123456789abcdef0123456789abcdef";
/// Connections of the busy identity.
const CONNECTIONS: usize = 32;
/// Largest ratio of a read's time beside the busy identity to its time alone, at the 99th percentile.
const LIMIT: f64 = 3.0;

/// Measures one identity's reads alone, and beside another identity's reads, writes and reads of the ledger.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let config = config_with_tokens(dir.path(), &[("bob", BOB), ("ada", ADA)], "")?;
    report.text("\nan identity's reads over HTTP, one after another, at the 99th percentile");
    for other in ["reads", "writes", "reads of the ledger"] {
        let data = dir.path().join(other);
        let (alone, beside, calls) = reads(setup, &config, &data, other)?;
        let [alone, beside] = [alone, beside].map(|p99| Quantity(p99, Unit::Milliseconds));
        report.text(&format!(
            "  alone {alone}, beside {calls} {other} of another {beside}"
        ));
        let most = alone.0 * LIMIT;
        report.add(Figure {
            name: format!("an identity's p99 beside {other} of another"),
            value: beside,
            baseline: "alone",
            baseline_value: alone,
            target: Some(Target::at_most("takes", beside, most)),
        });
    }
    Ok(())
}

/// The 99th percentile of an identity's reads alone and beside another's calls, in milliseconds, and the number of
/// those calls.
fn reads(setup: &Setup, config: &Path, data: &Path, other: &str) -> anyhow::Result<(f64, f64, usize)> {
    let server = setup.serve(config, data)?;
    let mut bob = server.connect(BOB)?;
    let seeded = workload::seed(&mut bob)?;
    let mut p99 = || -> anyhow::Result<f64> {
        let times = (0..setup.effort.reads).map(|number| {
            let took = bob.time(&Kind::Get.request(&seeded, number))?;
            Ok(took.as_secs_f64() * 1e3)
        });
        let times: Vec<f64> = times.collect::<anyhow::Result<_>>()?;
        Ok(Sample::of(times).percentile(0.99))
    };
    p99()?;
    let alone = p99()?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let busy: Vec<_> = (0..CONNECTIONS)
            .map(|_| scope.spawn(|| busy(&server, &seeded, other, &over)))
            .collect();
        let beside = p99();
        over.store(true, Ordering::Relaxed);
        let mut calls = 0;
        for caller in busy {
            calls += caller
                .join()
                .map_err(|_| anyhow::anyhow!("a caller panicked"))??;
        }
        Ok((alone, beside?, calls))
    })
}

/// Calls one after another until `over` is set, and counts the calls that succeed.
fn busy(server: &Server, seeded: &Seeded, what: &str, over: &AtomicBool) -> anyhow::Result<usize> {
    let mut ada = server.connect(ADA)?;
    let mut calls = 0;
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        let request = match what {
            "reads" => Kind::Get.request(seeded, number),
            "writes" => Kind::Create.request(seeded, number),
            _ => Request {
                tool: "ledger_query",
                arguments: json!({"tool": "nothing"}),
            },
        };
        calls += usize::from(ada.attempt(&request)?);
        number += 1;
    }
    Ok(calls)
}
