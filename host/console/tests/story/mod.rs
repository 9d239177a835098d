//! A data directory with a story in it: an agent runs in circles, another plans a release, a call waits for a person.
//! Tests read it, and the pictures of the documentation are made of it.

pub(crate) mod answers;
pub(crate) mod jobs;

use std::path::Path;

use serde_json::{Value, json};
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Limits, Standing, State};
use tollgate_core::hash::sha256_hex;
use tollgate_sdk::{Answering, ApprovalRequest, NextCall, Timestamp};
use tollgate_store::artifact::{Artifact, ArtifactKind};
use tollgate_store::data_dir::DataDir;
use tollgate_store::storage::{AskedBy, Database, Ending, Envelope, NewApproval, OpType, Operation, Session};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// Text that would do harm if a page took it for something else than text.
pub(crate) const HOSTILE: [&str; 5] = [
    "<img src=x onerror=\"alert(1)\">",
    "\"><script>alert(document.domain)</script>",
    "gnp.\u{202e}exe\u{202c} \u{1b}[2J\u{1b}]0;owned\u{7}",
    "javascript:alert(1)//</td></table>",
    "'};--</style><svg/onload=alert(1)>\u{200b}",
];

/// Writes stories into a data directory.
pub(crate) struct Writer {
    session: Session,
    artifacts: Option<std::path::PathBuf>,
    number: usize,
    now_ms: i64,
    boot_ms: i64,
}

impl Writer {
    /// Opens a data directory, which is made if it is not there.
    pub(crate) fn open(path: &Path) -> Writer {
        let data = DataDir::open(path).unwrap();
        let database = Database::open(&data.database()).unwrap();
        data.private_dir("artifacts").unwrap();
        Writer {
            session: database.write_session().unwrap(),
            artifacts: Some(path.join("artifacts")),
            number: 0,
            now_ms: SystemClock.now_ms(),
            boot_ms: SystemClock.boot_ms(),
        }
    }

    /// Everything.
    pub(crate) fn tell_all(&mut self) {
        self.background(14, 30);
        self.session.begin_write().unwrap();
        self.parser();
        self.release();
        self.session.commit().unwrap();
        self.approvals();
    }

    /// Text that somebody hostile would have a page show.
    pub(crate) fn tell_hostile(&mut self) {
        self.number = 900_000;
        self.session.begin_write().unwrap();
        self.hostile();
        self.session.commit().unwrap();
        self.hostile_approval();
    }

    fn at(&self, ago_ms: i64) -> String {
        Timestamp::from_ms(self.now_ms - ago_ms).to_string()
    }

    fn call(&mut self, tool: &str, ago_ms: i64) -> Operation {
        self.number += 1;
        let ended = self.at(ago_ms);
        let mut row = Operation::for_tests(self.number, None, &ended);
        let (pack, effect, op_type, ms) = match tool {
            "test_run" => ("convergence", Effect::Run, OpType::TestRun, 812.4),
            "mutation_record" => ("convergence", Effect::Run, OpType::Mutation, 94.0),
            "git_commit" => ("conductor", Effect::Run, OpType::Mutation, 61.2),
            "job_start" => ("conductor", Effect::Run, OpType::Mutation, 7.7),
            "job_status" | "tasks_next" | "repo_search" => ("tasks", Effect::Read, OpType::Query, 1.3),
            "envelope_open" => ("core", Effect::Write, OpType::Control, 2.1),
            _ => ("task-store", Effect::Write, OpType::Mutation, 3.4),
        };
        row.op_id = format!("op_{:013}{:013}", self.now_ms, self.number);
        row.pack = pack.to_owned();
        row.tool = tool.to_owned();
        row.effect = effect;
        row.op_type = op_type;
        row.duration_ms = ms + f64::from(u32::try_from(self.number * 37 % 90).unwrap()) / 10.0;
        row.client = Some("claude-code 2.1.0".to_owned());
        row.args_hash = sha256_hex(format!("{tool} {}", self.number).as_bytes());
        row.result_hash = Some(sha256_hex(row.op_id.as_bytes()));
        row
    }

    fn add(&self, row: &Operation) {
        self.session.ledger().record(row).unwrap();
        self.session.envelopes().note_fingerprints(row).unwrap();
    }

