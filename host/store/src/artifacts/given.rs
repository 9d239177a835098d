//! Content that components store: held in memory until the call's row is committed, so that the writer does not wait
//! for a disk and a call that is rolled back leaves nothing.

use std::sync::PoisonError;

use tollgate_sdk::ArtifactError;
use tollgate_sdk::artifacts::Allowance;

use super::{ArtifactKind, CallArtifacts};

/// Content that one call has given.
#[derive(Default)]
pub(super) struct Given {
    allowance: Allowance,
    /// Contents, each with its artifact id.
    contents: Vec<(String, Vec<u8>)>,
}

impl CallArtifacts {
    /// Accepts content from a component, within its limits, and returns its id. `None` if the operator does not want
    /// this kind.
    pub fn give(&self, kind: ArtifactKind, content: Vec<u8>) -> Result<Option<String>, ArtifactError> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let store = self.store.as_ref().filter(|store| store.settings().wants(kind));
        let most = store.map_or(u64::MAX, |store| store.settings().max_artifact_mib << 20);
        given
            .allowance
            .take(content.len(), usize::try_from(most).unwrap_or(usize::MAX))?;
        let Some(store) = store else {
            return Ok(None);
        };
        let artifact = store.describe(kind, &content, &self.call.share);
        if !self.promise(store, &artifact) {
            return Ok(None);
        }
        let id = artifact.id.clone();
        given.contents.push((id.clone(), content));
        self.call.kept().push(artifact);
        Ok(Some(id))
    }

    /// True if content waits to be stored.
    pub fn has_given(&self) -> bool {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        !given.contents.is_empty()
    }

    /// Stores the given content.
    pub fn store_given(&self) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = std::mem::take(&mut given.contents);
        drop(given);
        for (_, content) in contents {
            self.store(&content);
        }
    }

    /// Passes the given content that waits to be stored to `show`.
    pub fn each_given(&self, mut show: impl FnMut(&[u8])) {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.contents.iter().for_each(|(_, content)| show(content));
    }

    /// Discards the given content. Content that the host itself stored for the call's programs stays.
    pub fn forget_given(&self) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = std::mem::take(&mut given.contents);
        drop(given);
        let taken_back = |id: &str| contents.iter().any(|(given, _)| given == id);
        self.call.kept().retain(|artifact| !taken_back(&artifact.id));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::fixture::Place;
    use super::super::{ArtifactSettings, ArtifactStore};
    use super::*;

    fn call(settings: ArtifactSettings) -> (Place, Arc<ArtifactStore>, CallArtifacts) {
        let (place, store) = Place::with(settings);
        let call = CallArtifacts::new(Some(Arc::clone(&store)), tollgate_core::share::Share::default());
        (place, store, call)
    }

    fn settings() -> ArtifactSettings {
        ArtifactSettings {
            enabled: true,
            ..ArtifactSettings::default()
        }
    }

    #[test]
    fn content_is_stored_when_the_call_is_over() {
        let (_place, store, call) = call(settings());
        let id = call.give(ArtifactKind::Log, b"what was seen".to_vec()).unwrap();
        assert_eq!(store.contents.names(), Vec::<String>::new());
        let [kept] = <[_; 1]>::try_from(call.kept()).unwrap();
        assert_eq!(Some(&kept.id), id.as_ref());
        call.store_given();
        assert_eq!(store.contents.names(), std::slice::from_ref(&kept.hash));
        assert_eq!(
            store.read(&kept.hash, 5, 100).unwrap(),
            Some(b"was seen".to_vec())
        );
        assert!(!call.has_given());
    }

    #[test]
    fn a_call_that_is_taken_back_leaves_nothing_and_begins_anew() {
        let (_place, store, call) = call(settings());
        for _ in 0..40 {
            let _ = call.give(ArtifactKind::Log, vec![0; 1 << 10]);
        }
        assert_eq!(call.kept().len(), 32);
        call.forget();
        call.store_given();
        assert_eq!((call.kept(), store.contents.names()), (Vec::new(), Vec::new()));
        assert!(call.give(ArtifactKind::Log, Vec::new()).unwrap().is_some());
    }

    #[test]
    fn what_the_operator_does_not_want_is_counted_and_not_kept() {
        let (_place, _store, call) = call(ArtifactSettings {
            diffs: false,
            max_artifact_mib: 0,
            ..settings()
        });
        assert_eq!(call.give(ArtifactKind::Diff, vec![0; 100]), Ok(None));
        assert!(matches!(
            call.give(ArtifactKind::Diff, vec![0; 2 << 20]),
            Err(ArtifactError::TooLarge(_))
        ));
        assert!(matches!(
            call.give(ArtifactKind::Log, vec![0; 100]),
            Err(ArtifactError::TooLarge(_))
        ));
        assert!(call.kept().is_empty());
    }
}
