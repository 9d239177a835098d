//! The parts of a plan, task, step and node.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};
use tollgate_kit::runs::Look;
use tollgate_sdk::ToolError;

use super::{Body, Part};
use crate::checkpoint;
use crate::evidence::Proof;
use crate::lease;
use crate::limits::short;
use crate::model::{Checkpoint, EventType, RootKind, Status};
use crate::mutation;
use crate::path::Path;
use crate::record::{Evidence, Meta, Node, Note, Plan, Root, Step};
use crate::scope::{Located, Scope};
use crate::store::event::{self, Event};
use crate::store::record::children;
use crate::store::root::{Wanted, page};

/// Most children that are listed. tasks_mirror and tasks_context list the others.
const MAX_CHILDREN: usize = 500;
/// Most notes and most pieces of evidence that are shown.
const MAX_RECORDS: usize = 5_000;

/// The parts of a plan or task.
pub(crate) fn of_root(scope: &Scope<'_>, root: &Root) -> Result<Vec<Part>, ToolError> {
    let meta = root.meta();
    let mut parts = vec![facts_of(root), Part::text("title", &meta.title)];
    optional(&mut parts, "status_reason", meta.status_reason.as_deref());
    optional(&mut parts, "description", meta.description.as_deref());
    optional(&mut parts, "context", meta.context.as_deref());
    if let Root::Plan(plan) = root {
        of_contract(plan, &mut parts);
    }
    listed(&mut parts, "tag", &meta.tags);
    for on in crate::dependency::of(scope, meta)? {
        let status = on.status.map_or("deleted", Status::as_str);
        parts.push(Part::facts("depends_on", json!({"status": status})).with_id(&on.id));
    }
    match root {
        Root::Plan(plan) => tasks(scope, &plan.meta, &mut parts)?,
        Root::Task(_) => steps(scope, &meta.id, &Path::TOP, &mut parts)?,
    }
    recorded(scope, &meta.id, &mut parts)?;
    Ok(parts)
}

fn facts_of(root: &Root) -> Part {
    let meta = root.meta();
    let (kind, plan, domain) = match root {
        Root::Plan(_) => ("plan", None, None),
        Root::Task(task) => ("task", Some(&task.plan), task.domain.as_ref()),
    };
    let facts = json!({
        "status": meta.status, "priority": meta.priority, "plan": plan, "domain": domain,
        "created_at": meta.created_at, "done_at": meta.done_at,
    });
    Part::facts(kind, facts).with_id(&meta.id)
}

fn of_contract(plan: &Plan, parts: &mut Vec<Part>) {
    optional(parts, "contract", plan.contract.as_deref());
    if let Some(data) = &plan.contract_data {
        parts.push(Part::text("contract_data", &json!(data).to_string()));
    }
    optional(parts, "doc", plan.doc.as_deref());
    for (index, entry) in plan.steps.iter().enumerate() {
        let current = (index == plan.current).then_some(true);
        parts.push(Part::facts("checklist", json!({"index": index, "current": current})).with_text(entry));
    }
}

fn tasks(scope: &Scope<'_>, plan: &Meta, parts: &mut Vec<Part>) -> Result<(), ToolError> {
    let wanted = Wanted {
        kind: RootKind::Task,
        plan: Some(&plan.id),
        statuses: Status::ALL,
        after: 0,
        limit: MAX_CHILDREN,
    };
    for head in page(scope.db(), &scope.workspace, &wanted)? {
        let facts = json!({"status": head.status, "priority": head.priority});
        parts.push(
            Part::facts("task", facts)
                .with_id(&head.id)
                .with_text(&head.title),
        );
    }
    Ok(())
}

