//! Inspection of a component before it is added: its kind, its requests and its problems.

use serde::Serialize;
use tollgate_core::hash::sha256_hex;
use tollgate_sandbox::bindings::ToolPackPre;
use tollgate_sandbox::bindings::tollgate::host::component::Want;

use crate::grants::{self, Grants, Trust, Wish};
use crate::loading::{Anatomy, Loader, Prepared, version};
use crate::packs::{self, Manifest};
use crate::policies::{self, Described};
use crate::world::World;

/// Result of inspecting a component.
#[derive(Debug)]
pub struct Inspection {
    /// SHA-256 of the component, in hex.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: usize,
    /// Anatomy of the bytes, if they are a component.
    pub anatomy: Option<Anatomy>,
    /// Manifest, if the component could be asked for it.
    pub manifest: Option<Said>,
    /// Everything that prevents it from being a pack or a policy on this host.
    pub problems: Vec<String>,
}

/// Manifest of a component.
#[derive(Debug)]
pub enum Said {
    /// The component offers tools.
    Pack(Manifest),
    /// The component judges calls.
    Policy(policies::Manifest),
}

/// Request of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// Description for people.
    pub what: String,
    /// The configuration line that grants it.
    pub line: String,
}

/// World of a component, by its exports.
fn world(anatomy: &Anatomy) -> World {
    let exports = |world: World| anatomy.exports.iter().any(|export| export == world.export());
    if exports(World::Policy) && !exports(World::ToolPack) {
        World::Policy
    } else {
        World::ToolPack
    }
}

/// Inspects a component's bytes without running any of its code.
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

/// Asks a component of a world for its manifest.
async fn ask(loader: &Loader, bytes: &[u8], world: World) -> Result<Said, Vec<String>> {
    let hash = sha256_hex(bytes);
    let code = loader.checked("the component", bytes, &hash, world).await?;
    if world == World::Policy {
        let prepared = Prepared {
            code,
            hash,
            size: bytes.len(),
        };
        return Ok(Said::Policy(Described::prepared(loader, prepared)?.manifest));
    }
    let pre = loader.link(&code, ToolPackPre::new)?;
    Ok(Said::Pack(Manifest::check(packs::describe(loader, &pre)?)?))
}

impl Inspection {
    /// Inspects a component's kind and requests as far as possible. The component is only run if its bytes show that
    /// it can answer. Only its compiled code is kept.
    pub async fn of(loader: &Loader, bytes: &[u8]) -> Inspection {
        let mut inspection = anatomy_of(bytes);
        let world = inspection.anatomy.as_ref().map(world);
        if let (true, Some(world)) = (inspection.problems.is_empty(), world) {
            match ask(loader, bytes, world).await {
                Ok(manifest) => inspection.manifest = Some(manifest),
                Err(problems) => inspection.problems = problems,
            }
        }
        inspection
    }

    /// Requests beyond the component's own storage.
    pub fn wanted(&self) -> Vec<Wanted> {
        self.wishes()
            .iter()
            .map(|wish| Wanted {
                what: wish.what.clone(),
                line: wish.line(),
            })
            .collect()
    }

    /// Requests that are not granted.
    pub fn missing(&self, grants: &Grants) -> Vec<Wanted> {
        grants::missing(self.wants(), grants, Trust::Foreign)
            .into_iter()
            .map(|missing| Wanted {
                what: missing.what,
                line: missing.line,
            })
            .collect()
    }

    /// Grants that the component does not request.
    pub fn unasked(&self, grants: &Grants) -> Vec<String> {
        grants.unasked(&self.wishes())
    }

    /// Grants everything that it requests.
    pub fn grant_all(&self, grants: &mut Grants) {
        grants.add_all(&self.wishes());
    }

    /// Workspaces that it requests by name.
    pub fn workspaces(&self) -> impl Iterator<Item = &str> {
        self.wants().iter().filter_map(|want| match want {
            Want::WorkspaceRead(name) if name != grants::ANY => Some(name.as_str()),
            _ => None,
        })
    }

    /// Name in its manifest.
    pub fn name(&self) -> Option<&str> {
        Some(match self.manifest.as_ref()? {
            Said::Pack(manifest) => &manifest.name,
            Said::Policy(manifest) => &manifest.name,
        })
    }

    /// True if the component judges calls.
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
