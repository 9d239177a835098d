//! MCP's tasks as clients see them: none is lost, and none ends twice.

use serde_json::Value;

use crate::client::hash;
use crate::known::{Acknowledged, Known, Outcome, Task};
use crate::promise::{Broken, Promise};

/// Records a call that became a task.
pub(crate) fn begun(tool: &'static str, reply: &Value, known: &mut Known) {
    match reply["result"]["taskId"].as_str() {
        Some(id) => known.tasks.push(Task {
            id: id.to_owned(),
            tool,
            end: None,
        }),
        None => {
            let what = format!("{tool} became a task without an id: {reply}");
            known.broken.push(Broken::new(Promise::Serving, what));
        }
    }
}

/// Records the state of a task. An unknown task, or an outcome that differs from an earlier one, is a broken promise.
pub(crate) fn seen(id: &str, reply: &Value, known: &mut Known) {
    if reply["error"]["data"]["error"]["code"] == "POLLING_TOO_FAST" {
        return;
    }
    let Some(task) = known.tasks.iter_mut().find(|task| task.id == id) else {
        return;
    };
    let said = &reply["result"];
    let broken = |what: String| Broken::new(Promise::Visible, format!("task {id} of {}: {what}", task.tool));
    let Some(status) = said["status"].as_str() else {
        let lost = broken(format!("it is answered {reply}"));
        known.broken.push(lost);
        return;
    };
    if matches!(status, "working" | "input_required") {
        if let Some((before, _)) = &task.end {
            let again = broken(format!("it was {before} and is {status}"));
            known.broken.push(again);
        }
        return;
    }
    let end = (
        status.to_owned(),
        said.get("result")
            .or(said.get("error"))
            .cloned()
            .unwrap_or_default(),
    );
    match &task.end {
        Some(before) if *before != end => {
            let other = broken(format!("it was {before:?} and is {end:?}"));
            known.broken.push(other);
        }
        Some(_) => {}
        None => {
            let acknowledged = acknowledged(task.tool, &end);
            task.end = Some(end);
            known.replies.extend(acknowledged);
        }
    }
}

/// The reply of a task that completed, whose row must be in the ledger.
fn acknowledged(tool: &str, (status, result): &(String, Value)) -> Option<Acknowledged> {
    if status != "completed" {
        return None;
    }
    let body = &result["structuredContent"];
    let code = body["error"]["code"]
        .as_str()
        .filter(|_| result["isError"] == true);
    Some(Acknowledged {
        op_id: result["_meta"]["tollgate/op_id"]
            .as_str()
            .unwrap_or("none")
            .to_owned(),
        tool: tool.to_owned(),
        may_miss: false,
        outcome: match code {
            None => Outcome::Done(hash(tool, body)),
            Some(code) => Outcome::Refused(code.to_owned()),
        },
    })
}
