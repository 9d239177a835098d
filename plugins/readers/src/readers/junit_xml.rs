//! JUnit's XML, as pytest, nextest, vitest, Node and many others write it.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::normalise::Normaliser;
use crate::report::{Counts, Findings};
use crate::trace::{self, Trace, python};

/// Deepest nesting of suites in names.
const MAX_DEPTH: usize = 64;
/// Longest name of a suite, in characters.
const MAX_NAME: usize = 1_000;

/// Returns whether a text contains a JUnit report.
pub(super) fn recognises(text: &str) -> bool {
    text.contains("<testsuite") && (text.trim_start().starts_with('<') || text.contains("<?xml"))
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let start = text
        .find("<testsuite")
        .and_then(|start| text.get(start..))
        .unwrap_or("");
    let mut reader = Reader::from_str(start);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    let mut reading = Reading {
        normaliser,
        suites: Vec::new(),
        case: None,
        inside: None,
        counted: (0, 0, 0),
        findings: Findings::default(),
    };
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => reading.open(&tag),
            Ok(Event::Empty(tag)) => {
                reading.open(&tag);
                reading.close(tag.local_name().as_ref());
            }
            Ok(Event::End(tag)) => reading.close(tag.local_name().as_ref()),
            Ok(Event::Text(text)) => reading.text(&text),
            Ok(Event::CData(text)) => reading.text(&text),
            Ok(Event::GeneralRef(name)) => reading.text(&entity(&name)),
            Ok(Event::Eof) => {
                let closed = reading.case.is_none() && reading.suites.is_empty();
                reading.findings.complete = closed && !start.is_empty();
                break;
            }
            Ok(_) => {}
            // The part before the damage still counts.
            Err(_) => break,
        }
    }
    reading.finish()
}

struct Reading<'a> {
    normaliser: &'a Normaliser,
    /// Names of the open suites, each with its parents.
    suites: Vec<String>,
    /// The open test.
    case: Option<Case>,
    /// Open element of a test whose text is collected.
    inside: Option<Verdict>,
    /// Numbers of passed, failed and skipped tests.
    counted: (u64, u64, u64),
    findings: Findings,
}

#[derive(Debug, Default)]
struct Case {
    name: String,
    class: String,
    verdict: Option<Verdict>,
    skipped: bool,
}

/// A `failure` or an `error`.
#[derive(Debug, Default)]
struct Verdict {
    kind: String,
    message: String,
    text: String,
}

impl Reading<'_> {
    fn open(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            "testcase" => {
                self.close("testcase");
                self.case = Some(Case {
                    name: attribute(tag, "name"),
                    class: attribute(tag, "classname"),
                    ..Case::default()
                });
            }
            "failure" | "error" => {
                self.inside = Some(Verdict {
                    kind: attribute(tag, "type"),
                    message: attribute(tag, "message"),
                    text: String::new(),
                });
            }
            "testsuite" => self.open_suite(&attribute(tag, "name")),
            "skipped" => {
                if let Some(case) = &mut self.case {
                    case.skipped = true;
                }
            }
            _ => {}
        }
    }

    fn open_suite(&mut self, name: &str) {
        let around = self.suites.last().filter(|around| !around.is_empty());
        let name = around.map_or_else(|| name.to_owned(), |around| format!("{around} > {name}"));
        let (name, _) = crate::text::head(&name, MAX_NAME);
        let is_deep = self.suites.len() >= MAX_DEPTH;
        self.suites
            .push(if is_deep { String::new() } else { name.to_owned() });
    }

    fn text(&mut self, text: &str) {
        if let Some(inside) = &mut self.inside {
            inside.text.push_str(text);
        }
    }

    fn close(&mut self, tag: &str) {
        match (tag, &mut self.case) {
            ("failure" | "error", Some(case)) => {
                let verdict = self.inside.take();
                case.verdict = case.verdict.take().or(verdict);
            }
            // Error of a suite whose setup failed.
            ("failure" | "error", None) => self.inside.take().into_iter().for_each(|verdict| {
                self.findings
                    .errors
                    .push(verdict.trace(self.normaliser).failure(self.normaliser, ""));
            }),
            ("testsuite", _) => drop(self.suites.pop()),
            ("testcase", case) => {
                if let Some(case) = case.take() {
                    self.finish_case(case);
                }
            }
            _ => {}
        }
    }

    fn finish_case(&mut self, case: Case) {
        let Some(verdict) = case.verdict else {
            let count = if case.skipped {
                &mut self.counted.2
            } else {
                &mut self.counted.0
            };
            *count = count.saturating_add(1);
            return;
        };
        // Node has the same class for every test, and nests suites instead.
        let name = match case.class.as_str() {
            "" => case.name,
            "test" => match self.suites.last().filter(|suites| !suites.is_empty()) {
                Some(suites) => format!("{suites} > {}", case.name),
                None => case.name,
            },
            class if class == case.name => case.name,
            class => format!("{class} {}", case.name),
        };
        let no_test = verdict.message == "collection failure" || name.is_empty();
        let failure = verdict.trace(self.normaliser).failure(self.normaliser, &name);
        if no_test {
            self.findings.errors.push(failure);
        } else {
            self.counted.1 = self.counted.1.saturating_add(1);
            self.findings.failing.push(failure);
        }
    }

    fn finish(mut self) -> Findings {
        if let Some(case) = self.case.take().filter(|case| case.verdict.is_some()) {
            self.finish_case(case);
        }
        let (passed, failed, skipped) = self.counted;
        self.findings.counts = Counts::new(passed, failed, skipped);
        self.findings
    }
}

impl Verdict {
    /// Trace of a verdict. The text has the stack; the attributes have type and message, depending on the
    /// tool.
    fn trace(self, normaliser: &Normaliser) -> Trace {
        let pytest = self.text.lines().any(|line| line.starts_with("E "));
        let mut trace = match pytest {
            true => python::read_pytest(&self.text, normaliser),
            false => trace::any(&self.text, normaliser),
        };
        let says_type = trace::is_type(&self.kind) && !self.kind.ends_with("Failure");
        trace.kind = trace.kind.or_else(|| says_type.then(|| self.kind.clone()));
        if trace.message.trim().is_empty() || trace.kind.is_none() {
            trace.message = self.message;
        }
        trace
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> String {
    let found = tag
        .attributes()
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == name);
    let raw = found
        .map(|attribute| attribute.value.into_owned())
        .unwrap_or_default();
    match quick_xml::escape::unescape(&raw) {
        Ok(text) => text.into_owned(),
        Err(_) => raw,
    }
}

/// Character of a reference such as `&lt;` or `&#10;`.
fn entity(name: &str) -> String {
    quick_xml::escape::unescape(&format!("&{name};"))
        .map(std::borrow::Cow::into_owned)
        .unwrap_or_default()
}
