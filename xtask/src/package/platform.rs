//! Platforms with packages, and detection of a program's platform from its file.

use anyhow::{Context as _, bail, ensure};
use elf::ElfBytes;
use elf::endian::AnyEndian;

/// A platform that the program runs on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Platform {
    /// Name in npm's packages.
    pub(crate) name: &'static str,
    /// Rust's name.
    pub(crate) target: &'static str,
    /// npm's `os`.
    pub(crate) os: &'static str,
    /// npm's `cpu`.
    pub(crate) cpu: &'static str,
    /// npm's `libc`, which only Linux has.
    pub(crate) libc: Option<&'static str>,
    /// Python's name of the processor architecture.
    machine: &'static str,
}

/// All platforms with packages.
pub(crate) const PLATFORMS: [Platform; 4] = [
    Platform {
        name: "linux-x64-gnu",
        target: "x86_64-unknown-linux-gnu",
        os: "linux",
        cpu: "x64",
        libc: Some("glibc"),
        machine: "x86_64",
    },
    Platform {
        name: "linux-arm64-gnu",
        target: "aarch64-unknown-linux-gnu",
        os: "linux",
        cpu: "arm64",
        libc: Some("glibc"),
        machine: "aarch64",
    },
    Platform {
        name: "darwin-x64",
        target: "x86_64-apple-darwin",
        os: "darwin",
        cpu: "x64",
        libc: None,
        machine: "x86_64",
    },
    Platform {
        name: "darwin-arm64",
        target: "aarch64-apple-darwin",
        os: "darwin",
        cpu: "arm64",
        libc: None,
        machine: "arm64",
    },
];

/// Libraries that every Linux distribution with glibc has according to PEP 600, as far as Rust programs use them.
const EVERYWHERE: [&str; 9] = [
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// Start of a 64-bit Mach-O file.
const MACH_O: &[u8] = &0xfeed_facf_u32.to_le_bytes();
/// Length of a 64-bit Mach-O header.
const MACH_O_HEADER: usize = 32;

impl Platform {
    /// Platform with npm's names.
    fn of(os: &str, cpu: &str) -> &'static Platform {
        let is_it = |platform: &&Platform| platform.os == os && platform.cpu == cpu;
        // The callers below only use names of the table.
        PLATFORMS.iter().find(is_it).unwrap_or(&PLATFORMS[0])
    }

    /// Returns whether this process runs on the platform.
    pub(crate) fn is_here(&self) -> bool {
        let os = if self.os == "darwin" { "macos" } else { self.os };
        let cpu = if self.cpu == "x64" { "x86_64" } else { "aarch64" };
        os == std::env::consts::OS && cpu == std::env::consts::ARCH
    }
}

/// Platform of a program, and the platform tag for its wheel.
pub(crate) fn of_program(bytes: &[u8]) -> anyhow::Result<(&'static Platform, String)> {
    if bytes.starts_with(b"\x7fELF") {
        return of_elf(bytes);
    }
    if bytes.starts_with(MACH_O) {
        return of_mach_o(bytes).context("the Mach-O file ends too early");
    }
    bail!(
        "is neither an ELF nor a 64-bit Mach-O program; packages are made for {}",
        names()
    )
}

fn names() -> String {
    PLATFORMS.map(|platform| platform.target).join(", ")
}

fn of_elf(bytes: &[u8]) -> anyhow::Result<(&'static Platform, String)> {
    let file = ElfBytes::<AnyEndian>::minimal_parse(bytes).context("is a damaged ELF file")?;
    let cpu = match file.ehdr.e_machine {
        elf::abi::EM_X86_64 => "x64",
        elf::abi::EM_AARCH64 => "arm64",
        other => bail!("is for ELF machine {other}; packages are made for {}", names()),
    };
    let platform = Platform::of("linux", cpu);
    let needed = libraries(&file)?;
    ensure!(
        needed.iter().any(|library| library == "libc.so.6"),
        "is not linked against glibc; packages are made for {}",
        names()
    );
    let (major, minor) = glibc(&file)?.context("requires no version of glibc")?;
    let others = needed
        .iter()
        .any(|library| !EVERYWHERE.contains(&library.as_str()));
    let kind = if others {
        "linux".to_owned()
    } else {
        format!("manylinux_{major}_{minor}")
    };
    Ok((platform, format!("{kind}_{}", platform.machine)))
}

/// Names of the shared libraries that the program needs.
fn libraries(file: &ElfBytes<'_, AnyEndian>) -> anyhow::Result<Vec<String>> {
    let (Some(dynamic), Some((_, names))) = (file.dynamic()?, file.dynamic_symbol_table()?) else {
        return Ok(Vec::new());
    };
    let needed = dynamic.iter().filter(|entry| entry.d_tag == elf::abi::DT_NEEDED);
    let name = |at: u64| anyhow::Ok(names.get(usize::try_from(at)?)?.to_owned());
    needed.map(|entry| name(entry.d_val())).collect()
}

