//! Reference copy of the host's own tables on this server, for comparison with the existing ones.
//!
//! Servers of different versions print a definition in different ways. So the server prints both: the existing
//! schema, and a copy that is created in a transaction and rolled back.

use super::faults::Made;
use super::schema;
use super::settings::quoted;
use super::{Postgres, Server};
use crate::storage::engine::{Sql, Text};
use crate::storage::error::{StoreFailure, StoreResult};
use crate::storage::session::Access;

/// Query for all details of columns, constraints, triggers, indexes and functions in a schema, which is first in the
/// search path.
const DETAILS_QUERY: &str = "
    SELECT 'column', c.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
            (SELECT l.collname FROM pg_collation AS l WHERE l.oid = a.attcollation), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
            'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), a.attidentity::text || a.attgenerated::text)
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relnamespace = CAST(?1 AS text)::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'constraint', c.relname || '.' || k.conname, pg_get_constraintdef(k.oid, true)
            || CASE WHEN k.convalidated THEN '' ELSE ' not checked' END
        FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
        WHERE c.relnamespace = CAST(?1 AS text)::regnamespace AND c.relkind = 'r' AND k.contype NOT IN ('n', 't')
    UNION ALL
    SELECT 'trigger', c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid, true) || ' ' || t.tgenabled::text
        FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
        WHERE c.relnamespace = CAST(?1 AS text)::regnamespace AND NOT t.tgisinternal
    UNION ALL
    SELECT 'index', i.relname::text, pg_get_indexdef(x.indexrelid, 0, true)
            || CASE WHEN x.indisvalid AND x.indisready AND x.indislive THEN '' ELSE ' invalid' END
        FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS t ON t.oid = x.indrelid
        WHERE t.relnamespace = CAST(?1 AS text)::regnamespace AND t.relkind = 'r'
    UNION ALL
    SELECT 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', concat_ws(' ', p.prosrc, l.lanname,
            pg_get_function_result(p.oid), p.provolatile, p.proparallel, p.proisstrict, p.proleakproof, p.prosecdef, p.prokind,
            CASE WHEN p.proconfig = ARRAY['search_path=' || current_setting('search_path')] THEN 'in the schema'
                ELSE array_to_string(p.proconfig, ' ') END)
        FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang WHERE p.pronamespace = CAST(?1 AS text)::regnamespace";

impl Postgres {
    /// Details of a schema.
    pub(super) fn details(&self, schema: &str) -> StoreResult<Vec<Made>> {
        let text = Text {
            sql: DETAILS_QUERY,
            is_kept: false,
        };
        self.prepare(text)?.all(&[Sql::Text(&quoted(schema))], |row| {
            Ok(Made {
                kind: row.get(0)?,
                name: row.get(1)?,
                is: row.get(2)?,
            })
        })
    }
}

/// Details of a schema that the migrations create. `None` if the role of the URL may not create a schema.
pub(super) fn details(server: &Server) -> StoreResult<Option<Vec<Made>>> {
    // Components cannot have such a name.
    let schema = format!("{}/ pristine", server.schema);
    let session = Postgres::open(server, Access::Write)?;
    session.begin("BEGIN", None)?;
    let made = session.script(&format!(
        "CREATE SCHEMA {0}; SET LOCAL search_path = {0}, pg_temp",
        quoted(&schema)
    ));
    match made {
        Err(err) if err.failure() == StoreFailure::NotWritable => {
            tracing::warn!("columns and constraints are not compared: {err}");
            session.rollback()?;
            return Ok(None);
        }
        made => made?,
    }
    session.script(&schema::whole())?;
    let details = session.details(&schema)?;
    session.rollback()?;
    Ok(Some(details))
}
