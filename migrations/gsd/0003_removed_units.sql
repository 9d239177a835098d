-- Units that were removed from a plan and had a file, which says so from then on.
CREATE TABLE gsd_removed (
    workspace TEXT NOT NULL,
    milestone_id TEXT NOT NULL,
    unit TEXT NOT NULL,
    title TEXT NOT NULL,
    removed_at TEXT NOT NULL,
    removed_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (workspace, unit)
);
CREATE INDEX gsd_removed_by_milestone ON gsd_removed (workspace, milestone_id, unit);
