//! Devlog, decisions, mistakes.

use expect_test::expect;

use crate::harness::{Bench, step};

#[test]
fn the_log_holds_what_was_said() {
    let bench = Bench::new().started(serde_json::json!([step("one", serde_json::json!([]))]));
    let log = bench.run(
        r#"
        devlog_append {"content": "began", "step_id": "S1", "commit_hash": "abcdef0"} ? log_type step_id commit_hash
        devlog_append {"content": "went wrong", "log_type": "POSTMORTEM"} ? log_type
        devlog_append {"content": "", "commit_hash": "zz"}
        devlog_append {"content": "x", "step_id": "S9"}
        decision_record {"decision": "Use the csv module", "rationale": "no new dependency", "alternatives": ["pandas: too large"]} ? content
        devlog_list {"log_type": "DECISION"} ? entries.0.log_type truncated
        devlog_list {"step_id": "S1"} ? entries.0.content entries.1
        devlog_list {"limit": 1} ? entries.0.log_type truncated
        devlog_export {} ? entries markdown
        mistake_record {"title": "Wrong quotes", "what_happened": "a field broke", "why": "by hand", "lesson": "use the module", "avoid_next_time": "hand-written CSV", "tags": ["CSV"], "related_step_id": "S1"} ? tags related_step_id
        mistake_record {"title": "x", "what_happened": " ", "why": "y", "lesson": "<what was learned>", "avoid_next_time": "z"}
        mistake_record {"title": "x", "what_happened": "w", "why": "y", "lesson": "l", "avoid_next_time": "z", "attempt_id": "ATT-NONE"}
        mistake_list {"step_id": "S1"} ? mistakes.0.title
        mistake_list {"tag": "other"} ? mistakes
        "#,
    );
    expect![[r#"
        ok log_type="DEVLOG" step_id="S1" commit_hash="abcdef0"
        ok log_type="POSTMORTEM"
        err INVALID_ARGUMENTS: content is blank; and 1 more reason
          - INVALID_ARGUMENTS (content): content is blank
          - INVALID_ARGUMENTS (commit_hash): commit_hash is not a commit hash
        err NOT_FOUND: there is no step S9
          - NOT_FOUND: there is no step S9
        ok
        Use the csv module
        Why: no new dependency
        Not chosen: pandas: too large
        ok entries.0.log_type="DECISION" truncated=false
        ok entries.0.content="began" entries.1=null
        ok entries.0.log_type="DECISION" truncated=true
        ok entries=6
        # Devlog: Export

        - 2026-01-01T00:00:03.000Z SYSTEM: policies changed: policy require_tests_evidence: true becomes false; policy require_diff_summary: true becomes false; policy checkpoint_interval_steps: 5 becomes 0
        - 2026-01-01T00:00:05.000Z SYSTEM: ready
        - 2026-01-01T00:00:06.000Z SYSTEM: started
        - 2026-01-01T00:00:07.000Z DEVLOG S1 (abcdef0): began
        - 2026-01-01T00:00:08.000Z POSTMORTEM: went wrong
        - 2026-01-01T00:00:11.000Z DECISION: Use the csv module
          Why: no new dependency
          Not chosen: pandas: too large

        ok tags=["csv"] related_step_id="S1"
        err INVALID_ARGUMENTS: lesson is still a placeholder; say what it stands for; and 1 more reason
          - INVALID_ARGUMENTS (lesson): lesson is still a placeholder; say what it stands for
          - INVALID_ARGUMENTS (what_happened): what_happened is blank
        err NOT_FOUND: there is no attempt ATT-NONE
          - NOT_FOUND: there is no attempt ATT-NONE
        ok mistakes.0.title="Wrong quotes"
        ok mistakes=[]
    "#]].assert_eq(&log);
}