/// The parts of a step.
pub(crate) fn of_step(scope: &Scope<'_>, step: &Located<Step>) -> Result<Vec<Part>, ToolError> {
    let record = &step.record;
    let lease = lease::live(scope, &record.id)?;
    let left = lease.as_ref().and_then(|lease| lease::left(scope, lease));
    let until = lease.as_ref().map(lease::until);
    let facts = json!({
        "path": step.path.to_string(), "status": record.status(), "created_at": record.created_at,
        "completed_at": record.completed_at, "leased_to": lease.map(|lease| lease.owner), "lease_events_left": left,
        "lease_until": until,
    });
    let mut parts = vec![
        Part::facts("step", facts).with_id(&record.id),
        Part::text("title", &record.title),
    ];
    listed(&mut parts, "criterion", &record.success_criteria);
    listed(&mut parts, "test", &record.tests);
    listed(&mut parts, "blocker", &record.blockers);
    if record.blocked {
        let reason = record.block_reason.as_deref().unwrap_or("no reason given");
        parts.push(Part::text("block_reason", reason));
    }
    let about = |event_type| event::about(scope.db(), &scope.workspace, &record.task, &record.id, event_type);
    if let Some(reason) = &record.forced {
        // The step may be closed again after it was forced and reopened.
        let forced = about(EventType::StepDone)?.pop();
        let facts = match &forced {
            Some(event) => json!({"at": event.at, "actor": event.actor}),
            None => json!({"at": record.completed_at}),
        };
        parts.push(Part::facts("forced", facts).with_text(reason));
    }
    checkpoints(scope, record, &mut parts)?;
    for event in about(EventType::StepVerified)? {
        taken_back("withdrawn", &event, &mut parts);
    }
    for event in about(EventType::StepDefined)? {
        taken_back("revoked", &event, &mut parts);
    }
    for event in about(EventType::StepReopened)? {
        let reason = event.data.get("reason").and_then(Json::as_str);
        let facts = json!({
            "at": event.at, "actor": event.actor, "confirmed_before": event.data.get("confirmed_before"),
        });
        parts.push(Part::facts("reopened", facts).with_text(reason.unwrap_or_default()));
    }
    steps(scope, &record.id, &step.path, &mut parts)?;
    recorded(scope, &record.id, &mut parts)?;
    Ok(parts)
}

/// Confirmations that an event took back, with their notes, and what it says about checkpoints that it does not confirm.
fn taken_back(kind: &'static str, event: &Event, parts: &mut Vec<Part>) {
    let member = |name: &str| event.data.get(name).and_then(Json::as_object);
    let (before, notes) = (member("confirmed_before"), member("notes"));
    let said = |checkpoint: &Checkpoint, of: Option<&Map<String, Json>>| {
        of.and_then(|of| of.get(checkpoint.as_str())).cloned()
    };
    for checkpoint in Checkpoint::ALL {
        let (confirmed, note) = (said(checkpoint, before), said(checkpoint, notes));
        if confirmed.is_none() && note.is_none() {
            continue;
        }
        let facts = json!({
            "at": event.at, "actor": event.actor, "confirmed_before": confirmed.as_ref().map(|_| true),
            "note_before": confirmed,
        });
        let note = note.as_ref().and_then(Json::as_str).unwrap_or_default();
        parts.push(
            Part::facts(kind, facts)
                .with_id(checkpoint.as_str())
                .with_text(note),
        );
    }
}

/// The required and the confirmed checkpoints, each with the faults of its evidence.
fn checkpoints(scope: &Scope<'_>, step: &Step, parts: &mut Vec<Part>) -> Result<(), ToolError> {
    let required = checkpoint::required(step, &BTreeSet::new());
    let all: BTreeSet<Checkpoint> = required.iter().chain(step.confirmed.keys()).copied().collect();
    let proof = Proof::of(scope, &step.id)?;
    let now = mutation::upcoming(scope)?;
    for checkpoint in all {
        let confirmation = step.confirmed.get(&checkpoint);
        let faults: Vec<String> = proof
            .faults(scope, checkpoint, &now, Look::Known)?
            .iter()
            .map(ToString::to_string)
            .collect();
        let facts = json!({
            "required": required.contains(&checkpoint), "confirmed": confirmation.is_some(),
            "confirmed_at": confirmation.map(|confirmation| confirmation.at),
            "confirmed_by": confirmation.and_then(|confirmation| confirmation.actor.as_ref()),
            "evidence": if faults.is_empty() { "proves it".to_owned() } else { faults.join("; ") },
        });
        let note = confirmation.and_then(|confirmation| confirmation.note.as_deref());
        let part = Part::facts("checkpoint", facts).with_id(checkpoint.as_str());
        parts.push(part.with_text(note.unwrap_or_default()));
    }
    Ok(())
}

