//! The pack `convergence`: test runs, test reports, and states of a work tree. Checks that a reported failure is in the
//! ledger exactly once.

use fastrand::Rng;
use serde_json::{Value, json};

use super::artifacts::ARTIFACT;
use super::{Load, Request};
use crate::known::{Known, Told};
use crate::look::Look;
use crate::place::{REPOSITORY, Seen};
use crate::promise::{Broken, Promise};

const FAILURE: &str = "failure";
/// Name of the command in reported test runs, which started runs do not have.
const REPORTED: &str = "torture";
/// Number of labels for reports, so that no scope drops its oldest report.
const SCOPES: u8 = 16;

pub(crate) struct Convergence;

impl Load for Convergence {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        let Some(failure) = known.any(FAILURE, random) else {
            return report(random);
        };
        let here = json!({"workspace": REPOSITORY});
        match random.u8(..12) {
            0..4 => report(random),
            4 | 5 => Request::write("test_run", here),
            6 => Request::write("mutation_record", here),
            7..9 => Request::read("convergence_status", here),
            _ => look_up(&failure),
        }
    }

    fn told(&self, request: &Request, reply: &Value) -> Vec<Told> {
        let told = match request.tool {
            "test_report" => reply["failure_fingerprint"]
                .as_str()
                .map(|failure| Told::of(FAILURE, failure, 1)),
            "test_run" => reply["artifact_id"].as_str().map(|id| Told::of(ARTIFACT, id, 0)),
            "ledger_query" => {
                let found = reply["operations"].as_array().map_or(0, Vec::len);
                let failure = request.about.as_ref();
                failure.map(|failure| Told::of(FAILURE, &*failure.id, i64::from(found == 1)))
            }
            _ => None,
        };
        told.into_iter().collect()
    }

    fn ask(&self, thing: &Told) -> Option<Request> {
        (thing.kind == FAILURE).then(|| look_up(thing))
    }

    fn lost(&self, _: &str) -> bool {
        false
    }

    fn check(&self, db: &dyn Look, seen: &Seen) -> anyhow::Result<Vec<Broken>> {
        let reported = format!("SELECT count(*) FROM convergence_runs WHERE command = '{REPORTED}'");
        let reported = super::equal(
            db,
            &reported,
            "SELECT count(*) FROM core_operations WHERE tool = 'test_report' AND success = 1",
            "reported test runs, and as many as the ledger has",
        )?;
        let ran = format!("SELECT count(*) FROM convergence_runs WHERE command <> '{REPORTED}'");
        let ran = super::within(db, &ran, "test_run")?;
        let recorded = "SELECT count(*) FROM convergence_mutations";
        let recorded = super::within(db, recorded, "mutation_record")?;
        let (done, perhaps) = super::runs(db, "test_run")?;
        let (before, after) = (seen.test_runs, seen.test_runs_now()?);
        let started = (before > perhaps || after < done).then(|| {
            let what =
                format!("tests ran {before} to {after} times, in the ledger {done} to {perhaps} times");
            Broken::new(Promise::Whole, what)
        });
        let all = [reported, ran, recorded, started];
        Ok(all.into_iter().flatten().collect())
    }
}

fn report(random: &mut Rng) -> Request {
    let label = format!("label {}", random.u8(..SCOPES));
    let arguments = json!({"failing_tests": [super::word(random)], "exit_code": 1, "command": REPORTED});
    Request::write("test_report", super::at(&label, arguments))
}

fn look_up(failure: &Told) -> Request {
    let arguments = json!({"failure_fingerprint": failure.id, "limit": 3});
    Request::read("ledger_query", arguments).telling(failure)
}
