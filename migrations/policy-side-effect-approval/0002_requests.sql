-- Who asked for an approval, by the name that was given and by what the transport proved.
CREATE TABLE policy_side_effect_approval_requests (
    approval_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    identity TEXT
);
