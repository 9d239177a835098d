//! The Python wheel: the program as a script, and a module that finds it.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::archive::{Entry, zip};
use super::release::{LICENCE, Release, VERSION};
use super::{Extra, Program};

/// Name of the distribution. `tollgate` on PyPI is another project.
pub(crate) const NAME: &str = "tollgate-mcp";
/// Name of the distribution in file and module names.
const MODULE: &str = "tollgate_mcp";

const SOURCES: [(&str, &str); 2] = [
    (
        "__init__.py",
        include_str!("../../../packaging/pypi/tollgate_mcp/__init__.py"),
    ),
    (
        "__main__.py",
        include_str!("../../../packaging/pypi/tollgate_mcp/__main__.py"),
    ),
];
/// `uvx tollgate-mcp` and `pipx run tollgate-mcp` run the command with the distribution's name.
const ENTRY_POINTS: &str = "[console_scripts]\ntollgate-mcp = tollgate_mcp:main\n";

/// Name and bytes of the wheel.
pub(crate) fn make(release: &Release, program: &Program, extra: &Extra) -> anyhow::Result<(String, Vec<u8>)> {
    let name = format!("{MODULE}-{}", version(VERSION)?);
    let info = format!("{name}.dist-info");
    let tag = format!("py3-none-{}", program.tag);
    let mut entries = vec![Entry::program(
        format!("{name}.data/scripts/tollgate"),
        program.bytes.as_slice(),
    )];
    entries.extend(
        SOURCES
            .iter()
            .map(|(file, text)| Entry::text(format!("{MODULE}/{file}"), *text)),
    );
    entries.push(Entry::text(format!("{info}/METADATA"), metadata(release, extra)?));
    entries.push(Entry::text(
        format!("{info}/WHEEL"),
        format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\nTag: {tag}\n"),
    ));
    entries.push(Entry::text(format!("{info}/entry_points.txt"), ENTRY_POINTS));
    for (file, text) in &extra.licences {
        entries.push(Entry::text(format!("{info}/licenses/{file}"), text.as_bytes()));
    }
    if let Some(bill) = &extra.bill {
        entries.push(Entry::text(
            format!("{info}/sboms/{}", crate::sbom::FILE),
            bill.as_bytes(),
        ));
    }
    let record = record(&entries, &format!("{info}/RECORD"));
    entries.push(record);
    Ok((format!("{name}-{tag}.whl"), zip(&entries)?))
}

/// Metadata that PyPI and installers show.
fn metadata(release: &Release, extra: &Extra) -> anyhow::Result<String> {
    let mut text = format!(
        "Metadata-Version: 2.4\n\
         Name: {NAME}\n\
         Version: {}\n\
         Summary: MCP server that runs tool packs in a WebAssembly sandbox, with budgets, policies and a ledger\n\
         Keywords: mcp,agents,sandbox,wasm,audit,policy\n\
         License-Expression: {LICENCE}\n",
        version(VERSION)?
    );
    for (file, _) in &extra.licences {
        writeln!(text, "License-File: {file}")?;
    }
    if let Some(repository) = &release.repository {
        writeln!(text, "Project-URL: Source, {}", repository.url)?;
        writeln!(text, "Project-URL: Issues, {}/issues", repository.url)?;
    }
    for classifier in [
        "Environment :: Console",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Rust",
    ] {
        writeln!(text, "Classifier: {classifier}")?;
    }
    writeln!(
        text,
        "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{}",
        extra.readme
    )?;
    Ok(text)
}

/// List of the files with their hashes. The entry of the list itself has no hash.
pub(super) fn record(entries: &[Entry], name: &str) -> Entry {
    let lines = entries.iter().map(|entry| {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&entry.bytes));
        format!("{},sha256={hash},{}\n", entry.name, entry.bytes.len())
    });
    let lines: String = lines.chain([format!("{name},,\n")]).collect();
    Entry::text(name, lines)
}

/// Version in Python's notation: `1.0.0rc2` for `1.0.0-rc.2`.
pub(crate) fn version(version: &str) -> anyhow::Result<String> {
    let Some((release, pre)) = version.split_once('-') else {
        return Ok(version.to_owned());
    };
    let (kind, number) = pre.split_once('.').unwrap_or((pre, "0"));
    let kind = match kind {
        "alpha" => Some("a"),
        "beta" => Some("b"),
        "rc" => Some("rc"),
        _ => None,
    };
    let kind =
        kind.with_context(|| format!("Python has no version {version}; it has -alpha.N, -beta.N and -rc.N"))?;
    ensure!(
        number.bytes().all(|byte| byte.is_ascii_digit()),
        "Python has no version {version}; after alpha, beta and rc comes one number"
    );
    Ok(format!("{release}{kind}{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_a_release_are_written_as_python_writes_them() {
        for (ours, pythons) in [
            ("0.1.0", "0.1.0"),
            ("1.0.0-rc.2", "1.0.0rc2"),
            ("1.0.0-alpha", "1.0.0a0"),
            ("2.0.0-beta.1", "2.0.0b1"),
        ] {
            assert_eq!(version(ours).unwrap(), pythons);
        }
        for odd in ["1.0.0-dev.1", "1.0.0-rc.one", "1.0.0-rc.1.2"] {
            assert!(version(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn the_record_names_every_file_with_its_hash() {
        let record = record(&[Entry::text("a", "abc")], "x/RECORD");
        assert_eq!(
            String::from_utf8(record.bytes).unwrap(),
            "a,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\nx/RECORD,,\n"
        );
    }
}
