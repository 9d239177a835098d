//! Envelopes with small limits, opened, used up and closed; and the ledger, read meanwhile.

use fastrand::Rng;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Kind, Load, Request};
use crate::known::Known;
use crate::promise::{Broken, Promise};

/// What known envelopes are remembered as.
pub(crate) const ENVELOPE: &str = "envelope";

pub(crate) struct Envelopes;

impl Load for Envelopes {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        let control = |tool, arguments| Request {
            tool,
            arguments,
            kind: Kind::Control,
        };
        let read = |tool, arguments| Request {
            tool,
            arguments,
            kind: Kind::Read,
        };
        let open = |limits: Value| control("envelope_open", json!({"label": "torture", "limits": limits}));
        let Some(envelope) = known.any(ENVELOPE, random) else {
            return open(json!({"max_mutations": 20}));
        };
        match random.u8(..10) {
            0..3 => open(json!({"max_mutations": random.u8(1..40)})),
            3 => open(json!({})),
            4 => open(json!({"max_mutations": 0})),
            5 => control(
                "envelope_close",
                json!({"envelope_id": envelope, "outcome": "success"}),
            ),
            6..8 => read("envelope_get", json!({"envelope_id": envelope})),
            _ => read("ledger_query", json!({"envelope_id": envelope, "limit": 5})),
        }
    }

    fn learn(&self, request: &Request, reply: &Value, known: &mut Known) {
        if request.tool == "envelope_open"
            && let Some(id) = reply["id"].as_str()
        {
            known.learn(ENVELOPE, id);
        }
    }

    fn lost(&self, code: &str) -> bool {
        code == "UNKNOWN_ENVELOPE"
    }

    fn check(&self, db: &Connection) -> rusqlite::Result<Vec<Broken>> {
        let opened = "SELECT (SELECT count(*) FROM core_envelopes)
            - (SELECT count(*) FROM core_operations WHERE tool = 'envelope_open' AND success = 1)";
        Ok(if super::none(db, opened)? {
            Vec::new()
        } else {
            vec![Broken::new(
                Promise::Whole,
                "there are not as many envelopes as were opened",
            )]
        })
    }
}
