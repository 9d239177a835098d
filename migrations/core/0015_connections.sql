-- Connections that components asked about, by a name that says nothing of them. A row goes with its connection; rows of
-- a host that is gone count for nothing, and the next host removes them.
CREATE TABLE core_connections (
    name TEXT NOT NULL PRIMARY KEY,
    host_id TEXT NOT NULL,
    connection TEXT NOT NULL
);
CREATE INDEX core_connections_by_host ON core_connections (host_id, connection);
