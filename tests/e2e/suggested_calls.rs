//! A client that tries every call suggested by a reply or refusal. Each must be accepted unchanged, and none may take
//! over, create or force anything.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Place, Session};

/// Tools that suggested calls never name.
const NEVER: &[&str] = &[
    "tasks_create",
    "tasks_bootstrap",
    "tasks_scaffold",
    "tasks_decompose",
    "gsd_plan_milestone",
    "gsd_plan_slice",
    "gsd_task_reopen",
    "gsd_slice_reopen",
    "gsd_milestone_reopen",
    "gsd_slice_skip",
    "gsd_claim",
];

/// A connected client, and the number of suggested calls that it tried.
pub(crate) struct Teller<'a> {
    place: &'a Place,
    session: Session,
    /// Listed tools, with `true` for those that only read.
    tools: BTreeMap<String, bool>,
    workspace: &'static str,
    pub(crate) tried: usize,
}

impl<'a> Teller<'a> {
    /// A client of a server of its own.
    pub(crate) async fn come(place: &'a Place, workspace: &'static str) -> Teller<'a> {
        let session = place.serve(&["--tier", "full"]).await;
        let tools = session.client().list_all_tools().await.unwrap().into_iter();
        let reads = |tool: &rmcp::model::Tool| {
            let hints = tool.annotations.as_ref();
            hints.and_then(|hints| hints.read_only_hint) == Some(true)
        };
        let tools = tools.map(|tool| (tool.name.to_string(), reads(&tool))).collect();
        Teller {
            place,
            session,
            tools,
            workspace,
            tried: 0,
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Calls a tool and tries everything that the reply or refusal suggests.
    pub(crate) async fn call(&mut self, tool: &str, mut arguments: Value) -> Value {
        if arguments.get("workspace").is_none() && !tool.starts_with("envelope_") {
            arguments["workspace"] = json!(self.workspace);
        }
        let reply = self.session.call_raw(tool, arguments.clone()).await;
        let body = reply.structured_content.unwrap();
        if let Some(refused) = body.get("error") {
            assert!(
                refused["next_call"].is_object(),
                "{tool} {arguments}: no next call in {body:#}"
            );
        }
        let mut calls = Vec::new();
        collect(&body, &mut calls);
        for call in calls {
            self.tried += 1;
            if let Some(fault) = self.attempt(&call).await {
                panic!("{tool} {arguments} suggests {call}: {fault}");
            }
        }
        body
    }

    /// Calls a tool that must succeed.
    pub(crate) async fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let body = self.call(tool, arguments).await;
        assert!(body.get("error").is_none(), "{tool}: {body:#}");
        body
    }

    /// Calls a tool that must be refused with a code.
    pub(crate) async fn refused(&mut self, tool: &str, arguments: Value, code: &str) -> Value {
        let body = self.call(tool, arguments).await;
        assert_eq!(body["error"]["code"], code, "{tool}: {body:#}");
        body["error"].clone()
    }

    /// Makes a suggested call of a tool.
    pub(crate) async fn follow(&mut self, call: &Value, tool: &str) -> Value {
        assert_eq!(call["tool"], tool, "{call}");
        self.ok(tool, call["arguments"].clone()).await
    }

    /// Makes a suggested call without consequences. Returns the fault, if it is not accepted.
    async fn attempt(&self, call: &Value) -> Option<String> {
        let tool = call["tool"].as_str().unwrap();
        let arguments = &call["arguments"];
        if NEVER.contains(&tool) || arguments.get("force").is_some() {
            return Some("nobody asked for it".to_owned());
        }
        match self.tools.get(tool) {
            None => Some("there is no such tool".to_owned()),
            Some(true) => {
                let reply = self.session.call_raw(tool, arguments.clone()).await;
                let body = reply.structured_content.unwrap();
                body.get("error").map(|error| format!("{error:#}"))
            }
            Some(false) if tool.starts_with("tasks_") => self.in_batch(tool, arguments).await,
            Some(false) => {
                let copy = self.place.copy()?;
                let (code, body) = copy.call(tool, arguments);
                (code != 0).then(|| format!("{body:#}"))
            }
        }
    }

    /// Makes a call in an atomic batch whose second operation fails.
    async fn in_batch(&self, tool: &str, arguments: &Value) -> Option<String> {
        let fails = json!({"tool": "tasks_done", "args": {"task": "TASK-999", "path": "s:0"}});
        let operations = json!([{"tool": tool, "args": arguments}, fails]);
        let batch = json!({"workspace": self.workspace, "operations": operations, "atomic": true});
        let reply = self.session.call_raw("tasks_batch", batch).await;
        let body = reply.structured_content.unwrap();
        let failed = &body["error"]["context"]["operation"];
        (*failed != 1).then(|| format!("{body:#}"))
    }
}

/// The calls that a reply suggests, wherever they are in it.
fn collect(value: &Value, calls: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let one = (name == "next_call").then_some(member);
                let many = member.as_array().filter(|_| name == "next_calls");
                let named = one.into_iter().chain(many.into_iter().flatten());
                calls.extend(named.filter(|call| call.is_object()).cloned());
                collect(member, calls);
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, calls)),
        _ => {}
    }
}

/// All parts of a plan, task, step or node that `tasks_show` returns in pages of a size.
pub(crate) async fn shown(teller: &mut Teller<'_>, target: Value, max_chars: u32) -> String {
    let (mut whole, mut cursor) = (String::new(), Value::Null);
    for reads in 0.. {
        assert!(reads < 500, "the cursor stands still");
        let mut arguments = target.clone();
        arguments["max_chars"] = json!(max_chars);
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let page = teller.ok("tasks_show", arguments).await;
        for part in page["parts"].as_array().unwrap() {
            // A divided text goes on where it was cut.
            if part.get("from").is_none() {
                whole.push('\n');
            }
            whole.push_str(part["text"].as_str().unwrap_or_default());
        }
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    whole
}
