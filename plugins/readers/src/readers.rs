//! Readers of test tools' output: detection of the tool and its result.

mod cargo_test;
mod command;
mod generic;
mod go_json;
mod go_test;
mod jest;
mod junit_xml;
mod nextest;
mod node_test;
mod pytest;
mod rustc;
mod tap;
mod tap_yaml;
mod unittest;
mod vitest;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::normalise::Normaliser;
use crate::report::{Findings, TestReport};
use crate::text;

/// A format of test output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// `cargo test`: the text of libtest.
    CargoTest,
    /// `cargo nextest run`.
    Nextest,
    /// pytest.
    Pytest,
    /// Python's `unittest`.
    Unittest,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// `node --test` with the reporter `spec` or `dot`; with `tap` it is [`Reader::Tap`].
    NodeTest,
    /// `go test`, with and without `-json`.
    GoTest,
    /// JUnit XML, which many tools can write.
    JunitXml,
    /// The Test Anything Protocol, versions 12 to 14.
    Tap,
    /// Any other output. The exit code decides; lines that look like errors are the failures.
    Generic,
}

/// A plain list of texts, because some clients accept nothing else.
impl JsonSchema for Reader {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Reader".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut names: Vec<_> = FORMATS
            .iter()
            .map(|format| serde_json::json!(format.reader))
            .collect();
        names.push(serde_json::json!(Reader::Generic));
        json_schema!({"type": "string", "enum": names})
    }
}

/// A finished test run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run<'a> {
    /// Output: standard output and standard error, merged or concatenated. A head or tail is enough.
    pub output: &'a [u8],
    /// Exit code, if the command ended by itself.
    pub exit_code: Option<i32>,
    /// Command line. May be empty.
    pub command: &'a str,
    /// Reader to use, if known.
    pub reader: Option<Reader>,
}

/// Reader of one format.
struct Format {
    reader: Reader,
    /// Returns whether a text looks like the tool's output.
    recognises: fn(&str) -> bool,
    read: fn(&str, &Normaliser) -> Findings,
}

/// Every format, the most distinct first, because some formats quote others.
const FORMATS: &[Format] = &[
    Format {
        reader: Reader::JunitXml,
        recognises: junit_xml::recognises,
        read: junit_xml::read,
    },
    Format {
        reader: Reader::GoTest,
        recognises: go_test::recognises,
        read: go_test::read,
    },
    Format {
        reader: Reader::Nextest,
        recognises: nextest::recognises,
        read: nextest::read,
    },
    Format {
        reader: Reader::CargoTest,
        recognises: cargo_test::recognises,
        read: cargo_test::read,
    },
    Format {
        reader: Reader::Pytest,
        recognises: pytest::recognises,
        read: pytest::read,
    },
    Format {
        reader: Reader::Tap,
        recognises: tap::recognises,
        read: tap::read,
    },
    Format {
        reader: Reader::Vitest,
        recognises: vitest::recognises,
        read: vitest::read,
    },
    Format {
        reader: Reader::Jest,
        recognises: jest::recognises,
        read: jest::read,
    },
    Format {
        reader: Reader::NodeTest,
        recognises: node_test::recognises,
        read: node_test::read,
    },
    Format {
        reader: Reader::Unittest,
        recognises: unittest::recognises,
        read: unittest::read,
    },
];

/// Reads a test run.
#[must_use]
pub fn read(run: &Run<'_>, normaliser: &Normaliser) -> TestReport {
    let text = text::clean(run.output);
    let format = detect(run, &text);
    let mut findings = (format.read)(&text, normaliser);
    if run.exit_code != Some(0)
        && !findings.no_tests
        && findings.failing.is_empty()
        && findings.errors.is_empty()
    {
        findings
            .errors
            .extend(generic::error(&text, run.exit_code, normaliser));
    }
    if format.reader == Reader::Generic {
        findings.complete = run.exit_code == Some(0);
    }
    TestReport {
        command: normaliser.text(run.command.trim()),
        ..findings.report(format.reader, run.exit_code)
    }
}

/// Selects the reader: the caller's, otherwise the command's unless the output clearly comes from another
/// tool, otherwise the output's.
fn detect(run: &Run<'_>, text: &str) -> &'static Format {
    let of = |reader| {
        FORMATS
            .iter()
            .find(|format| format.reader == reader)
            .unwrap_or(&GENERIC)
    };
    if let Some(reader) = run.reader {
        return of(reader);
    }
    let by_command = command::reader(run.command).map(of);
    let by_content = || {
        let found = FORMATS.iter().find(|format| (format.recognises)(text));
        // Another tool's test may print such a plan.
        let is_empty = || run.exit_code == Some(0) && tap::plans_nothing(text);
        found.or_else(|| is_empty().then(|| of(Reader::Tap)))
    };
    match by_command {
        Some(format) if (format.recognises)(text) => format,
        _ => by_content().or(by_command).unwrap_or(&GENERIC),
    }
}

/// Fallback format, whose text only [`generic::error`] reads.
static GENERIC: Format = Format {
    reader: Reader::Generic,
    recognises: |_| true,
    read: |_, _| Findings::default(),
};
