//! Random leases of three actors against a model of its own: time, events, takeovers and ends of connections.
//!
//! 3,000 steps run always. With the environment variable `TOLLGATE_LONG`, 50,000 run.

use serde_json::{Value, json};
use tollgate_sdk::ToolError;
use tollgate_sdk::native::Session;

use crate::harness::{THREE_STEPS, after, call_tool, ok};

const MINUTE: i64 = 60_000;
const ACTORS: [&str; 3] = ["ann", "bob", "cy"];
/// Steps of one run, after which it starts anew: each call takes a millisecond, and all of them less than a minute.
const LENGTH: u32 = 250;

/// A lease as the model knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    by: usize,
    /// Minute at which it ends.
    until: i64,
    /// Number of the workspace's events at which it ends.
    events: i64,
    /// Number of the owner's connection that it ends with.
    connection: Option<u32>,
}

struct Run {
    session: Session,
    leases: [Option<Held>; 3],
    minute: i64,
    events: i64,
    /// Number of the current connection of each actor.
    connections: [u32; 3],
    random: u64,
    trace: Vec<String>,
    granted: u32,
    ended: u32,
}

impl Run {
    fn new(seed: u64) -> Run {
        Run {
            session: after(&[THREE_STEPS]),
            leases: [None; 3],
            minute: 0,
            events: 0,
            connections: [0; 3],
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            trace: vec![format!("seed {seed}")],
            granted: 0,
            ended: 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap() % bound
    }

    /// The lease on a step that has not ended.
    fn live(&self, step: usize) -> Option<Held> {
        self.leases[step].filter(|held| {
            let is_connected = |number| number == self.connections[held.by];
            self.minute < held.until && self.events < held.events && held.connection.is_none_or(is_connected)
        })
    }

    fn call(&mut self, actor: usize, tool: &str, mut arguments: Value) -> Result<Value, ToolError> {
        arguments["actor"] = json!(ACTORS[actor]);
        let connection = format!("conn_{}_{}", ACTORS[actor], self.connections[actor]);
        self.session.set_connection(Some(&connection));
        self.trace
            .push(format!("{}: {tool} {arguments} over {connection}", self.minute));
        let reply = call_tool(&self.session, tool, arguments)?;
        Ok(serde_json::from_str(&reply.structured).unwrap())
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}; {:?}\n{}", self.leases, self.trace.join("\n"))
    }

    fn step(&mut self) {
        let (actor, step) = (self.below(3), self.below(3));
        let before = [self.live(0), self.live(1), self.live(2)];
        match self.below(12) {
            0..=2 => self.claim(actor, step),
            3 => self.renew(actor, step),
            4 => self.release(actor, step),
            5 => self.take(actor),
            6 => self.close(actor, step),
            7 | 8 => {
                self.call(actor, "tasks_note", json!({"task": "TASK-001", "note": "n"}))
                    .unwrap();
                self.events += 1;
            }
            9 => {
                let connection = format!("conn_{}_{}", ACTORS[actor], self.connections[actor]);
                self.session.end_connection(&connection);
                self.trace.push(format!("the end of {connection}"));
                self.connections[actor] += 1;
            }
            _ => {
                let minutes = i64::try_from(self.below(8)).unwrap();
                self.session.advance_ms(minutes * MINUTE);
                self.minute += minutes;
            }
        }
        for (place, held) in before.iter().enumerate() {
            self.ended += u32::from(held.is_some() && self.live(place).is_none());
        }
        self.compare(step);
    }

    /// A random length, and whether the lease ends with the connection.
    fn length(&mut self) -> (i64, i64, bool) {
        let minutes = 1 + i64::try_from(self.below(15)).unwrap();
        let events = 1 + i64::try_from(self.below(12)).unwrap();
        (minutes, events, self.below(3) == 0)
    }

    fn grant(&mut self, by: usize, step: usize, (minutes, events, bound): (i64, i64, bool)) {
        self.events += 1;
        self.granted += 1;
        self.leases[step] = Some(Held {
            by,
            until: self.minute + minutes,
            events: self.events + events,
            connection: bound.then_some(self.connections[by]),
        });
    }

