//! One run: the pack and the model side by side.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_sdk::native::Session;
use tollgate_sdk::{NextCall, ToolError};

use super::journal::{Choice, Entry, Journal, Outcome, State};
use super::rules::{Raw, World};
use crate::harness::session;

const ACTORS: [&str; 2] = ["ann", "bob"];

pub(super) struct Run {
    session: Session,
    journal: Journal,
    random: u64,
    seed: u64,
    trace: Vec<String>,
    pub(super) accepted: u64,
    pub(super) reverted: u64,
}

impl Run {
    pub(super) fn new(seed: u64) -> Run {
        Run {
            session: session(),
            journal: Journal::default(),
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            seed,
            trace: Vec::new(),
            accepted: 0,
            reverted: 0,
        }
    }

    /// A number below a bound, the same in every run of the seed.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap() % bound
    }

    pub(super) fn pick<T: Clone>(&mut self, all: impl IntoIterator<Item = T>) -> Option<T> {
        let all: Vec<T> = all.into_iter().collect();
        match all.len() {
            0 => None,
            count => Some(all[self.below(count)].clone()),
        }
    }

    fn raw(&self) -> Raw {
        let rows = self
            .session
            .sql("SELECT kind, id, body FROM tasks_records WHERE kind <> 'lease'");
        rows.iter()
            .map(|row| ((row.get(0).unwrap(), row.get(1).unwrap()), row.get(2).unwrap()))
            .collect()
    }

    fn call(&mut self, tool: &str, mut arguments: Value) -> Result<Value, ToolError> {
        arguments["workspace"] = json!("w");
        self.trace.push(format!("{tool} {arguments}"));
        let reply = self.session.call(tool, &arguments.to_string())?;
        Ok(serde_json::from_str(&reply.structured).unwrap())
    }

    fn fail(&self, what: &str) -> ! {
        let trace = self.trace.join("\n");
        panic!("seed {}: {what}\n{trace}", self.seed)
    }

    pub(super) fn step(&mut self) {
        match self.below(10) {
            0..=2 => self.revert(),
            3 => self.batch(),
            _ => self.direct(),
        }
        let raw = self.raw();
        let faults = World::read(&raw).faults();
        if !faults.is_empty() {
            self.fail(&faults.join("; "));
        }
        let gaps = self.session.sql(
            "SELECT a.id FROM tasks_records AS a JOIN tasks_records AS b ON a.kind = b.kind AND a.parent = b.parent \
             WHERE a.kind IN ('step', 'node') AND ((a.ordinal < b.ordinal) <> (a.position < b.position) \
                 OR (a.ordinal = b.ordinal AND a.id <> b.id))",
        );
        let holes = self.session.sql(
            "SELECT parent FROM tasks_records WHERE kind IN ('step', 'node') GROUP BY kind, parent \
             HAVING max(ordinal) + 1 <> count(*)",
        );
        if !gaps.is_empty() || !holes.is_empty() {
            self.fail("the order of siblings is broken");
        }
    }

    fn direct(&mut self) {
        let before = self.raw();
        let world = World::read(&before);
        let actor = ACTORS[self.below(2)];
        let Some(mut call) = self.propose(&world) else {
            return;
        };
        call.arguments["actor"] = json!(actor);
        let delete = (call.tool == "tasks_delete" && call.arguments.get("step_id").is_none())
            .then(|| call.arguments["task"].as_str().unwrap().to_owned());
        let outcome = self.call(call.tool, call.arguments.clone());
        let after = self.raw();
        match outcome {
            Ok(reply) => {
                let Some(expected) = call.expected(&reply) else {
                    self.fail("accepted, but the model refuses it");
                };
                if World::read(&after) != expected {
                    self.fail(&format!("{:#?} is not {expected:#?}", World::read(&after)));
                }
                self.accepted += 1;
                if let Some(root) = delete {
                    let gone = world
                        .roots
                        .iter()
                        .filter(|(id, other)| **id == root || other.plan.as_ref() == Some(&root));
                    gone.for_each(|(id, _)| self.journal.seal(id));
                    self.record((self.latest(), None), actor, before, after, State::Final);
                } else if after != before {
                    self.record((self.latest(), None), actor, before, after, State::Done);
                }
            }
            Err(err) => {
                if call.leads_to.is_some() {
                    self.fail(&format!("refused, but the model accepts it: {err}"));
                }
                if after != before {
                    self.fail("refused, but changed");
                }
            }
        }
    }

    /// Sequence number of the pack's latest operation.
    fn latest(&self) -> i64 {
        let rows = self
            .session
            .sql("SELECT coalesce(max(seq), 0) FROM tasks_operations");
        rows[0].get(0).unwrap()
    }

    /// Adds the pack's operations from a sequence number on as one entry to the model's journal.
    fn record(
        &mut self,
        (seq, batch): (i64, Option<i64>),
        actor: &'static str,
        before: Raw,
        after: Raw,
        state: State,
    ) {
        let rows = self.session.sql(&format!(
            "SELECT root FROM tasks_operation_roots WHERE seq >= {seq}"
        ));
        let roots: BTreeSet<String> = rows.iter().map(|row| row.get(0).unwrap()).collect();
        self.journal.add(Entry {
            seq,
            batch,
            actor,
            roots,
            before,
            after,
            state,
        });
    }

    /// Two direct calls in an atomic batch. The model takes the batch as one entry, which it is for undo.
    fn batch(&mut self) {
        let before = self.raw();
        let world = World::read(&before);
        let actor = ACTORS[self.below(2)];
        let (Some(one), Some(other)) = (self.propose(&world), self.propose(&world)) else {
            return;
        };
        // Deleting is not allowed in an atomic batch.
        if one.tool == "tasks_delete" || other.tool == "tasks_delete" {
            return;
        }
        let operations: Vec<Value> = [&one, &other]
            .iter()
            .map(|call| json!({"tool": call.tool, "args": call.arguments}))
            .collect();
        let first = self.latest() + 1;
        let arguments = json!({"operations": operations, "atomic": true, "actor": actor, "compact": true});
        let outcome = self.call("tasks_batch", arguments);
        let after = self.raw();
        match outcome {
            Ok(_) if self.latest() >= first => {
                self.accepted += 1;
                self.record((first, Some(first)), actor, before, after, State::Done);
            }
            Ok(_) => {}
            Err(err) => {
                if one.leads_to.is_none() && err.context["operation"] != 0 {
                    self.fail("the first member is refused by the model");
                }
                if after != before {
                    self.fail("refused, but changed");
                }
            }
        }
    }

    fn revert(&mut self) {
        let before = self.raw();
        let world = World::read(&before);
        let root = match self.below(3) {
            0 => None,
            _ => self.pick(world.roots.keys().cloned()),
        };
        let choice = Choice {
            back: self.below(5) < 3,
            actor: match self.below(3) {
                0 => Some(ACTORS[self.below(2)]),
                _ => None,
            },
            root,
        };
        let expected = self.journal.revert(&choice, &before);
        let mut arguments = json!({});
        if let Some(root) = &choice.root {
            arguments["task"] = json!(root);
        }
        if let Some(actor) = choice.actor {
            arguments["actor"] = json!(actor);
        }
        let outcome = self.call(if choice.back { "tasks_undo" } else { "tasks_redo" }, arguments);
        let after = self.raw();
        match (outcome, expected) {
            (Ok(_), Outcome::Becomes(raw, seqs)) => {
                if after != raw {
                    self.fail("not what it was");
                }
                self.reverted += 1;
                self.journal.set(&seqs, choice.back);
            }
            (Err(err), Outcome::Nothing)
                if err.code.starts_with("NOTHING_TO")
                    || err
                        .context
                        .get("source_code")
                        .is_some_and(|code| code == "UNKNOWN_WORKSPACE") => {}
            (Err(err), Outcome::Refused) => {
                if after != before {
                    self.fail("refused, but changed");
                }
                self.try_next_call(&err);
            }
            (outcome, expected) => self.fail(&format!("{outcome:?}, but the model says {expected:?}")),
        }
    }

    /// Makes the suggested call in a batch whose second operation is always refused, so that nothing stays.
    fn try_next_call(&mut self, err: &ToolError) {
        let Some(NextCall { tool, arguments, .. }) = &err.next_call else {
            self.fail(&format!("no next call: {err:?}"));
        };
        let operations = json!([
            {"tool": tool, "args": arguments},
            {"tool": "tasks_radar", "args": {"task": "TASK-999"}},
        ]);
        let tried = self.call("tasks_batch", json!({"operations": operations, "atomic": true}));
        let tried = tried.unwrap_err();
        if tried.context["operation"] != 1 {
            self.fail(&format!("the next call of {err:?} is refused: {tried:?}"));
        }
    }
}
