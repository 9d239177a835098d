//! All stored data about a job's repository, combined.

use conductor_repo::describe::{self, Descriptions, Undescribed};
use conductor_repo::facts::FactBook;
use conductor_repo::map::{Notes, RepoMap};
use conductor_repo::snapshot::{FileRecord, Limits};
use tollgate_sdk::{Db, DbError, NextCall, ToolError};

use super::kept::{self, KeptAges, Known};
use crate::error::{Reason, Refusals};
use crate::model::JobId;
use crate::store::part::{self, Kind};
use crate::store::{description, job};

/// Limits of maps.
pub(crate) const MAP_LIMITS: Limits = Limits::DEFAULT;

/// Data about a repository.
pub(crate) struct Knowledge {
    pub known: Known,
    pub book: FactBook,
    pub descriptions: Descriptions,
    pub ages: Option<KeptAges>,
}

impl Knowledge {
    /// Loads the data of a job. Fails if there is no map.
    pub(crate) fn load(db: &Db<'_>, job: &JobId) -> Result<Knowledge, ToolError> {
        Knowledge::find(db, job)?.ok_or_else(|| {
            let mut refusals = Refusals::default();
            let update = NextCall::new("repo_map_update", serde_json::json!({"job_id": job}));
            refusals.add_with(Reason::MapMissing, Some(update));
            refusals.into()
        })
    }

    /// Loads the data of a job, if there is a map. Without its own, the job uses that of another job with the same
    /// repository.
    pub(crate) fn find(db: &Db<'_>, job: &JobId) -> Result<Option<Knowledge>, DbError> {
        if let Some(own) = Knowledge::of(db, job)? {
            return Ok(Some(own));
        }
        match job::neighbour_with_map(db, job)? {
            Some(other) => Knowledge::of(db, &other),
            None => Ok(None),
        }
    }

    fn of(db: &Db<'_>, job: &JobId) -> Result<Option<Knowledge>, DbError> {
        let facts = part::load(db, job, Kind::Facts)?;
        let Some(known) = Known::from_buckets(&part::load(db, job, Kind::Files)?)? else {
            return Ok(None);
        };
        let book = kept::book_from(&facts)?;
        let mut unread = book.unread(&known.snapshot, &MAP_LIMITS);
        if book.is_empty() && unread.next().is_some() {
            return Ok(None);
        }
        drop(unread);
        Ok(Some(Knowledge {
            known,
            book,
            descriptions: description::all(db, job)?,
            ages: kept::ages_from(&part::load(db, job, Kind::Ages)?)?,
        }))
    }

    /// Builds the map.
    pub(crate) fn map(&self) -> RepoMap {
        let notes = Notes {
            descriptions: self.descriptions.clone(),
            ages: self
                .ages
                .as_ref()
                .map(|kept| kept.ages.clone())
                .unwrap_or_default(),
        };
        RepoMap::build(&self.known.snapshot, &self.book, &notes)
    }

    /// Number of files added or changed since the last update of the map, whose imports are unknown.
    pub(crate) fn unread(&self) -> usize {
        self.book.unread(&self.known.snapshot, &MAP_LIMITS).count()
    }

    /// Files without a description.
    pub(crate) fn undescribed(&self) -> Undescribed {
        self.known.undescribed(&self.descriptions)
    }
}

impl Known {
    /// Checks by index whether a file was added since the job's first snapshot.
    pub(crate) fn is_new(&self, place: usize) -> bool {
        self.since.get(place).is_some_and(|since| *since > 1)
    }

    /// Files without a description.
    pub(crate) fn undescribed(&self, descriptions: &Descriptions) -> Undescribed {
        describe::undescribed(&self.snapshot, descriptions, |place| self.is_new(place))
    }
}

/// Selects the given files that have no description.
pub(crate) fn undescribed(files: &[FileRecord], descriptions: &Descriptions) -> Vec<String> {
    let lacking = files.iter().filter(|file| describe::lacks(file, descriptions));
    lacking.map(|file| file.path.clone()).collect()
}
