//! `pom.xml`.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde::{Deserialize, Serialize};

/// Content of a `pom.xml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Maven {
    /// Name of the artifact.
    pub artifact: Option<String>,
    /// Classes that a plugin starts.
    pub main_classes: Vec<String>,
}

pub(super) fn read(text: &str) -> Option<Maven> {
    let mut reader = Reader::from_str(text);
    let mut found = Maven::default();
    let mut open: Vec<String> = Vec::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => open.push(tag.local_name().as_ref().to_owned()),
            Event::End(_) => drop(open.pop()),
            Event::Text(content) => {
                let content = content.trim().to_owned();
                match open.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                    ["project", "artifactId"] => found.artifact = Some(content),
                    [.., "mainClass" | "start-class"] => found.main_classes.push(content),
                    _ => {}
                }
            }
            Event::Eof => return Some(found),
            _ => {}
        }
    }
}
