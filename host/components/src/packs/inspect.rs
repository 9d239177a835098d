//! What a component is, what it wants and what is wrong with it, before it is added.

use serde::Serialize;
use tollgate_core::hash::sha256_hex;
use tollgate_sandbox::bindings::tollgate::host::component::Want;

use super::grants::{self, Grants, Trust, Wish};
use super::manifest::Manifest;
use super::version::{self, Anatomy, World};
use crate::policies;

/// What can be told of a component.
#[derive(Debug)]
pub struct Inspection {
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    /// How many bytes it has.
    pub bytes: usize,
    /// What its bytes say, if they are a component's.
    pub anatomy: Option<Anatomy>,
    /// What it says of itself, if it could be asked.
    pub manifest: Option<Said>,
    /// Everything that keeps it from being a pack or a policy here.
    pub problems: Vec<String>,
}

/// What a component says of itself.
#[derive(Debug)]
pub enum Said {
    /// It offers tools.
    Pack(Manifest),
    /// It judges calls.
    Policy(policies::Manifest),
}

/// Something that a component wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// For people.
    pub what: String,
    /// The configuration line that grants it.
    pub line: String,
}

/// What a component is meant as, by what it exports.
fn world(anatomy: &Anatomy) -> World {
    let exports = |world: World| anatomy.exports.iter().any(|export| export == world.export());
    if exports(World::Policy) && !exports(World::ToolPack) {
        World::Policy
    } else {
        World::ToolPack
    }
}

/// What a component's bytes say, without running anything of it.
pub fn anatomy_of(bytes: &[u8]) -> Inspection {
    let (anatomy, problems) = match version::anatomy(bytes) {
        Ok(anatomy) => {
            let problems = version::check(bytes, world(&anatomy))
                .err()
                .map(|err| err.to_string());
            (Some(anatomy), problems.into_iter().collect())
        }
        Err(err) => (None, vec![err.to_string()]),
    };
    Inspection {
        sha256: sha256_hex(bytes),
        bytes: bytes.len(),
        anatomy,
        manifest: None,
        problems,
    }
}

/// The same with what the component says when it is asked, which is only done if its bytes promise
/// that it can answer.
pub(super) async fn inspection(
    bytes: &[u8],
    ask: impl AsyncFnOnce(World) -> Result<Said, Vec<String>>,
) -> Inspection {
    let mut inspection = anatomy_of(bytes);
    let world = inspection.anatomy.as_ref().map(world);
    if let (true, Some(world)) = (inspection.problems.is_empty(), world) {
        match ask(world).await {
            Ok(manifest) => inspection.manifest = Some(manifest),
            Err(problems) => inspection.problems = problems,
        }
    }
    inspection
}

impl Inspection {
    /// What it wants beside its own storage.
    pub fn wanted(&self) -> Vec<Wanted> {
        self.wishes()
            .iter()
            .map(|wish| Wanted {
                what: wish.what.clone(),
                line: wish.line(),
            })
            .collect()
    }

    /// What it wants and is not granted.
    pub fn missing(&self, grants: &Grants) -> Vec<Wanted> {
        grants::missing(self.wants(), grants, Trust::Foreign)
            .into_iter()
            .map(|missing| Wanted {
                what: missing.what,
                line: missing.line,
            })
            .collect()
    }

    /// What is granted though it does not ask for it.
    pub fn unasked(&self, grants: &Grants) -> Vec<String> {
        grants.unasked(&self.wishes())
    }

    /// Grants all that it asks for.
    pub fn grant_all(&self, grants: &mut Grants) {
        grants.add_all(&self.wishes());
    }

    /// Its own name.
    pub fn name(&self) -> Option<&str> {
        Some(match self.manifest.as_ref()? {
            Said::Pack(manifest) => &manifest.name,
            Said::Policy(manifest) => &manifest.name,
        })
    }

    /// Whether it judges calls.
    pub fn is_policy(&self) -> bool {
        let world = self.anatomy.as_ref().map(world);
        world == Some(World::Policy)
    }

    fn wants(&self) -> &[Want] {
        match &self.manifest {
            Some(Said::Pack(manifest)) => &manifest.wants,
            Some(Said::Policy(manifest)) => &manifest.wants,
            None => &[],
        }
    }

    fn wishes(&self) -> Vec<Wish> {
        self.wants().iter().map(Wish::of).collect()
    }
}