    /// Calls of the last days, so that figures have something to show.
    pub(crate) fn background(&mut self, days: i64, each: i64) {
        self.session.begin_write().unwrap();
        // Many rows are closer to each other, so that none is in the future.
        let apart = (9 * MINUTE).min(DAY / (each + 23));
        for day in (1..=days).rev() {
            for one in 0..each + (day * 17) % 23 {
                let ago = day * DAY - one * apart;
                let tool = [
                    "task_create",
                    "tasks_next",
                    "test_run",
                    "repo_search",
                    "task_transition",
                    "git_commit",
                ];
                let mut row = self.call(tool[usize::try_from((one * 5 + day) % 6).unwrap()], ago);
                row.actor = Some(
                    ["token:grace", "claimed:ada", "claimed:builder-7"][usize::try_from(one % 3).unwrap()]
                        .to_owned(),
                );
                if row.tool == "test_run" {
                    row.outcome = Some(json!({"result": "passed", "failed": 0, "total": 214}).to_string());
                }
                row.verdicts = Some(verdicts(one % 11 == 3 && day % 3 == 0, one % 7 == 2));
                if one % 11 == 3 && day % 3 == 0 {
                    fail(&mut row, "FROZEN");
                }
                self.add(&row);
            }
        }
        self.session.commit().unwrap();
    }

    fn envelope(&mut self, id: &str, label: &str, ago_ms: i64, limits: Limits, identity: Option<&str>) {
        let envelope = Envelope {
            id: id.to_owned(),
            standing: Standing::opened(limits, self.boot_ms - ago_ms),
            workspace: Some("shop".to_owned()),
            label: Some(label.to_owned()),
            opened_at: self.at(ago_ms),
            git_head: Some("3f2c1a9d07c44e1b8a5de0f7a1b2c3d4e5f60718".to_owned()),
            host_id: "hst_sample".to_owned(),
            connection: "con_sample".to_owned(),
            identity: identity.map(str::to_owned),
            detached_until_ms: Some(self.now_ms + DAY),
            ..Envelope::default()
        };
        self.session.envelopes().open(&envelope).unwrap();
    }

    fn count(&self, id: &str, charge: tollgate_core::envelope::Charge) {
        self.session
            .envelopes()
            .admit(id, charge, self.boot_ms, &self.at(0))
            .unwrap();
    }

    /// An agent that goes to and fro between two states while the same test fails.
    fn parser(&mut self) {
        use tollgate_core::envelope::Charge;
        let id = "env_01m8qk3v7w2r5parser00haqfsf7z";
        let limits = Limits {
            max_mutations: Some(20),
            max_test_runs: Some(6),
            max_duration_sec: Some(3_600),
            max_edits: None,
        };
        self.envelope(id, "fix the parser", 34 * MINUTE, limits, None);
        let mut ago = 33 * MINUTE;
        let mine = |mut row: Operation| {
            row.envelope_id = Some(id.to_owned());
            row.actor = Some("claimed:ada".to_owned());
            row.verdicts = Some(verdicts(false, false));
            row
        };
        for tool in ["repo_search", "tasks_next"] {
            let row = mine(self.call(tool, ago));
            self.add(&row);
            ago -= 20_000;
        }
        for (step, state) in [
            "one", "two", "one", "two", "three", "two", "three", "two", "three",
        ]
        .into_iter()
        .enumerate()
        {
            let mut row = mine(self.call("mutation_record", ago));
            row.mutation_fingerprint = Some(sha256_hex(state.as_bytes()));
            row.changed_paths = Some(json!(["src/parser/quotes.rs"]).to_string());
            row.diff_stats = Some(json!({"files_changed": 1, "insertions": 4, "deletions": 3}).to_string());
            row.short_diff = Some("M src/parser/quotes.rs".to_owned());
            self.keep(&mut row, ArtifactKind::Diff, &diff(state));
            self.add(&row);
            self.count(id, Charge::Mutations(1));
            ago -= 95_000;
            if step % 3 != 2 {
                let mut row = mine(self.call("test_run", ago));
                failing(&mut row, "parses nested quotes");
                self.keep(&mut row, ArtifactKind::Log, "running 14 tests\ntest parser::plain ... ok\ntest parser::nested ... FAILED\n\u{1b}[31massertion failed\u{1b}[0m: left == right");
                self.add(&row);
                self.count(id, Charge::TestRun);
                ago -= 110_000;
            }
        }
        let mut row = mine(self.call("git_commit", ago));
        row.verdicts = Some(verdicts(true, false));
        fail(&mut row, "FROZEN");
        self.keep(
            &mut row,
            ArtifactKind::Arguments,
            r#"{"workspace":"shop","message":"Parse nested quotes"}"#,
        );
        self.keep(
            &mut row,
            ArtifactKind::Result,
            r#"{"error":{"code":"FROZEN","message":"the release is frozen until Monday"}}"#,
        );
        self.add(&row);
        let mut row = mine(self.call("test_run", ago - 45_000));
        fail(&mut row, "TEST_BUDGET_EXHAUSTED");
        row.limit_triggered = Some("max_test_runs".to_owned());
        self.add(&row);
    }

