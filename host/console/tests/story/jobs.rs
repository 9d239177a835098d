//! Pages of a pack as a host would give them: a list of jobs, a job, and a tree.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tollgate_console::{PackPage, PackPages, Refusal, Replied};
use tollgate_core::identity::Identity;

use super::HOSTILE;

/// A pack that replies the same to everybody.
pub(crate) struct Jobs;

impl PackPages for Jobs {
    fn pages(&self) -> Vec<PackPage> {
        let page = |tool: &str, title: &str, items: &[(&str, Option<&str>)]| PackPage {
            tool: tool.to_owned(),
            pack: "conductor".to_owned(),
            title: title.to_owned(),
            items: items
                .iter()
                .map(|(list, key)| ((*list).to_owned(), key.map(str::to_owned)))
                .collect(),
            ..PackPage::default()
        };
        vec![
            PackPage {
                opens: Some((
                    "job_get".to_owned(),
                    BTreeMap::from([("job_id".to_owned(), "job_id".to_owned())]),
                )),
                cursors: vec!["cursor".to_owned()],
                integers: vec!["cursor".to_owned()],
                ..page("job_list", "Jobs", &[("jobs", None)])
            },
            PackPage {
                asks: vec!["job_id".to_owned()],
                ..page("job_get", "Job", &[("steps", None)])
            },
            PackPage {
                is_tree: true,
                group: Some("workspace".to_owned()),
                pack: "gsd".to_owned(),
                ..page(
                    "gsd_status",
                    "Milestones",
                    &[("milestones", Some("milestone_id")), ("slices", Some("unit"))],
                )
            },
        ]
    }

    fn call<'a>(
        &'a self,
        page: &'a PackPage,
        arguments: Map<String, Value>,
        _: Option<Identity>,
    ) -> BoxFuture<'a, Replied> {
        Box::pin(async move { reply(page, &arguments) })
    }
}

fn reply(page: &PackPage, arguments: &Map<String, Value>) -> Replied {
    match page.tool.as_str() {
        "job_list" if arguments.contains_key("cursor") => Ok(json!({"jobs": []})),
        "job_list" => Ok(json!({
            "jobs": [
                {"job_id": "JOB-2QZ4", "title": "Release 2.4", "status": "EXECUTING", "steps": 5, "steps_done": 2,
                    "tags": ["release"], "updated_at": "2026-11-21T06:30:00.000Z"},
                {"job_id": HOSTILE[0], "title": HOSTILE[1], "status": HOSTILE[2], "steps": 1, "tags": HOSTILE},
            ],
            "next_cursor": 100,
        })),
        "job_get" if arguments["job_id"] == "JOB-2QZ4" => Ok(json!({
            "job_id": "JOB-2QZ4", "title": "Release 2.4", "goal": format!("Ship it.\n{}", HOSTILE[3]), "status": "EXECUTING",
            "steps": [
                {"step_id": "S1", "title": "Freeze the branch", "status": "COMPLETED", "gates": 1, "approved": false},
                {"step_id": "S2", "title": HOSTILE[4], "status": "ACTIVE", "gates": 2, "approved": true},
            ],
            "plan": {"scope": "the parser", "risks": [HOSTILE[0]], "deep": {"er": {"still": {"on": 1}}}},
            "attempts": [{"step_id": "S2", "result": "rejected", "gates": [{"name": "tests", "passed": false}]}],
        })),
        "gsd_status" => Ok(json!({
            "milestones": [
                {"workspace": "shop", "milestone_id": "M01", "title": "Checkout", "status": "in_progress"},
                {"workspace": "shop", "milestone_id": "M02", "title": HOSTILE[0], "status": "pending"},
            ],
            "slices": [
                {"workspace": "shop", "unit": "M01/S01", "title": "Cart", "status": "complete", "owner": "ada"},
            ],
        })),
        _ => Err(Refusal {
            code: "JOB_NOT_FOUND".to_owned(),
            message: format!("there is no job {}", HOSTILE[1]),
            remediation: "Look with job_list.".to_owned(),
        }),
    }
}
