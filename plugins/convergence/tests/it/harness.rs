//! Loads what `fixtures/record.py` recorded.

use std::path::PathBuf;

use convergence::readers::{self, Reader, Run};
use convergence::{Normaliser, TestReport};
use serde::Deserialize;

/// The tools that were recorded, with the folder each is in.
pub(crate) const TOOLS: &[(&str, Reader)] = &[
    ("cargo-test", Reader::CargoTest),
    ("nextest", Reader::Nextest),
    ("pytest", Reader::Pytest),
    ("unittest", Reader::Unittest),
    ("jest", Reader::Jest),
    ("vitest", Reader::Vitest),
    ("node-test", Reader::NodeTest),
    ("go-test", Reader::GoTest),
    ("junit-xml", Reader::JunitXml),
    ("tap", Reader::Tap),
    ("generic", Reader::Generic),
];

/// Origin of an output: the first line of its file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Header {
    pub command: String,
    pub exit: i32,
    pub dir: String,
}

/// One recording.
#[derive(Debug, Clone)]
pub(crate) struct Fixture {
    pub tool: String,
    /// Recorded case, such as `fail`.
    pub case: String,
    /// One of the two checkouts.
    pub site: String,
    pub header: Header,
    pub output: Vec<u8>,
}

impl Fixture {
    /// The recording of a case in one of the two checkouts.
    pub(crate) fn of(tool: &str, case: &str, site: &str) -> Fixture {
        let all = all(tool);
        let found = all
            .into_iter()
            .find(|fixture| fixture.case == case && fixture.site == site);
        found.unwrap_or_else(|| panic!("no {tool}/{case}.{site}.txt"))
    }

    /// Reads it as the tools of the pack would: the command is known, and the folder it ran in.
    pub(crate) fn read(&self) -> TestReport {
        self.read_with(&Normaliser::new([self.header.dir.as_str()]), &self.header.command)
    }

    pub(crate) fn read_with(&self, normaliser: &Normaliser, command: &str) -> TestReport {
        let exit_code = Some(self.header.exit);
        readers::read(
            &Run {
                output: &self.output,
                exit_code,
                command,
                reader: self.reader(),
            },
            normaliser,
        )
    }

    /// A JUnit report is a file of its own: the command that wrote it says something else on its
    /// standard output, so that whoever reads the file says what it is.
    fn reader(&self) -> Option<Reader> {
        (self.tool == "junit-xml").then_some(Reader::JunitXml)
    }
}

/// Every recording of a tool, in order.
pub(crate) fn all(tool: &str) -> Vec<Fixture> {
    let mut fixtures: Vec<Fixture> = files(tool, "txt")
        .into_iter()
        .map(|(name, bytes)| {
            let (case, site) = name.rsplit_once('.').expect("a name ends with its site");
            let (header, output) = split(&bytes);
            Fixture {
                tool: tool.to_owned(),
                case: case.to_owned(),
                site: site.to_owned(),
                header,
                output,
            }
        })
        .collect();
    fixtures.sort_by(|a, b| (&a.case, &a.site).cmp(&(&b.case, &b.site)));
    assert!(!fixtures.is_empty(), "nothing recorded of {tool}");
    fixtures
}

/// Recorded output of Git.
pub(crate) fn git(name: &str) -> Vec<u8> {
    let (_, bytes) = files("git", "bin")
        .into_iter()
        .find(|(file, _)| file == name)
        .expect("a recording of Git");
    split(&bytes).1
}

fn split(bytes: &[u8]) -> (Header, Vec<u8>) {
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a header");
    let header = serde_json::from_slice(&bytes[..end]).expect("a header of JSON");
    (header, bytes[end + 1..].to_vec())
}

#[allow(clippy::disallowed_methods, reason = "the recordings are files")]
fn files(folder: &str, extension: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(folder);
    let entries = folder.read_dir().expect("a folder of recordings");
    let files = entries.map(|entry| entry.expect("an entry").path());
    files
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a recording"))
        })
        .collect()
}
