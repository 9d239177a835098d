//! Reads an object or a file as a bundle of this version. Unknown keys are refused rather than lost.

use std::io::{self, Cursor, Read};

use serde::{Deserialize, Deserializer};
use serde_json::de::IoRead;
use serde_json::{Map, Value};
use tollgate_sdk::workspace::{MAX_READ, Workspace};
use tollgate_sdk::{Cx, ToolError};

use crate::arguments::clip;
use crate::error::Reason;
use crate::export::{Bundle, FORMAT, VERSION};
use crate::root::Root;

/// Maximum bytes of a file: the parts read must fit into the memory of a component.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Maximum unknown keys that an error lists.
const MAX_LISTED_KEYS: usize = 20;

/// Format and version of a bundle.
#[derive(Deserialize)]
struct Header {
    format: Option<Value>,
    version: Option<Value>,
}

/// Reads a bundle that was passed in the call.
pub(crate) fn object(bundle: Map<String, Value>) -> Result<Bundle, ToolError> {
    let whole = Value::Object(bundle);
    header(&whole)?;
    read(whole)
}

/// Reads a bundle from a file in a workspace.
pub(crate) fn file(cx: &Cx<'_>, path: &str) -> Result<Bundle, ToolError> {
    let place = Root::parse(path).filter(|place| !place.directory.is_empty());
    let Some(place) = place else {
        let fault = format!("{:?} is not a path in a workspace", clip(path));
        return Err(Reason::argument("path", fault).into());
    };
    let file = Source {
        workspace: cx.workspace(&place.workspace)?,
        path: &place.directory,
    };
    let parsed = file.parse(|json| read(json));
    match &parsed {
        Ok(bundle) if bundle.format == FORMAT && bundle.version == VERSION => {}
        // A wrong header explains more than a wrong field.
        _ => file.parse(|json| header(json))?,
    }
    parsed
}

/// A file with a bundle.
struct Source<'a> {
    workspace: Workspace<'a>,
    path: &'a str,
}

impl Source<'_> {
    /// Parses the file while reading, so that the file is never in memory as a whole.
    fn parse<T>(
        &self,
        parse: impl FnOnce(&mut serde_json::Deserializer<IoRead<&mut Pieces<'_>>>) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let mut pieces = Pieces {
            source: self,
            piece: Cursor::default(),
            offset: 0,
            failure: None,
        };
        let mut json = serde_json::Deserializer::from_reader(&mut pieces);
        let parsed = parse(&mut json).and_then(|parsed| {
            json.end().map_err(|err| unfit(&err))?;
            Ok(parsed)
        });
        pieces.failure.map_or(parsed, Err)
    }
}

/// Content of a file, piece by piece.
struct Pieces<'a> {
    source: &'a Source<'a>,
    piece: Cursor<Vec<u8>>,
    /// Offset of the next piece.
    offset: u64,
    /// Error that ended the reading.
    failure: Option<ToolError>,
}

impl Pieces<'_> {
    fn next(&mut self) -> Result<Vec<u8>, ToolError> {
        let Source { workspace, path } = self.source;
        let piece = workspace.read_at(path, self.offset, MAX_READ)?;
        self.offset += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        if self.offset > MAX_FILE_BYTES {
            let fault = format!("is a file of more than {MAX_FILE_BYTES} bytes");
            return Err(Reason::argument("path", fault).into());
        }
        Ok(piece)
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.piece.read(to)?;
        if read > 0 || to.is_empty() {
            return Ok(read);
        }
        let piece = self.next().map_err(|failure| {
            let err = io::Error::other(failure.to_string());
            self.failure = Some(failure);
            err
        })?;
        self.piece = Cursor::new(piece);
        self.piece.read(to)
    }
}

/// Refuses another format or version.
fn header<'de, D: Deserializer<'de>>(whole: D) -> Result<(), ToolError> {
    let header = Header::deserialize(whole).map_err(|err| unfit(&err))?;
    let format = header.format.as_ref().and_then(Value::as_str);
    if format != Some(FORMAT) {
        let fault = format!(
            "the bundle's format is {}, not {FORMAT}",
            clip(format.unwrap_or("missing"))
        );
        return Err(Reason::Bundle(fault).into());
    }
    let version = header.version.as_ref().and_then(Value::as_u64);
    if version != Some(u64::from(VERSION)) {
        let said = version.map_or("missing".to_owned(), |version| version.to_string());
        let fault = format!("the bundle's version is {said}; this pack reads version {VERSION}");
        return Err(Reason::Bundle(fault).into());
    }
    Ok(())
}

fn read<'de, D: Deserializer<'de>>(whole: D) -> Result<Bundle, ToolError> {
    let mut unknown = Vec::new();
    // An optional record has a `?` of its own in the path.
    let bundle = serde_ignored::deserialize(whole, |key| {
        unknown.push(clip(&key.to_string().replace(".?", "")));
    })
    .map_err(|err| unfit(&err))?;
    if unknown.is_empty() {
        return Ok(bundle);
    }
    let more = match unknown.len().saturating_sub(MAX_LISTED_KEYS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    unknown.truncate(MAX_LISTED_KEYS);
    let fault = format!("the bundle has unknown keys: {}{more}", unknown.join(", "));
    Err(Reason::Bundle(fault).into())
}

fn unfit(err: &impl std::fmt::Display) -> ToolError {
    Reason::Bundle(format!("the bundle is invalid: {err}")).into()
}
