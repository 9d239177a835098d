//! Stores of artifacts for tests, on the engine that tests run on.

use std::sync::Arc;

use tempfile::TempDir;
use tollgate_core::clock::SystemClock;
use tollgate_core::hash::sha256_hex;

use super::{Artifact, ArtifactKind, ArtifactSettings, ArtifactStore};
use crate::data_dir::DataDir;
use crate::storage::{Database, Session, fixture};

/// Place of a store: a data directory, and a database in which new content goes if it is on a server.
pub(super) struct Place {
    dir: TempDir,
    pub(super) database: Database,
    /// Goes last.
    _place: fixture::Place,
}

impl Place {
    /// A place with a store.
    pub(super) fn with(settings: ArtifactSettings) -> (Place, Arc<ArtifactStore>) {
        let (place, database) = fixture::database();
        let place = Place {
            dir: tempfile::tempdir().unwrap(),
            database,
            _place: place,
        };
        let store = place.store(settings);
        (place, store)
    }

    /// The data directory.
    pub(super) fn data(&self) -> DataDir {
        DataDir::open(self.dir.path()).unwrap()
    }

    /// A store of a host in this place.
    pub(super) fn store(&self, settings: ArtifactSettings) -> Arc<ArtifactStore> {
        open(&self.data(), settings, &self.database)
    }

    /// A store of a host on the same database with a data directory of its own.
    pub(super) fn elsewhere(&self, settings: ArtifactSettings) -> (TempDir, Arc<ArtifactStore>) {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&DataDir::open(dir.path()).unwrap(), settings, &self.database);
        (dir, store)
    }

    pub(super) fn session(&self) -> Session {
        self.database.write_session().unwrap()
    }
}

fn open(data: &DataDir, settings: ArtifactSettings, database: &Database) -> Arc<ArtifactStore> {
    let store = ArtifactStore::open(data, settings, Arc::new(SystemClock), database).unwrap();
    Arc::new(store.unwrap())
}

pub(super) fn settings() -> ArtifactSettings {
    ArtifactSettings {
        enabled: true,
        ..ArtifactSettings::default()
    }
}

/// An artifact with this content that does not expire.
pub(super) fn artifact(number: usize, content: &[u8]) -> Artifact {
    Artifact {
        id: format!("art_{number}"),
        hash: sha256_hex(content),
        kind: ArtifactKind::Log,
        holder: String::new(),
        size: i64::try_from(content.len()).unwrap(),
        total_size: 0,
        created_at: fixture::YOUNG.to_owned(),
        expires_at: "2999-01-01T00:00:00.000Z".to_owned(),
    }
}

/// Records an operation with an artifact.
pub(super) fn record(session: &Session, number: usize, artifact: Artifact) {
    let mut operation = fixture::operation(number, None, fixture::YOUNG);
    operation.artifacts = vec![artifact];
    session.begin_write().unwrap();
    session.ledger().record(&operation).unwrap();
    session.commit().unwrap();
}

/// Notes that an artifact expired.
pub(super) fn mark(session: &Session, number: usize) {
    session.begin_write().unwrap();
    session
        .artifacts()
        .mark_collected(&[format!("art_{number}")])
        .unwrap();
    session.commit().unwrap();
}

/// Has all content been put an hour before, for rows that did not come.
pub(super) fn age(place: &Place, store: &ArtifactStore) {
    if fixture::on_postgres() {
        fixture::change(
            &place.session(),
            "UPDATE core_content_puts SET put_ms = put_ms - 3600000",
        )
        .unwrap();
    }
    store.contents.age_files();
}
