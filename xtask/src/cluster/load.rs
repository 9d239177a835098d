//! Load: agents that work on their own tasks, and a record of their replies.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use super::agent::{Agent, Lost, Reply};

/// The tool that only reads.
const READS: &str = "task_events";
/// Number of changes to a task before the next one begins.
const CHANGES: u32 = 8;

/// A call with a reply.
#[derive(Debug)]
pub(super) struct Acknowledged {
    pub(super) request: String,
    pub(super) tool: &'static str,
    pub(super) op_id: String,
    /// Code of a refusal.
    pub(super) refused: Option<String>,
}

/// A call without a reply, and the time during which it was in flight.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) request: String,
    pub(super) tool: &'static str,
    pub(super) lost: Lost,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
}

/// Everything that agents know about their calls.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) acknowledged: Vec<Acknowledged>,
    pub(super) unanswered: Vec<Unanswered>,
    /// Observations that must not happen.
    pub(super) broken: Vec<String>,
    /// Number of calls that each host answered.
    pub(super) answered_by: BTreeMap<String, usize>,
    pub(super) slowest: Duration,
    /// Hosts that were killed.
    pub(super) deaths: Vec<Death>,
}

/// Running agents.
pub(super) struct Load<'a> {
    agent: &'a Agent,
    account: Mutex<Account>,
    is_over: AtomicBool,
}

impl<'a> Load<'a> {
    pub(super) fn new(agent: &'a Agent) -> Load<'a> {
        Load {
            agent,
            account: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Record of all agents once they are done, together with the deaths of hosts.
    pub(super) fn into_account(self, deaths: Vec<Death>) -> Account {
        let account = self.account.into_inner();
        Account {
            deaths,
            ..account.unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Number of calls that a host has answered so far.
    pub(super) fn answered_by(&self, host: &str) -> usize {
        self.account().answered_by.get(host).copied().unwrap_or_default()
    }

    /// Lets agents finish their calls and end.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Works on one task after another in an envelope until the load ends. A lost call is not repeated.
    pub(super) fn work(&self, envelope: &str) {
        while !self.is_over() {
            let created = self.create(envelope);
            let Some(task) = created.and_then(|reply| Some(reply["task"]["id"].as_str()?.to_owned())) else {
                continue;
            };
            if let Err(err) = self.work_on(&task, envelope) {
                self.account().broken.push(format!("{err:#}"));
                return;
            }
        }
    }

    /// Creates tasks until the envelope allows no more.
    pub(super) fn exhaust(&self, envelope: &str) {
        while !self.is_over() {
            let id = self.agent.next_id();
            let made = self.made(&id, "task_create", &new_task(envelope));
            if made.is_some_and(|reply| reply.code().is_some()) {
                return;
            }
        }
    }

    fn create(&self, envelope: &str) -> Option<Value> {
        self.done("task_create", &new_task(envelope))
    }

    /// Changes a task, and checks that each acknowledged change is visible on every host.
    fn work_on(&self, task: &str, envelope: &str) -> anyhow::Result<()> {
        let mut known = Vec::new();
        for number in 0..CHANGES {
            let change = json!({"task_id": task, "checkpoint_type": "note", "payload": {"n": number},
                "actor_role": "orchestrator", "envelope_id": envelope});
            if let Some(changed) = self.done("task_record_checkpoint", &change) {
                let event = changed["event_id"].as_i64();
                known.push(event.with_context(|| format!("a change without an event: {changed}"))?);
            }
            let asked = json!({"task_id": task, "limit": 100});
            if let Some(told) = self.done(READS, &asked) {
                let events = told["events"].as_array().context("no events")?;
                let there: Vec<i64> = events.iter().filter_map(|event| event["id"].as_i64()).collect();
                ensure!(
                    known.iter().all(|event| there.contains(event)),
                    "task {task} has the events {there:?}, and {known:?} were acknowledged"
                );
            }
            if self.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Makes a call that may be lost, but must not be refused.
    fn done(&self, tool: &'static str, arguments: &Value) -> Option<Value> {
        let id = self.agent.next_id();
        let reply = self.made(&id, tool, arguments)?;
        if reply.code().is_some() {
            let refused = format!("{tool} was refused at host {}: {}", reply.host, reply.content);
            self.account().broken.push(refused);
            return None;
        }
        Some(reply.content)
    }

    fn made(&self, id: &str, tool: &'static str, arguments: &Value) -> Option<Reply> {
        let begun = Instant::now();
        let made = self.agent.call(id, tool, arguments);
        let ended = Instant::now();
        let mut account = self.account();
        account.slowest = account.slowest.max(ended.duration_since(begun));
        match made {
            Ok(reply) => {
                *account.answered_by.entry(reply.host.clone()).or_default() += 1;
                account.acknowledged.push(Acknowledged {
                    request: id.to_owned(),
                    tool,
                    op_id: reply.op_id.clone(),
                    refused: reply.code().map(str::to_owned),
                });
                Some(reply)
            }
            Err(lost) => {
                account.unanswered.push(Unanswered {
                    request: id.to_owned(),
                    tool,
                    lost,
                    begun,
                    ended,
                });
                None
            }
        }
    }
}

fn new_task(envelope: &str) -> Value {
    json!({"title": "t", "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
        "actor_role": "orchestrator", "envelope_id": envelope})
}

/// Time span in which a host was killed.
#[derive(Debug)]
pub(super) struct Death {
    pub(super) host: &'static str,
    pub(super) since: Instant,
    pub(super) until: Instant,
}

impl Account {
    /// Returns whether the row of an acknowledged call may be missing. Rows of reads are written after the reply, so a
    /// killed host loses those that are still waiting.
    pub(super) fn may_miss(&self, call: &Acknowledged) -> bool {
        call.tool == READS && !self.deaths.is_empty()
    }

    /// Checks that calls were lost only with their host, and that nothing else went wrong.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if let Some(broken) = self.broken.first() {
            bail!("{} broken promises, such as: {broken}", self.broken.len());
        }
        for call in &self.unanswered {
            let died = |death: &Death| {
                call.begun <= death.until
                    && call.ended >= death.since
                    && call.lost.host.as_deref().is_none_or(|host| host == death.host)
            };
            ensure!(
                self.deaths.iter().any(died),
                "{} was lost at host {:?} although that did not die: {}",
                call.tool,
                call.lost.host,
                call.lost.why
            );
        }
        Ok(())
    }
}
