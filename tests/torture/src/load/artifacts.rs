//! Artifacts in replies of all packs: read back and compared.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Load, Request};
use crate::known::{Known, Told};
use crate::look::Look;
use crate::place::Seen;
use crate::promise::{Broken, Promise};

/// Kind of the remembered artifacts.
pub(super) const ARTIFACT: &str = "artifact";

pub(crate) struct Artifacts;

impl Load for Artifacts {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        match known.any(ARTIFACT, random) {
            Some(artifact) => get(&artifact),
            None => Request::read("artifact_get", json!({"artifact_id": "art_none"})),
        }
    }

    fn told(&self, _: &Request, reply: &Value) -> Vec<Told> {
        let whole = reply["content"]
            .as_str()
            .is_some_and(|content| !content.is_empty());
        let id = reply["artifact_id"].as_str().filter(|_| whole);
        id.map(|id| Told::of(ARTIFACT, id, 0)).into_iter().collect()
    }

    fn ask(&self, thing: &Told) -> Option<Request> {
        (thing.kind == ARTIFACT).then(|| get(thing))
    }

    fn lost(&self, code: &str) -> bool {
        code == "ARTIFACT_NOT_FOUND" || code == "ARTIFACT_EXPIRED"
    }

    fn check(&self, db: &dyn Look, seen: &Seen) -> anyhow::Result<Vec<Broken>> {
        let hashes = "SELECT hash || ' ' || size FROM core_artifacts WHERE collected = 0";
        let rows = db.texts(hashes)?;
        let mut broken = Vec::new();
        for (name, hash, size) in seen.artifacts()? {
            if name != hash {
                let what = format!("the file of artifact {name} holds what has the hash {hash}");
                broken.push(Broken::new(Promise::Whole, what));
            } else if let Some(row) = rows.iter().find(|row| row.starts_with(&hash))
                && *row != format!("{hash} {size}")
            {
                let what = format!("the file of an artifact has {size} bytes, its row says {row}");
                broken.push(Broken::new(Promise::Whole, what));
            }
        }
        Ok(broken)
    }
}

fn get(artifact: &Told) -> Request {
    let arguments = json!({"artifact_id": artifact.id, "limit": 100});
    Request::read("artifact_get", arguments).telling(artifact)
}