/// Newest glibc version that a symbol requires.
fn glibc(file: &ElfBytes<'_, AnyEndian>) -> anyhow::Result<Option<(u32, u32)>> {
    let (Some(versions), Some((symbols, _))) = (file.symbol_version_table()?, file.dynamic_symbol_table()?)
    else {
        return Ok(None);
    };
    let mut newest = None;
    for index in 0..symbols.len() {
        if let Some(wanted) = versions.get_requirement(index)? {
            newest = newest.max(glibc_version(wanted.name));
        }
    }
    Ok(newest)
}

/// Version of a glibc symbol: `(2, 34)` for `GLIBC_2.34`, and `(2, 3)` for `GLIBC_2.3.4`.
fn glibc_version(name: &str) -> Option<(u32, u32)> {
    let mut parts = name.strip_prefix("GLIBC_")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Platform of a Mach-O file. `None` if the file is truncated or has no macOS version.
fn of_mach_o(bytes: &[u8]) -> Option<(&'static Platform, String)> {
    const ARM64: u32 = 0x0100_000c;
    const BUILD_VERSION: u32 = 0x32;
    const VERSION_MIN_MACOSX: u32 = 0x24;
    let word = |at: usize| {
        Some(u32::from_le_bytes(
            bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
        ))
    };
    let platform = Platform::of("darwin", if word(4)? == ARM64 { "arm64" } else { "x64" });
    let mut at = MACH_O_HEADER;
    for _ in 0..word(16)? {
        let version = match word(at)? {
            BUILD_VERSION => Some(word(at + 12)?),
            VERSION_MIN_MACOSX => Some(word(at + 8)?),
            _ => None,
        };
        if let Some(version) = version {
            let major = version >> 16;
            // Since macOS 11 tags have no minor version.
            let minor = if major > 10 { 0 } else { (version >> 8) & 0xff };
            return Some((platform, format!("macosx_{major}_{minor}_{}", platform.machine)));
        }
        at = at.checked_add(usize::try_from(word(at + 4)?).ok()?)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Mach-O header with one irrelevant load command, and one with a version.
    fn mach_o(cpu: u32, command: u32, version: u32) -> Vec<u8> {
        let header = [0xfeed_facf, cpu, 0, 2, 2, 0, 0, 0];
        let commands = [0x19, 8, command, 24, 1, version, version, 0];
        // In a command with a minimum version, the version comes first.
        let words = header.iter().chain(&commands).copied();
        let mut words: Vec<u32> = words.collect();
        if command == 0x24 {
            words[12] = version;
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_mach_o_program_names_its_processor_and_the_oldest_macos() {
        let new = mach_o(0x0100_000c, 0x32, 0x000b_0300);
        let (platform, tag) = of_program(&new).unwrap();
        assert_eq!(
            (platform.name, tag.as_str()),
            ("darwin-arm64", "macosx_11_0_arm64")
        );
        let old = mach_o(0x0100_0007, 0x24, 0x000a_0c00);
        let (platform, tag) = of_program(&old).unwrap();
        assert_eq!(
            (platform.name, tag.as_str()),
            ("darwin-x64", "macosx_10_12_x86_64")
        );
        for end in 0..old.len() - 12 {
            assert!(of_program(&old[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[allow(clippy::disallowed_methods, reason = "the test reads its own program")]
    fn a_linux_program_gets_the_tag_of_the_glibc_it_needs() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let (platform, tag) = of_program(&own).unwrap();
        assert!(platform.is_here());
        assert!(tag.starts_with("manylinux_2_"), "{tag}");
        assert!(tag.ends_with(std::env::consts::ARCH), "{tag}");
        assert_eq!(glibc_version("GLIBC_2.3.4"), Some((2, 3)));
        assert!(glibc_version("GLIBC_2.34") > glibc_version("GLIBC_2.9"));
        assert_eq!(glibc_version("GCC_3.0"), None);
        assert_eq!(glibc_version("GLIBC_PRIVATE"), None);
    }

    #[test]
    fn a_file_for_no_platform_is_refused_with_the_platforms_there_are() {
        for bytes in [&b"#!/bin/sh\n"[..], b"", b"MZ", b"\x7fELF", b"\0asm\x01\0\0\0"] {
            let refused = of_program(bytes).unwrap_err();
            assert!(!format!("{refused:#}").is_empty());
        }
        let refused = of_program(b"#!/bin/sh\n").unwrap_err().to_string();
        for platform in &PLATFORMS {
            assert!(refused.contains(platform.target), "{refused}");
        }
    }
}
