//! Declares a migration of a table that it does not own.

use tollgate_sdk::{Migration, Pack, tools};

guests::hello!("migration_foreign_hello");

const PACK: Pack = Pack {
    name: "migration-foreign",
    version: "0.1.0",
    summary: "Reaches into the ledger at migration.",
    tools: tools![Hello],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE migration_foreign_rows (id INTEGER PRIMARY KEY);
              CREATE TRIGGER migration_foreign_quiet BEFORE INSERT ON core_operations
              BEGIN SELECT RAISE(IGNORE); END;",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
