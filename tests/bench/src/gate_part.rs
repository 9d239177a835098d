//! Cost of the gate's own part of each write, without the guest: hash the arguments, admit and count in the envelope,
//! fingerprint the mutation, hash and insert the ledger row, commit.

use std::path::Path;

use anyhow::Context as _;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Charge, Limits, Standing};
use tollgate_core::hash;
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Admission, Database, Envelope, OpType, Operation, Session};

use crate::workload::Request;

/// Calls in one commit.
const BATCH: usize = 32;

/// An envelope without limits in a separate database.
pub(crate) struct GatePart {
    session: Session,
    envelope: String,
}

impl GatePart {
    pub(crate) fn open(path: &Path) -> anyhow::Result<GatePart> {
        let session = Database::open(path)?.write_session()?;
        let envelope = SystemClock.new_id("env");
        let limits = Limits {
            max_mutations: Some(1_000_000),
            ..Limits::default()
        };
        session.begin_write()?;
        session.envelopes().open(&Envelope {
            id: envelope.clone(),
            standing: Standing::opened(limits, SystemClock.boot_ms()),
            opened_at: now(),
            host_id: "hst_bench".to_owned(),
            connection: "con_bench".to_owned(),
            ..Envelope::default()
        })?;
        session.commit()?;
        Ok(GatePart { session, envelope })
    }

    /// One round of calls: microseconds of CPU time for each, including commits.
    pub(crate) fn round(&mut self, request: &Request, calls: usize) -> anyhow::Result<f64> {
        let started = processor_us();
        let batches = calls.div_ceil(BATCH);
        for _ in 0..batches {
            self.session.begin_write()?;
            for _ in 0..BATCH {
                self.call(request.tool, &request.arguments)?;
            }
            self.session.commit()?;
        }
        Ok((processor_us() - started) / (batches * BATCH) as f64)
    }

    fn call(&self, tool: &str, arguments: &Value) -> anyhow::Result<()> {
        let args_hash = hash::sha256_hex(tollgate_sdk::canonical_json(arguments).as_bytes());
        let op_id = SystemClock.new_id("op");
        // Unique fingerprints, so that nothing counts as a repetition.
        let fingerprint = hash::sha256_hex(format!("{tool}\n{args_hash}\n{op_id}").as_bytes());
        let admission = self.session.envelopes().admit(
            &self.envelope,
            Charge::Mutations(1),
            SystemClock.boot_ms(),
            &now(),
        )?;
        anyhow::ensure!(
            matches!(admission, Admission::Admitted(_)),
            "an envelope without limits refused"
        );
        let repeated = self.session.evidence().repeated_mutation(
            &self.envelope,
            &fingerprint,
            Effect::Write.as_str(),
            None,
        )?;
        anyhow::ensure!(repeated.is_none(), "a new fingerprint was seen before");
        let row = self.row(tool, op_id, args_hash, fingerprint);
        self.session
            .ledger()
            .record(&row)
            .context("a row cannot be recorded")
    }

    fn row(&self, tool: &str, op_id: String, args_hash: String, fingerprint: String) -> Operation {
        let reply = hash::sha256_hex(op_id.as_bytes());
        Operation {
            op_id,
            envelope_id: Some(self.envelope.clone()),
            timestamp: now(),
            duration_ms: 0.5,
            op_type: OpType::Mutation,
            success: Some(true),
            pack: "task-store".to_owned(),
            tool: tool.to_owned(),
            effect: Effect::Write,
            error_code: None,
            failure_class: None,
            limit_triggered: None,
            actor: Some("orchestrator".to_owned()),
            client: Some("tollgate-bench".to_owned()),
            connection: "con_bench".to_owned(),
            request_id: Some("7".to_owned()),
            identity: None,
            host_id: "hst_bench".to_owned(),
            args_hash,
            result_hash: Some(reply),
            repo_before_hash: None,
            repo_after_hash: None,
            changed_paths: Some(r#"["task_store_events","task_store_tasks"]"#.to_owned()),
            diff_stats: None,
            short_diff: None,
            mutation_fingerprint: Some(fingerprint),
            failure_fingerprint: None,
            failing_tests: None,
            events: None,
            verdicts: None,
            artifact_ids: None,
            artifacts: Vec::new(),
            policy_rows: Vec::new(),
            ..Operation::default()
        }
    }
}

fn now() -> String {
    Timestamp::from_ms(SystemClock.now_ms()).to_string()
}

/// CPU time of this thread, in microseconds.
fn processor_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
