//! Detection of a component's kind from its bytes, before compilation.

use serde::Serialize;
use thiserror::Error;
use wasmparser::{Encoding, Parser, Payload};

use crate::world::World;

/// Version of `tollgate:host` that this host offers.
pub(super) const HOST_API: (u32, u32, u32) = (0, 1, 0);
/// Capabilities of that version that this host links.
const LINKED_INTERFACES: &[&str] = &[
    "storage",
    "budget",
    "ledger",
    "artifacts",
    "approvals",
    "memory",
    "judged-call",
    "clock-and-ids",
    "connections",
    "log",
    "component",
    "workspace",
    "process",
];
/// Size limit of a component.
pub(super) const MAX_SIZE: usize = 64 << 20;

/// Reason for which bytes cannot be a pack of this host.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NotAPack {
    /// Not WebAssembly, or damaged.
    #[error("it is not a WebAssembly component ({0}); build one with `cargo build --target wasm32-wasip2`")]
    NotAComponent(String),
    /// A core module.
    #[error("it is a core module, not a component; build it for wasm32-wasip2")]
    CoreModule,
    /// Too many bytes.
    #[error("it has {0} bytes; at most {MAX_SIZE} are allowed")]
    TooLarge(u64),
    /// Does not have the expected export.
    #[error("it does not export tollgate:host/{0}; export the world `{1}`")]
    NoExport(&'static str, &'static str),
    /// Has the export of the other world.
    #[error("it exports tollgate:host/{0}; configure it under [{1}]")]
    OtherWorld(&'static str, &'static str),
    /// Built for another version.
    #[error("it needs host API {needs}, but this host has {}.{}.{}; use a release that was built for it", HOST_API.0, HOST_API.1, HOST_API.2)]
    OtherVersion {
        /// Required interface.
        needs: String,
    },
    /// Imports that this host does not offer.
    #[error("it imports interfaces that this host does not provide: {}", .0.join(", "))]
    UnknownImports(Vec<String>),
}

/// Description of a component's bytes, obtained without running it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Anatomy {
    /// Version of `tollgate:host` that it was built for, if it names one.
    pub host_api: Option<String>,
    /// Interfaces that the component exports to the host: `pack` or `judge`.
    pub exports: Vec<String>,
    /// Capabilities of the host that its code can reach.
    pub capabilities: Vec<String>,
    /// All other imports.
    pub other_imports: Vec<String>,
}

/// Reads from a component's bytes what it can access.
pub(crate) fn anatomy(bytes: &[u8]) -> Result<Anatomy, NotAPack> {
    check_size(bytes.len() as u64)?;
    let names = top_level_names(bytes)?;
    let all = names.imports.iter().chain(&names.exports);
    let host_api = all
        .filter_map(|name| host_version(name))
        .next()
        .map(str::to_owned);
    let of_host = |names: &[String]| -> Vec<String> {
        let interfaces = names.iter().filter_map(|name| host_interface(name));
        interfaces.map(str::to_owned).collect()
    };
    Ok(Anatomy {
        host_api,
        exports: of_host(&names.exports),
        capabilities: of_host(&names.imports),
        other_imports: names
            .imports
            .iter()
            .filter(|name| host_interface(name).is_none())
            .map(|name| tollgate_core::text::clean(tollgate_core::text::cut(name, 200)))
            .collect(),
    })
}

/// Refuses bytes over the size limit.
pub(super) fn check_size(bytes: u64) -> Result<(), NotAPack> {
    if bytes > MAX_SIZE as u64 {
        return Err(NotAPack::TooLarge(bytes));
    }
    Ok(())
}

/// Checks that bytes are a component with the expected export, of this host's version, and that all its imports are
/// offered.
pub fn check(bytes: &[u8], world: World) -> Result<(), NotAPack> {
    check_size(bytes.len() as u64)?;
    let names = top_level_names(bytes)?;
    let versions = names
        .imports
        .iter()
        .chain(&names.exports)
        .filter_map(|name| host_version(name));
    for version in versions {
        if !is_offered(version) {
            return Err(NotAPack::OtherVersion {
                needs: version.to_owned(),
            });
        }
    }
    let exports = |world: World| {
        let mut exports = names.exports.iter();
        exports.any(|name| host_interface(name) == Some(world.export()))
    };
    if !exports(world) {
        let other = world.other();
        return Err(if exports(other) {
            NotAPack::OtherWorld(other.export(), other.table())
        } else {
            NotAPack::NoExport(world.export(), world.name())
        });
    }
    let unknown: Vec<String> = names
        .imports
        .into_iter()
        .filter(|name| !is_known_import(name))
        .collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(NotAPack::UnknownImports(unknown))
    }
}