/// The child steps and nodes of a task or step.
fn steps(scope: &Scope<'_>, parent: &str, above: &Path, parts: &mut Vec<Part>) -> Result<(), ToolError> {
    let (db, workspace) = (scope.db(), &scope.workspace);
    for child in children::<Step>(db, workspace, parent, MAX_CHILDREN)? {
        let path = above.child(child.ordinal).to_string();
        let step = child.record;
        let facts = json!({"path": path, "status": step.status(), "reopened": step.reopen_reason});
        let part = Part::facts("step", facts);
        parts.push(part.with_id(&step.id).with_text(&short(&step.title, 200)));
    }
    for child in children::<Node>(db, workspace, parent, MAX_CHILDREN)? {
        let path = format!("{above}.t:{}", child.ordinal);
        let node = child.record;
        let part = Part::facts("node", json!({"path": path, "status": node.status}));
        parts.push(part.with_id(&node.id).with_text(&short(&node.title, 200)));
    }
    Ok(())
}

/// The parts of a node.
pub(crate) fn of_node(node: &Located<Node>) -> Vec<Part> {
    let record = &node.record;
    let facts = json!({
        "path": node.path.to_string(), "status": record.status, "priority": record.priority, "step": record.step,
        "created_at": record.created_at,
    });
    let mut parts = vec![
        Part::facts("node", facts).with_id(&record.id),
        Part::text("title", &record.title),
    ];
    optional(&mut parts, "description", record.description.as_deref());
    optional(&mut parts, "context", record.context.as_deref());
    listed(&mut parts, "tag", &record.tags);
    parts
}

/// Notes and evidence, oldest first.
fn recorded(scope: &Scope<'_>, parent: &str, parts: &mut Vec<Part>) -> Result<(), ToolError> {
    let (db, workspace) = (scope.db(), &scope.workspace);
    for note in children::<Note>(db, workspace, parent, MAX_RECORDS)? {
        let note = note.record;
        let kind = if note.decision { "decision" } else { "note" };
        parts.push(
            Part::facts(kind, json!({"at": note.created_at, "actor": note.actor}))
                .with_id(&note.id)
                .with_text(&note.text),
        );
    }
    for evidence in children::<Evidence>(db, workspace, parent, MAX_RECORDS)? {
        let evidence = evidence.record;
        let is_stated = evidence.exit_code.is_some() && evidence.operation.is_none();
        let facts = json!({
            "stated": is_stated.then_some(true), "kind": evidence.kind, "exit_code": evidence.exit_code, "operation": evidence.operation, "checkpoint": evidence.checkpoint,
            "bytes": evidence.bytes, "artifact": evidence.artifact, "at": evidence.created_at,
            "actor": evidence.actor,
        });
        let title = evidence.title.as_deref().unwrap_or_default();
        parts.push(
            Part::facts("evidence", facts)
                .with_id(&evidence.id)
                .with_text(title),
        );
        if let Some(uri) = &evidence.uri {
            parts.push(Part::text("uri", uri).with_id(&evidence.id));
        }
        if evidence.bytes > 0 {
            let mut body = Part::text("body", "").with_id(&evidence.id);
            body.body = Some(Body {
                root: evidence.task,
                evidence: evidence.id,
            });
            parts.push(body);
        }
    }
    Ok(())
}

fn optional(parts: &mut Vec<Part>, kind: &'static str, text: Option<&str>) {
    parts.extend(text.map(|text| Part::text(kind, text)));
}

fn listed(parts: &mut Vec<Part>, kind: &'static str, entries: &[String]) {
    parts.extend(entries.iter().map(|entry| Part::text(kind, entry)));
}
