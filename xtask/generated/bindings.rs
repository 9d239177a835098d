//! Bindings of the SDK for the two worlds in `wit/`. They are kept in the SDK, so that the build of a component needs no
//! generator, which takes a third of an author's first build.

use std::path::Path;

use anyhow::{Context as _, ensure};
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::{Opts, WithOption};
use wit_parser::{Resolve, WorldId, WorldItem, WorldKey};

/// World of packs, whose imports the bindings of policies use as well.
const PACK: &str = "tool-pack";
/// World of policies.
const POLICY: &str = "policy";
/// Module of the packs' bindings in the SDK, and that of the policies'.
const MODULES: [(&str, &str); 2] = [(PACK, "guest::bindings"), (POLICY, "guest::policy::bindings")];

/// Code of both worlds, by the world's name.
pub(super) fn all(interfaces: &Path) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(interfaces)?;
    let mut made = Vec::new();
    for (world, module) in MODULES {
        // The generator changes what it reads.
        let mut resolve = resolve.clone();
        let id = resolve.select_world(&[package], Some(world))?;
        let packs = resolve.select_world(&[package], Some(PACK))?;
        let with = match world {
            POLICY => shared(&resolve, id, packs),
            _ => Vec::new(),
        };
        let options = Opts {
            format: true,
            with,
            default_bindings_module: Some(format!("tollgate_sdk::{module}")),
            export_macro_name: Some("export_component".to_owned()),
            pub_export_macro: true,
            ..Opts::default()
        };
        let mut files = Files::default();
        options.build().generate(&mut resolve, id, &mut files)?;
        ensure!(
            files.iter().count() == 1,
            "world {world} has bindings in one file"
        );
        let (_, code) = files.iter().next().context("no bindings were made")?;
        made.push((world, String::from_utf8(code.to_vec())?));
    }
    Ok(made)
}

/// Imports of a world, which the packs' bindings have already.
fn shared(resolve: &Resolve, world: WorldId, packs: WorldId) -> Vec<(String, WithOption)> {
    let imports = resolve.worlds[world].imports.iter();
    let known = &resolve.worlds[packs].imports;
    let shared = imports.filter(|(key, _)| known.contains_key(*key));
    let interfaces = shared.filter_map(|(key, item)| match (key, item) {
        (WorldKey::Interface(_), WorldItem::Interface { id, .. }) => {
            let name = resolve.interfaces[*id].name.as_deref()?.replace('-', "_");
            let path = format!("crate::guest::bindings::tollgate::host::{name}");
            Some((resolve.id_of(*id)?, WithOption::Path(path)))
        }
        _ => None,
    });
    interfaces.collect()
}
