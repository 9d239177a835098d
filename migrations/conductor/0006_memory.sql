-- Memory of a repository: shared by all jobs with the same repo_root, and kept when a job is deleted.

-- One spelling of each repository, because it is a key from here on.
UPDATE conductor_jobs SET repo_root = rtrim(trim(repo_root), '/') WHERE repo_root IS NOT NULL;
UPDATE conductor_snapshots SET repo_root = rtrim(trim(repo_root), '/');

-- Mistakes with their lessons.
CREATE TABLE conductor_lessons (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    -- The repository, or the job itself if it has none.
    place TEXT NOT NULL,
    -- The job that recorded it, which may be deleted.
    job_id TEXT NOT NULL,
    related_step_id TEXT,
    -- The rejected attempt that it learns from.
    attempt_id TEXT,
    title TEXT NOT NULL,
    what_happened TEXT NOT NULL,
    why TEXT NOT NULL,
    lesson TEXT NOT NULL,
    avoid_next_time TEXT NOT NULL,
    tags_json TEXT NOT NULL,
    at TEXT NOT NULL,
    -- 1 if a rejection recorded it by itself.
    automatic BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX conductor_lessons_by_job ON conductor_lessons (job_id, number);
CREATE INDEX conductor_lessons_by_place ON conductor_lessons (place, number);
INSERT INTO conductor_lessons (number, id, place, job_id, related_step_id, attempt_id, title, what_happened, why,
        lesson, avoid_next_time, tags_json, at)
    SELECT m.number, m.id, coalesce(j.repo_root, j.id), m.job_id, m.related_step_id, m.attempt_id, m.title,
        m.what_happened, m.why, m.lesson, m.avoid_next_time, m.tags_json, m.at
    FROM conductor_mistakes m JOIN conductor_jobs j ON j.id = m.job_id;
DROP TABLE conductor_mistakes;

-- One line about a file. Of several jobs' lines the latest is kept.
CREATE TABLE conductor_file_notes (
    -- The repository, or a job: its own lines go before those of its repository.
    place TEXT NOT NULL,
    path TEXT NOT NULL,
    description TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (place, path)
);
INSERT INTO conductor_file_notes (place, path, description, updated_at)
    SELECT place, path, description, updated_at FROM (
        SELECT coalesce(j.repo_root, j.id) AS place, d.path AS path, d.description AS description,
            d.updated_at AS updated_at,
            row_number() OVER (
                PARTITION BY coalesce(j.repo_root, j.id), d.path ORDER BY d.updated_at DESC, d.job_id
            ) AS nth
        FROM conductor_descriptions d JOIN conductor_jobs j ON j.id = d.job_id
    ) AS ranked WHERE nth = 1;
DROP TABLE conductor_descriptions;

-- Directories of registered workspaces, as Git told them.
CREATE TABLE conductor_workspaces (
    name TEXT PRIMARY KEY,
    path TEXT NOT NULL
);
