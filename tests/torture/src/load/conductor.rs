//! The pack `conductor`: jobs, their logs and their context, and sometimes Git status. Checks that appended text is
//! there exactly once.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Load, MARK, Request, text};
use crate::known::{Known, Told};
use crate::look::Look;
use crate::place::{REPOSITORY, Seen};
use crate::promise::Broken;

const JOB: &str = "job";
/// Kind of log entries and context blocks, identified by job, id and their unique word.
const ENTRY: &str = "entry of a job";
const BLOCK: &str = "context of a job";

pub(crate) struct Conductor;

impl Load for Conductor {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        let Some(job) = known.any(JOB, random) else {
            return begin(random);
        };
        let of = |mut arguments: Value| {
            arguments["job_id"] = json!(job.id);
            arguments
        };
        let write = |tool, arguments| Request::write(tool, of(arguments)).about(&job);
        let again = match random.u8(..16) {
            0 => return begin(random),
            1..5 => return write("devlog_append", json!({"content": super::word(random)})),
            5 | 6 => {
                let content = super::prose(random, 2_000);
                return write(
                    "context_add_block",
                    json!({"block_type": "NOTES", "content": content}),
                );
            }
            7 => {
                let answers = json!({"deliverables": [super::word(random)], "out_of_scope": ["nothing"]});
                return write("conductor_answer", json!({"answers": answers}));
            }
            8 => return write("git_status", json!({})),
            9 => return write("job_set_ready", json!({})),
            10 | 11 => return Request::read("job_get", of(json!({}))).telling(&job),
            12 | 13 => known.any(ENTRY, random),
            _ => known.any(BLOCK, random),
        };
        let asked = again.and_then(|thing| self.ask(&thing));
        asked.unwrap_or_else(|| Request::read("job_list", json!({"limit": 5})))
    }

    fn told(&self, request: &Request, reply: &Value) -> Vec<Told> {
        let told = match request.tool {
            "conductor_init" | "job_get" => text(reply, "/job_id").map(|id| Told::of(JOB, id, 0)),
            "devlog_append" => {
                let job = text(&request.arguments, "/job_id").unwrap_or_default();
                let said = text(&request.arguments, "/content").unwrap_or_default();
                Some(Told::of(ENTRY, format!("{job} {said}"), 1))
            }
            "context_add_block" => {
                let job = text(&request.arguments, "/job_id").unwrap_or_default();
                let said = text(&request.arguments, "/content").and_then(|text| text.lines().next());
                let block = text(reply, "/context_id").unwrap_or_default();
                Some(Told::of(
                    BLOCK,
                    format!("{job} {block} {}", said.unwrap_or_default()),
                    1,
                ))
            }
            "devlog_export" => once(request, text(reply, "/markdown")),
            "context_get_block" => once(request, text(reply, "/content")),
            _ => None,
        };
        told.into_iter().collect()
    }

    fn ask(&self, thing: &Told) -> Option<Request> {
        let mut words = thing.id.split(' ');
        let (job, second) = (words.next()?, words.next());
        let (tool, arguments) = match (thing.kind, second) {
            (JOB, _) => ("job_get", json!({"job_id": job})),
            (ENTRY, _) => ("devlog_export", json!({"job_id": job})),
            (BLOCK, Some(block)) => ("context_get_block", json!({"job_id": job, "context_id": block})),
            _ => return None,
        };
        Some(Request::read(tool, arguments).telling(thing))
    }

    fn lost(&self, code: &str) -> bool {
        code == "NOT_FOUND"
    }

    fn check(&self, db: &dyn Look, _: &Seen) -> anyhow::Result<Vec<Broken>> {
        let jobs = super::within(db, "SELECT count(*) FROM conductor_jobs", "conductor_init")?;
        let entries = format!("SELECT count(*) FROM conductor_logs WHERE content LIKE '{MARK}%'");
        let entries = super::equal(
            db,
            &entries,
            "SELECT count(*) FROM core_operations WHERE tool = 'devlog_append' AND success = 1",
            "entries of logs, and as many as the ledger says were appended",
        )?;
        let blocks = super::equal(
            db,
            "SELECT count(*) FROM conductor_contexts",
            "SELECT count(*) FROM core_operations WHERE tool = 'context_add_block' AND success = 1",
            "blocks of context, and as many as the ledger says were added",
        )?;
        Ok([jobs, entries, blocks].into_iter().flatten().collect())
    }
}

fn begin(random: &mut Rng) -> Request {
    let arguments = json!({"title": "Torture", "goal": super::word(random), "repo_root": REPOSITORY});
    Request::write("conductor_init", arguments)
}

/// Version 1 of the requested thing if its word is in the text exactly once, otherwise version 0.
fn once(request: &Request, found: Option<&str>) -> Option<Told> {
    let thing = request.about.as_ref()?;
    let word = thing.id.rsplit(' ').next()?;
    let times = found?.matches(word).count();
    Some(Told::of(thing.kind, &*thing.id, i64::from(times == 1)))
}