    fn claim(&mut self, actor: usize, step: usize) {
        let length = self.length();
        let mut arguments = target(step);
        arguments["minutes"] = json!(length.0);
        arguments["events"] = json!(length.1);
        if length.2 {
            arguments["until"] = json!("connection");
        }
        let force = self.below(4) == 0;
        if force {
            arguments["force"] = json!(true);
            arguments["reason"] = json!("its owner is gone");
        }
        let is_free = self.live(step).is_none_or(|held| held.by == actor);
        let outcome = self.call(actor, "tasks_step_claim", arguments);
        match (outcome, force || is_free) {
            (Ok(_), true) => self.grant(actor, step, length),
            (Err(err), false) if err.code == "STEP_LEASE_HELD" => {}
            (outcome, _) => self.fail(&format!("claim: {outcome:?}")),
        }
    }

    fn renew(&mut self, actor: usize, step: usize) {
        let (minutes, events, bound) = self.length();
        let mut arguments = target(step);
        arguments["minutes"] = json!(minutes);
        arguments["events"] = json!(events);
        if bound {
            arguments["until"] = json!("connection");
        }
        let outcome = self.call(actor, "tasks_step_renew", arguments);
        if let Some(held) = self.expect_own(actor, step, outcome.map(drop)) {
            self.grant(actor, step, (minutes, events, bound || held.connection.is_some()));
        }
    }

    fn release(&mut self, actor: usize, step: usize) {
        let outcome = self.call(actor, "tasks_step_release", target(step));
        if self.expect_own(actor, step, outcome.map(drop)).is_some() {
            self.events += 1;
            self.leases[step] = None;
        }
    }

    /// The actor's lease, if the call was accepted. Calls are to be accepted exactly if there is one.
    fn expect_own(&self, actor: usize, step: usize, outcome: Result<(), ToolError>) -> Option<Held> {
        let code = outcome.as_ref().err().map(|err| err.code.as_str());
        match (self.live(step), code) {
            (Some(held), None) if held.by == actor => Some(held),
            (Some(held), Some("STEP_LEASE_HELD")) if held.by != actor => None,
            (None, Some("STEP_LEASE_NOT_HELD")) => None,
            (held, code) => self.fail(&format!("{held:?}, but {code:?}")),
        }
    }

    /// Takes whatever is offered: something unless others hold all, and never what another one holds.
    fn take(&mut self, actor: usize) {
        let bound = self.below(2) == 0;
        let arguments = if bound {
            json!({"until": "connection"})
        } else {
            json!({})
        };
        let taken = self.call(actor, "tasks_take", arguments).unwrap();
        let may = |run: &Run, step| run.live(step).is_none_or(|held| held.by == actor);
        if taken["taken"] == false {
            if (0..3).any(|step| may(self, step)) {
                self.fail("nothing was taken");
            }
            return;
        }
        let path = taken["step"]["path"].as_str().unwrap();
        let step = (0..3).find(|step| path == format!("s:{step}")).unwrap();
        if !may(self, step) {
            self.fail("what another one holds was taken");
        }
        self.grant(actor, step, (120, 200, bound));
    }

    /// Work on a step of somebody else is refused.
    fn close(&mut self, actor: usize, step: usize) {
        if self.live(step).is_none_or(|held| held.by == actor) {
            return;
        }
        let mut arguments = target(step);
        arguments["checkpoints"] = json!("gate");
        let outcome = self.call(actor, "tasks_close_step", arguments);
        if outcome
            .as_ref()
            .err()
            .is_none_or(|err| err.code != "STEP_LEASE_HELD")
        {
            self.fail(&format!("close: {outcome:?}"));
        }
    }

    fn compare(&self, step: usize) {
        let shown = ok(
            &self.session,
            &format!(r#"show {{"task": "TASK-001", "path": "s:{step}"}}"#),
        );
        let owner = shown["parts"][0]["facts"]["leased_to"].as_str();
        if owner != self.live(step).map(|held| ACTORS[held.by]) {
            self.fail(&format!("s:{step} is shown as leased to {owner:?}"));
        }
    }
}

fn target(step: usize) -> Value {
    json!({"task": "TASK-001", "path": format!("s:{step}")})
}

#[test]
fn leases_are_held_and_end_as_the_model_says() {
    let runs = match std::env::var_os("TOLLGATE_LONG") {
        Some(_) => 200,
        None => 12,
    };
    let (mut granted, mut ended) = (0, 0);
    for seed in 1..=runs {
        let mut run = Run::new(seed);
        for _ in 0..LENGTH {
            run.step();
        }
        granted += run.granted;
        ended += run.ended;
    }
    let steps = u32::try_from(runs).unwrap() * LENGTH;
    assert!(
        granted > steps / 8,
        "only {granted} of {steps} steps granted a lease"
    );
    assert!(ended > steps / 20, "only {ended} of {steps} steps ended a lease");
}