struct Names {
    imports: Vec<String>,
    exports: Vec<String>,
}

fn top_level_names(bytes: &[u8]) -> Result<Names, NotAPack> {
    if !bytes.starts_with(b"\0asm") {
        return Err(NotAPack::NotAComponent("its header is missing".to_owned()));
    }
    let damaged = |err: wasmparser::BinaryReaderError| NotAPack::NotAComponent(err.message().to_owned());
    let mut names = Names {
        imports: Vec::new(),
        exports: Vec::new(),
    };
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(damaged)? {
            Payload::Version { encoding, .. } if depth == 0 && encoding == Encoding::Module => {
                return Err(NotAPack::CoreModule);
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    names.imports.push(import.map_err(damaged)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    names.exports.push(export.map_err(damaged)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

/// `storage` of `tollgate:host/storage@0.1.0`.
fn host_interface(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("tollgate:host/")?;
    Some(rest.split_once('@').map_or(rest, |(interface, _)| interface))
}

/// `0.1.0` of `tollgate:host/storage@0.1.0`.
fn host_version(name: &str) -> Option<&str> {
    name.strip_prefix("tollgate:host/")?
        .split_once('@')
        .map(|(_, version)| version)
}

/// Before 1.0, a minor version is a new interface, and a patch only adds documentation.
fn is_offered(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u32>);
    matches!((parts.next(), parts.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) == (HOST_API.0, HOST_API.1))
}

fn is_known_import(name: &str) -> bool {
    match host_interface(name) {
        Some(interface) => LINKED_INTERFACES.contains(&interface),
        None => [
            "wasi:cli/",
            "wasi:clocks/",
            "wasi:filesystem/",
            "wasi:io/",
            "wasi:random/",
            "wasi:sockets/",
        ]
        .iter()
        .any(|package| name.starts_with(package)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::builtin;

    #[test]
    fn bytes_that_are_no_component_say_what_they_are() {
        let check = |bytes: &[u8]| check(bytes, World::ToolPack);
        assert!(matches!(check(b"hello"), Err(NotAPack::NotAComponent(_))));
        assert!(matches!(check(b""), Err(NotAPack::NotAComponent(_))));
        assert_eq!(check(b"\0asm\x01\0\0\0"), Err(NotAPack::CoreModule));
        assert_eq!(
            check(b"\0asm\x0d\0\x01\0"),
            Err(NotAPack::NoExport("pack", "tool-pack"))
        );
    }

    #[test]
    fn versions_are_compared_by_minor() {
        assert!(is_offered("0.1.0"));
        assert!(is_offered("0.1.7"));
        assert!(!is_offered("0.2.0"));
        assert!(!is_offered("1.1.0"));
        assert!(!is_offered("x"));
    }

    #[test]
    fn built_in_components_are_what_they_are_taken_for() {
        for name in builtin::names() {
            check(builtin::component(name).unwrap(), World::ToolPack).unwrap();
        }
        for name in builtin::policies() {
            check(builtin::policy(name).unwrap(), World::Policy).unwrap();
        }
    }

    /// The SDK calls the imports directly, so that the linker drops those that nothing calls. `component` only contains
    /// types.
    #[test]
    fn built_in_components_reach_only_the_interfaces_that_they_use() {
        let packs = builtin::names().map(|name| (name, builtin::component(name)));
        let policies = builtin::policies().map(|name| (name, builtin::policy(name)));
        let mut reached: Vec<String> = packs
            .chain(policies)
            .map(|(name, bytes)| {
                let mut reached = anatomy(bytes.unwrap()).unwrap().capabilities;
                reached.retain(|interface| interface != "component");
                reached.sort();
                format!("{name}: {}", reached.join(" "))
            })
            .collect();
        reached.sort();
        expect![[r#"
            cel: judged-call
            conductor: approvals clock-and-ids ledger process storage workspace
            convergence: budget clock-and-ids ledger log process storage workspace
            gsd: clock-and-ids ledger log storage workspace
            loop-breaker: judged-call ledger
            path-guard: judged-call
            quiet-hours: judged-call
            rate-limit: judged-call ledger
            read-only-roles: judged-call
            require-actor: judged-call
            secret-scan: judged-call
            side-effect-approval: approvals clock-and-ids judged-call ledger storage
            task-store: approvals budget clock-and-ids ledger storage
            tasks: artifacts budget clock-and-ids connections ledger log storage"#]]
        .assert_eq(&reached.join("\n"));
    }
}
