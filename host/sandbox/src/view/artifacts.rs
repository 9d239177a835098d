//! `artifacts`: content that a component stores beside its operation's row.

use tollgate_core::effect::Effect;
use tollgate_sdk::ArtifactError;
use tollgate_store::artifacts::{ArtifactKind, CallArtifacts};
use wasmtime::component::{HasData, Linker};

use crate::bindings::tollgate::host::artifacts::{self, Error, Kind};
use crate::facts::Facts;

pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) effect: Effect,
    pub(crate) artifacts: &'a CallArtifacts,
}

impl artifacts::Host for View<'_> {
    fn keep(&mut self, kind: Kind, content: Vec<u8>) -> Result<Option<String>, ArtifactError> {
        if !self.facts.granted.artifacts {
            return Err(ArtifactError::Denied);
        }
        if self.effect == Effect::Read {
            return Err(ArtifactError::ReadOnly);
        }
        let kind = match kind {
            Kind::Log => ArtifactKind::Log,
            Kind::Diff => ArtifactKind::Diff,
        };
        self.artifacts.give(kind, content)
    }

    fn convert_error(&mut self, err: ArtifactError) -> wasmtime::Result<Error> {
        Ok(match err {
            ArtifactError::Denied => Error::Denied,
            ArtifactError::ReadOnly => Error::ReadOnly,
            ArtifactError::TooLarge(why) => Error::TooLarge(why),
            ArtifactError::TooMany(count) => Error::TooMany(count),
        })
    }
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    artifacts::add_to_linker::<_, HasView>(linker, view)
}
