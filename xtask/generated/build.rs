//! Generates the test components written in WebAssembly text, the page about the interfaces, and the SDK's bindings.
//! This is a build script because its dependencies would otherwise change how the host's dependencies are built. It is
//! in a separate package because most commands of `cargo xtask` do not need it.

mod bindings;
mod wit_page;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// World of packs.
const WORLD: &str = "tool-pack";

#[allow(clippy::disallowed_methods, reason = "a build script works with files")]
fn main() -> anyhow::Result<()> {
    let (texts, interfaces) = (Path::new("../../tests/guests/text"), Path::new("../../wit"));
    for folder in [texts, interfaces] {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let out = std::env::var("OUT_DIR").context("cargo says where to write")?;
    let mut components = String::new();
    for entry in std::fs::read_dir(texts)? {
        let text = entry?.path();
        let component =
            assemble(&text, interfaces).with_context(|| format!("{} cannot be assembled", text.display()))?;
        let name = text.file_stem().unwrap_or_default().to_string_lossy();
        let made = Path::new(&out).join(format!("{name}.wasm"));
        std::fs::write(&made, component)?;
        writeln!(components, "(\"{name}.wasm\", include_bytes!({made:?})),")?;
    }
    std::fs::write(
        Path::new(&out).join("components.rs"),
        format!("&[\n{components}]\n"),
    )?;
    std::fs::write(Path::new(&out).join("wit.md"), wit_page::page(interfaces)?)?;
    for (world, code) in bindings::all(interfaces)? {
        std::fs::write(Path::new(&out).join(format!("{world}.rs")), code)?;
    }
    Ok(())
}

fn assemble(text: &Path, interfaces: &Path) -> anyhow::Result<Vec<u8>> {
    let mut module = wat::parse_file(text)?;
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(interfaces)?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .encode()
}
