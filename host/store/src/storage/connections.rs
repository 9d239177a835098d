//! Connections that components watch, so that what they hold for a caller is released when its connection ends.

use super::engine::sql;
use super::error::StoreResult;
use super::handles::Connections;

impl Connections<'_> {
    /// Stores a host's connection under a name. Requires a write transaction.
    pub fn watch(self, name: &str, host_id: &str, connection: &str) -> StoreResult<()> {
        let sql = "INSERT INTO core_connections (name, host_id, connection) VALUES (?1, ?2, ?3)
            ON CONFLICT (name) DO NOTHING";
        self.0.engine.run(sql, sql![name, host_id, connection]).map(drop)
    }

    /// Host of a connection. `None` if the connection has ended.
    pub fn host_of(self, name: &str) -> StoreResult<Option<String>> {
        self.0.engine.maybe(
            "SELECT host_id FROM core_connections WHERE name = ?1",
            sql![name],
            |row| row.get(0),
        )
    }

    /// Removes one connection of a host, or all of them.
    pub fn forget(self, host_id: &str, connection: Option<&str>) -> StoreResult<usize> {
        let sql = "DELETE FROM core_connections WHERE host_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR connection = ?2)";
        self.0.engine.run(sql, sql![host_id, connection])
    }

    /// Hosts with stored connections.
    pub fn hosts(self) -> StoreResult<Vec<String>> {
        self.0
            .engine
            .all("SELECT DISTINCT host_id FROM core_connections", &[], |row| {
                row.get(0)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;

    #[test]
    fn a_connection_is_known_until_it_or_its_host_ends() {
        let (_dir, session) = fixture::ledger("");
        session.begin_write().unwrap();
        for (name, host, connection) in [
            ("a", "h1", "c1"),
            ("b", "h1", "c2"),
            ("c", "h2", "c1"),
            ("a", "h1", "c1"),
        ] {
            session.connections().watch(name, host, connection).unwrap();
        }
        assert_eq!(session.connections().host_of("a").unwrap().as_deref(), Some("h1"));
        assert_eq!(session.connections().forget("h1", Some("c1")).unwrap(), 1);
        assert_eq!(session.connections().host_of("a").unwrap(), None);
        assert_eq!(session.connections().hosts().unwrap(), ["h1", "h2"]);
        assert_eq!(session.connections().forget("h1", None).unwrap(), 1);
        assert_eq!(session.connections().host_of("c").unwrap().as_deref(), Some("h2"));
    }
}
