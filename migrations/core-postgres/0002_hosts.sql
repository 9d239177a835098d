-- Hosts that work with the database, each with a row that it keeps fresh by the clock of the server.
CREATE TABLE core_hosts (
    id TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    lock_key INTEGER NOT NULL,
    lease_ms BIGINT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    seen_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    version TEXT NOT NULL,
    machine TEXT NOT NULL,
    url TEXT,
    workspaces TEXT NOT NULL
) WITH (fillfactor = 50);

-- Secrets that all hosts of the database share.
CREATE TABLE core_secrets (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Public keys with which hosts sign what they say of the ledger.
CREATE TABLE core_keys (
    public_key TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    announced_at TEXT NOT NULL
);

-- Refuses the transaction of a host that counts as gone. While it lasts nobody can bury the host.
CREATE FUNCTION core_alive(host text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM core_hosts WHERE id = host FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the host counts as gone' USING ERRCODE = 'TG005';
    END IF;
END $$;
