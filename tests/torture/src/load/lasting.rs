//! Calls that take long enough to become MCP tasks, if their client supports tasks. Checks that a task is over exactly
//! if its call is.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Load, Request};
use crate::known::{Known, Told};
use crate::look::Look;
use crate::place::{LONG, REPOSITORY, Seen};
use crate::promise::{Broken, Promise};

/// Tasks whose state contradicts the ledger. A call with an unknown outcome has a row without success.
const APART: &str =
    "SELECT 'task ' || id || ' of ' || core_tasks.tool || ' is ' || state || ', and the ledger has '
           || CASE WHEN core_operations.op_id IS NULL THEN 'no row'
              ELSE coalesce(CAST(success AS TEXT), 'no outcome') || ' ' || coalesce(core_operations.error_code, '') END
     FROM core_tasks LEFT JOIN core_operations USING (op_id)
     WHERE (state = 'completed' AND success IS NULL) OR (state <> 'completed' AND success = 1)";
/// Tasks that are over without a reply, or that have a reply and are not over.
const WITHOUT: &str =
    "SELECT 'task ' || id || ' is ' || state || ' and has ' || count(content) || ' parts of a reply'
     FROM core_tasks LEFT JOIN core_task_replies ON task_id = id GROUP BY id
     HAVING (count(content) > 0) <> (state NOT IN ('working', 'input_required'))";

pub(crate) struct Lasting;

impl Load for Lasting {
    fn next(&self, random: &mut Rng, _: &Known) -> Request {
        let here = json!({"workspace": REPOSITORY});
        match random.u8(..3) {
            0 => Request::write("test_run", json!({"workspace": REPOSITORY, "test": LONG})),
            _ => Request::read("convergence_status", here),
        }
    }

    fn told(&self, _: &Request, _: &Value) -> Vec<Told> {
        Vec::new()
    }

    fn ask(&self, _: &Told) -> Option<Request> {
        None
    }

    fn lost(&self, _: &str) -> bool {
        false
    }

    fn check(&self, db: &dyn Look, _: &Seen) -> anyhow::Result<Vec<Broken>> {
        let mut broken = Vec::new();
        for sql in [APART, WITHOUT] {
            let found = db.texts(sql)?;
            broken.extend(found.into_iter().map(|what| Broken::new(Promise::Whole, what)));
        }
        Ok(broken)
    }
}
