-- Answers to requests for approval, as task_resolve_approval gave them. A side effect that wants another
-- approval gets another round.
CREATE TABLE policy_side_effect_approval_answers (
    kind TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    round BIGINT NOT NULL,
    status TEXT NOT NULL,
    resolved_by TEXT NOT NULL,
    answered_at BIGINT NOT NULL,
    PRIMARY KEY (kind, args_hash, round)
);
