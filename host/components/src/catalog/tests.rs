//! Tests of the built-in packs against their recorded definitions.

use std::sync::Arc;

use tollgate_core::clock::SystemClock;
use tollgate_sandbox::Sandbox;
use tollgate_sandbox::bindings::ToolPackPre;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_store::data_dir::DataDir;
use tollgate_store::storage::Database;

use super::entry::compiled;
use crate::builtin;
use crate::loading::compile::Compiler;
use crate::loading::{How, Keep, Loader};
use crate::packs::{Manifest, describe};
use crate::world::World;

#[tokio::test]
async fn what_packs_said_at_build_time_is_what_they_say() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDir::open(place.path()).unwrap();
    let database = Database::open(&data.database()).unwrap();
    let loader = Loader::new(
        &data,
        (None, Keep::Components),
        Arc::new(Sandbox::new().unwrap()),
        // No component needs the compiler.
        Compiler::new("/nowhere/tollgate".into()),
        database,
        Arc::new(SystemClock),
    )
    .unwrap();
    for name in builtin::names() {
        let bytes = builtin::component(name).unwrap();
        let hash = builtin::sha256(bytes);
        let code = loader.checked(name, bytes, &hash, World::ToolPack).await.unwrap();
        let pre = loader.link(&code, ToolPackPre::new).unwrap();
        let said: wit::Manifest = serde_json::from_str(builtin::manifest(&hash).unwrap()).unwrap();
        assert!(said == describe(&loader, &pre).unwrap(), "{name}");
        assert_eq!(loader.brought(&hash).unwrap().0, How::Unpacked);
        for tool in Manifest::check(said).unwrap().named() {
            assert!(compiled(&tool.input_schema).is_ok(), "{}", tool.name);
        }
    }
    for name in builtin::policies() {
        let hash = builtin::sha256(builtin::policy(name).unwrap());
        assert!(builtin::ahead(&hash).is_some(), "{name}");
    }
}
