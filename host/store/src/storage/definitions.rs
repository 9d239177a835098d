//! Definitions of tools as last loaded, and as last accepted by the operator.

use super::engine::{Once, sql};
use super::error::StoreResult;
use super::handles::Components;

/// A remembered definition of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Pack of the tool.
    pub pack: String,
    /// Name of the tool.
    pub tool: String,
    /// SHA-256 of the definition, in hex.
    pub hash: String,
    /// Definition as JSON, as of the last load.
    pub definition: String,
    /// Time since which the definition has been the same.
    pub changed_at: String,
    /// Definition that the operator accepted, if any.
    pub accepted: Option<String>,
}

impl Components<'_> {
    /// All remembered definitions.
    pub fn definitions(self) -> StoreResult<Vec<Remembered>> {
        let sql = "SELECT pack, tool, hash, definition, changed_at, accepted
            FROM core_tool_definitions ORDER BY pack, tool";
        self.0.engine.all(Once(sql), &[], |row| {
            Ok(Remembered {
                pack: row.get(0)?,
                tool: row.get(1)?,
                hash: row.get(2)?,
                definition: row.get(3)?,
                changed_at: row.get(4)?,
                accepted: row.get(5)?,
            })
        })
    }

    /// Replaces the remembered definition of a tool.
    pub fn remember_definition(self, definition: &Remembered) -> StoreResult<()> {
        let sql = "INSERT INTO core_tool_definitions (pack, tool, hash, definition, changed_at, accepted)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (pack, tool) DO UPDATE SET hash = excluded.hash, definition = excluded.definition,
                changed_at = excluded.changed_at, accepted = excluded.accepted";
        self.0.engine.run(
            sql,
            sql![
                definition.pack,
                definition.tool,
                definition.hash,
                definition.definition,
                definition.changed_at,
                definition.accepted,
            ],
        )?;
        Ok(())
    }

    /// Packs, and policies as `policies.NAME`, with remembered definitions.
    pub fn defined_packs(self) -> StoreResult<Vec<String>> {
        self.0.engine.all(
            "SELECT DISTINCT pack FROM core_tool_definitions ORDER BY pack",
            &[],
            |row| row.get(0),
        )
    }

    /// Accepts a pack's tools in their current form. Returns how many were not accepted before.
    pub fn accept_definitions(self, pack: &str) -> StoreResult<usize> {
        let sql = "UPDATE core_tool_definitions SET accepted = definition
            WHERE pack = ?1 AND (accepted IS NULL OR accepted <> definition)";
        self.0.engine.run(Once(sql), sql![pack])
    }
}