    /// A person's own work, and envelopes that are over.
    fn release(&mut self) {
        let id = "env_01m8qk3v7w2release0000bja53y89";
        let limits = Limits {
            max_mutations: Some(40),
            ..Limits::default()
        };
        self.envelope(id, "plan the release", 26 * MINUTE, limits, Some("token:grace"));
        for one in 0..7 {
            let mut row = self.call("task_create", 9 * MINUTE - one * 40_000);
            row.envelope_id = Some(id.to_owned());
            row.actor = Some("token:grace".to_owned());
            row.identity = Some(tollgate_core::identity::Identity::for_tests("token:grace"));
            row.verdicts = Some(verdicts(false, one == 3));
            if one == 4 {
                fail(&mut row, "SECRET_IN_ARGUMENTS");
                row.verdicts = Some(
                    json!([{"policy": "secret-scan", "phase": "request", "mode": "enforce", "verdict": "deny",
                        "code": "SECRET_IN_ARGUMENTS", "us": 312}])
                    .to_string(),
                );
            }
            self.add(&row);
            self.count(id, tollgate_core::envelope::Charge::Mutations(1));
        }
        for (id, label, state) in [
            (
                "env_01m8qk3v7w2search00000closed1",
                "add the search",
                State::ClosedSuccess,
            ),
            (
                "env_01m8qk3v7w2images00000closed2",
                "shrink the images",
                State::ClosedInterrupted,
            ),
        ] {
            self.envelope(id, label, 3 * 60 * MINUTE, Limits::default(), None);
            let at = self.at(2 * 60 * MINUTE);
            let ending = Ending::by_host(state, "CONNECTION_CLOSED", &at, 0);
            self.session.envelopes().close(id, ending).unwrap();
        }
        let mut row = self.call("job_start", 2 * MINUTE);
        row.actor = Some("claimed:builder-7".to_owned());
        fail(&mut row, "APPROVAL_REQUIRED");
        row.verdicts = Some(
            json!([{"policy": "approve-deploys", "phase": "request", "mode": "enforce", "verdict": "ask",
                "code": "APPROVAL_REQUIRED", "us": 1_240}])
            .to_string(),
        );
        self.add(&row);
    }

    /// Everything that a caller can say, said by somebody hostile.
    fn hostile(&mut self) {
        let id = "env_01m8qk3v7w2<b>hostile</b>\"'";
        self.envelope(id, HOSTILE[0], 4 * MINUTE, Limits::default(), None);
        for (at, text) in HOSTILE.into_iter().enumerate() {
            let mut row = self.call("test_run", MINUTE - i64::try_from(at).unwrap() * 5_000);
            row.envelope_id = Some(id.to_owned());
            row.actor = Some(format!("claimed:{text}"));
            row.client = Some(text.to_owned());
            failing(&mut row, text);
            row.changed_paths = Some(json!([text]).to_string());
            row.short_diff = Some(format!("+ {text}\n- {text}"));
            row.events = Some(json!([{"type": "note", "note": text}]).to_string());
            row.verdicts = Some(
                json!([{"policy": text, "phase": text, "mode": text, "verdict": text, "code": text, "cause": text}]).to_string(),
            );
            for kind in [
                ArtifactKind::Arguments,
                ArtifactKind::Result,
                ArtifactKind::Diff,
                ArtifactKind::Log,
            ] {
                self.keep(&mut row, kind, &format!("{text}\n+{text}\n-{text}\n@@ {text}"));
            }
            self.add(&row);
        }
    }

    /// Calls of now, as a live page hears of them.
    pub(crate) fn add_now(&mut self, rows: usize) {
        self.now_ms = SystemClock.now_ms();
        self.number = usize::try_from(self.now_ms % 1_000_000_000).unwrap();
        for _ in 0..rows {
            self.session.begin_write().unwrap();
            let mut row = self.call("task_create", 0);
            row.actor = Some("claimed:ada".to_owned());
            self.add(&row);
            self.session.commit().unwrap();
        }
    }

