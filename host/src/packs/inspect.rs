//! What a component is, what it wants and what is wrong with it, before it is added.

use serde::Serialize;

use super::grants::{self, Grants, Trust, Wish};
use super::manifest::{Manifest, ToolSpec};
use super::version::{self, Anatomy};
use crate::hash::sha256_hex;

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
    pub manifest: Option<Manifest>,
    /// Everything that keeps it from being a pack here.
    pub problems: Vec<String>,
}

/// Something that a component wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// For people.
    pub what: String,
    /// The configuration line that grants it.
    pub line: String,
}

/// What a component's bytes say, without running anything of it.
pub fn anatomy_of(bytes: &[u8]) -> Inspection {
    let (anatomy, problems) = match version::anatomy(bytes) {
        Ok(anatomy) => {
            let problems = version::check(bytes).err().map(|err| err.to_string());
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
    ask: impl Future<Output = Result<Manifest, Vec<String>>>,
) -> Inspection {
    let mut inspection = anatomy_of(bytes);
    if inspection.problems.is_empty() {
        match ask.await {
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
        let wants = self.manifest.iter().flat_map(|manifest| &manifest.wants);
        let wants: Vec<_> = wants.cloned().collect();
        grants::missing(&wants, grants, Trust::Foreign)
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

    /// Its tools and prompts.
    pub fn tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.manifest.iter().flat_map(|manifest| &manifest.tools)
    }

    fn wishes(&self) -> Vec<Wish> {
        let wants = self.manifest.iter().flat_map(|manifest| &manifest.wants);
        wants.map(Wish::of).collect()
    }
}
