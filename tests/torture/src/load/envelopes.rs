//! Envelopes with small limits, opened, used up and closed, and queries of the ledger. Checks that closed envelopes
//! stay closed.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Load, Request};
use crate::known::{Known, Told};
use crate::look::Look;
use crate::place::Seen;
use crate::promise::Broken;

/// Kind of the remembered envelopes.
pub(crate) const ENVELOPE: &str = "envelope";

pub(crate) struct Envelopes;

impl Load for Envelopes {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        let open =
            |limits: Value| Request::control("envelope_open", json!({"label": "torture", "limits": limits}));
        let Some(envelope) = known.any(ENVELOPE, random) else {
            return open(json!({"max_mutations": 20}));
        };
        match random.u8(..10) {
            0..3 => open(json!({"max_mutations": random.u8(1..40), "max_test_runs": random.u8(1..5)})),
            3 => open(json!({})),
            4 => open(json!({"max_mutations": 0})),
            5 => {
                let arguments = json!({"envelope_id": envelope.id, "outcome": "success"});
                Request::control("envelope_close", arguments).about(&envelope)
            }
            6..8 => get(&envelope),
            _ => Request::read("ledger_query", json!({"envelope_id": envelope.id, "limit": 5})),
        }
    }

    fn told(&self, _: &Request, reply: &Value) -> Vec<Told> {
        let state = reply["state"].as_str();
        let told = reply["id"].as_str().zip(state);
        told.map(|(id, state)| Told::of(ENVELOPE, id, i64::from(state != "OPEN")))
            .into_iter()
            .collect()
    }

    fn ask(&self, thing: &Told) -> Option<Request> {
        (thing.kind == ENVELOPE).then(|| get(thing))
    }

    fn lost(&self, code: &str) -> bool {
        code == "UNKNOWN_ENVELOPE"
    }

    fn check(&self, db: &dyn Look, _: &Seen) -> anyhow::Result<Vec<Broken>> {
        let opened = super::equal(
            db,
            "SELECT count(*) FROM core_envelopes",
            "SELECT count(*) FROM core_operations WHERE tool = 'envelope_open' AND success = 1",
            "envelopes, and as many as the ledger says were opened",
        )?;
        Ok(opened.into_iter().collect())
    }
}

fn get(envelope: &Told) -> Request {
    Request::read("envelope_get", json!({"envelope_id": envelope.id})).telling(envelope)
}