    /// Keeps content with a row, as the host's store does.
    fn keep(&self, row: &mut Operation, kind: ArtifactKind, content: &str) {
        let Some(folder) = &self.artifacts else { return };
        let hash = sha256_hex(content.as_bytes());
        #[allow(clippy::disallowed_methods, reason = "a test makes the file")]
        std::fs::write(folder.join(&hash), content).unwrap();
        let id = format!("art_{}_{}", row.op_id, kind.as_str());
        let size = i64::try_from(content.len()).unwrap();
        let mut ids: Vec<String> = row
            .artifact_ids
            .as_deref()
            .map_or_else(Vec::new, |ids| serde_json::from_str(ids).unwrap());
        ids.push(id.clone());
        row.artifact_ids = Some(json!(ids).to_string());
        row.artifacts.push(Artifact {
            id,
            hash,
            kind,
            holder: String::new(),
            size,
            total_size: size,
            created_at: row.timestamp.clone(),
            expires_at: Timestamp::from_ms(self.now_ms + 30 * DAY).to_string(),
        });
    }

    /// Requests of a policy, of task-store and of the conductor that wait.
    fn approvals(&mut self) {
        let deploy = json!({"task_id": "tsk_1", "task": "Deploy the parser", "side_effect": "deploy"});
        let resolve = Answering::new(NextCall::new(
            "task_resolve_approval",
            json!({"approval_id": "apr_01m8"}),
        ));
        self.request(
            "task-store",
            "apr_01m8",
            "Deploy to production",
            deploy,
            Some(resolve),
        );
        let step = json!({"job": "Release 2.4", "step": "Check the release by hand"});
        let approve = Answering::new(NextCall::new(
            "step_approve",
            json!({"job_id": "JOB-2QZ4", "step_id": "S3"}),
        ));
        self.request(
            "conductor",
            "JOB-2QZ4",
            "Approve S3 of Release 2.4",
            step,
            Some(approve),
        );
        let call = json!({"tool": "job_start", "arguments": {"job_id": "JOB-2QZ4"}});
        self.request(
            "policy-side-effect-approval",
            "k",
            "Run job_start of conductor",
            call,
            None,
        );
    }

    fn hostile_approval(&self) {
        let detail = json!({HOSTILE[0]: HOSTILE[1], "text": HOSTILE});
        self.request("task-store", HOSTILE[1], HOSTILE[1], detail, None);
    }

    fn request(&self, component: &str, key: &str, title: &str, detail: Value, answering: Option<Answering>) {
        let request = ApprovalRequest {
            requested_by: Some("builder-7".to_owned()),
            answering,
            ..ApprovalRequest::new(key, title, detail)
        };
        let by = AskedBy {
            op_id: "op_asked".to_owned(),
            tool: "job_start".to_owned(),
            connection: "con_1".to_owned(),
            ..AskedBy::default()
        };
        let new = NewApproval::new(component, request, by, (1, self.now_ms - 3 * MINUTE));
        self.session.begin_write().unwrap();
        self.session.approvals().insert(&new).unwrap();
        self.session.commit().unwrap();
    }
}

fn fail(row: &mut Operation, code: &str) {
    row.success = Some(false);
    row.error_code = Some(code.to_owned());
    row.failure_class = Some("refused".to_owned());
}

fn failing(row: &mut Operation, test: &str) {
    row.outcome = Some(
        json!({"result": "failed", "failed": 2, "total": 14, "message": "assertion failed: left == right"})
            .to_string(),
    );
    row.failing_tests = Some(json!([test, "parses comments"]).to_string());
    row.failure_fingerprint = Some(sha256_hex(test.as_bytes()));
}

fn verdicts(frozen: bool, loops: bool) -> String {
    let one = |policy: &str, mode: &str, verdict: &str, code: Option<&str>, us: i64| -> Value {
        let mut said =
            json!({"policy": policy, "phase": "request", "mode": mode, "verdict": verdict, "us": us});
        if let Some(code) = code {
            said["code"] = json!(code);
        }
        said
    };
    let freeze = if frozen {
        ("deny", Some("FROZEN"))
    } else {
        ("pass", None)
    };
    let breaker = if loops {
        ("deny", Some("LOOP"))
    } else {
        ("pass", None)
    };
    json!([
        one("release-freeze", "enforce", freeze.0, freeze.1, 310),
        one("secret-scan", "enforce", "pass", None, 940),
        one("loop-breaker", "audit", breaker.0, breaker.1, 180),
    ])
    .to_string()
}

fn diff(state: &str) -> String {
    format!(
        "diff --git a/src/parser/quotes.rs b/src/parser/quotes.rs\n--- a/src/parser/quotes.rs\n+++ b/src/parser/quotes.rs\n\
         @@ -41,7 +41,8 @@ fn quoted(input: &mut Input) -> Option<Token> {{\n     let start = input.at();\n-    let end = \
         input.find('\"')?;\n+    let end = input.closing_quote({state})?;\n+    input.skip(1);\n     \
         Some(Token::quoted(start, end))\n }}\n"
    )
}
