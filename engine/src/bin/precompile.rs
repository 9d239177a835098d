//! `precompile COMPONENTS [--small]`: compiles the built-in components ahead and asks the packs what they are, so that a host
//! starts without doing either. `cargo xtask build` runs it after the components and before the host.
//!
//! Beside `NAME.wasm` it makes `ahead/NAME.cwasm`: a line with the component's hash, that of the settings and
//! the length of the code, then the code, compressed. Of packs it makes `ahead/NAME.json`: a line with the hash, then
//! their manifest. What is up to date stays as it is.
#![allow(clippy::disallowed_methods, reason = "a build tool works with files")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceType};
use wasmtime::{Engine, Store};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

mod bindings {
    #![allow(unreachable_pub, missing_docs, reason = "generated")]

    wasmtime::component::bindgen!({
        inline: "package tollgate:ahead; world describing { export tollgate:host/pack@0.1.0; }",
        path: "../wit",
        world: "tollgate:ahead/describing",
        additional_derives: [serde::Serialize],
    });
}

/// Level of compression. The highest one takes as long as compiling.
const QUICK: i32 = 3;
/// Level for code that is shipped, which is compressed once and read often.
const SMALL: i32 = 19;
const USAGE: &str = "usage: precompile COMPONENTS [--small]";

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let components: PathBuf = arguments.next().context(USAGE)?.into();
    let level = match arguments.next() {
        None => QUICK,
        Some(flag) if flag == "--small" => SMALL,
        Some(_) => bail!(USAGE),
    };
    let engine = tollgate_engine::baseline()
        .and_then(|config| Engine::new(&config))
        .map_err(|err| anyhow::anyhow!("there is no engine for this system: {err:#}"))?;
    let mut parts = Vec::new();
    for (from, to, are_packs) in [(".", "ahead", true), ("policies", "ahead/policies", false)] {
        let (from, to) = (components.join(from), components.join(to));
        if !from.is_dir() {
            continue;
        }
        std::fs::create_dir_all(&to)?;
        for entry in std::fs::read_dir(from)? {
            let file = entry?.path();
            if file.extension().is_some_and(|ending| ending == "wasm") {
                parts.push((file, to.clone(), are_packs));
            }
        }
    }
    // Large ones first, so that none is left for one core at the end. Compression takes one core for each.
    parts.sort_by_key(|(file, ..)| std::fs::metadata(file).map_or(0, |found| found.len()));
    let parts = Mutex::new(parts);
    let work = || -> anyhow::Result<()> {
        while let Some((file, to, is_pack)) = next(&parts) {
            make(&engine, &file, &to, is_pack, level)
                .with_context(|| format!("{} cannot be compiled ahead", file.display()))?;
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| {
            let ended = worker.join();
            ended.unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that compiles panicked")))
        });
        ended.collect::<anyhow::Result<Vec<()>>>()
    })?;
    Ok(())
}

/// A component: its file, the folder that its code goes to, and whether it is a pack.
type Part = (PathBuf, PathBuf, bool);

fn next(parts: &Mutex<Vec<Part>>) -> Option<Part> {
    parts.lock().unwrap_or_else(|broken| broken.into_inner()).pop()
}

fn make(engine: &Engine, file: &Path, to: &Path, is_pack: bool, level: i32) -> anyhow::Result<()> {
    let bytes = std::fs::read(file)?;
    let name = file.file_stem().context("it has no name")?.to_string_lossy();
    let hash = tollgate_engine::hex(&Sha256::digest(&bytes));
    let settings = tollgate_engine::settings(engine);
    let (code, manifest) = (to.join(format!("{name}.cwasm")), to.join(format!("{name}.json")));
    let is_made = starts_with(&code, &format!("{hash} {settings} "));
    let is_described = !is_pack || starts_with(&manifest, &hash);
    if is_made && is_described {
        return Ok(());
    }
    let component = Component::new(engine, &bytes).map_err(|err| anyhow::anyhow!("{err:#}"))?;
    if is_pack {
        let said = serde_json::to_string(&describe(engine, &component)?)?;
        std::fs::write(&manifest, format!("{hash}\n{said}"))?;
    }
    let made = component.serialize().map_err(|err| anyhow::anyhow!("{err:#}"))?;
    let mut ahead = format!("{hash} {settings} {}\n", made.len()).into_bytes();
    let mut compressor = zstd::stream::Encoder::new(&mut ahead, level)?;
    compressor.include_checksum(true)?;
    std::io::Write::write_all(&mut compressor, &made)?;
    compressor.finish()?;
    Ok(std::fs::write(code, ahead)?)
}

fn starts_with(file: &Path, text: &str) -> bool {
    std::fs::read(file).is_ok_and(|there| there.starts_with(text.as_bytes()))
}

/// Asks a pack for its manifest, without a host to talk to, as when it is loaded.
fn describe(
    engine: &Engine,
    component: &Component,
) -> anyhow::Result<bindings::exports::tollgate::host::pack::Manifest> {
    let asked = || {
        let mut linker = Linker::new(engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
        refuse_host(&mut linker, component)?;
        let mut store = Store::new(engine, State::new());
        store.set_epoch_deadline(1);
        let pack = bindings::Describing::instantiate(&mut store, component, &linker)?;
        pack.tollgate_host_pack().call_describe(&mut store)
    };
    asked().map_err(|err| anyhow::anyhow!("it does not describe itself: {err:#}"))
}

/// Offers what a component imports of Tollgate, and refuses each use of it.
fn refuse_host(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    let engine = component.engine();
    for (interface, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            continue;
        };
        if !interface.starts_with("tollgate:host/") {
            continue;
        }
        let mut offered = linker.instance(interface)?;
        for (name, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) => offered.func_new(name, |_, _, _, _| {
                    Err(wasmtime::Error::msg(
                        "there is no host while a pack describes itself",
                    ))
                })?,
                ComponentItem::Resource(_) => {
                    offered.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl State {
    fn new() -> State {
        State {
            wasi: WasiCtxBuilder::new().build(),
            table: ResourceTable::new(),
        }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}
