//! From an object or a file to a bundle of this version. What this version does not know is refused rather than
//! lost.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tollgate_sdk::workspace::MAX_READ;
use tollgate_sdk::{Cx, ToolError};

use crate::arguments::clip;
use crate::error::Reason;
use crate::export::{Bundle, FORMAT, VERSION};
use crate::root::Root;

/// Bytes of a file: it and what is read of it have to fit into the memory of a component.
const FILE: usize = 8 << 20;
/// Unknown keys that are named.
const KEYS: usize = 20;

/// What a bundle calls itself, and in which version.
#[derive(Deserialize)]
struct Header {
    format: Option<Value>,
    version: Option<Value>,
}

/// Reads a bundle that came with the call.
pub(crate) fn object(bundle: Map<String, Value>) -> Result<Bundle, ToolError> {
    let whole = Value::Object(bundle);
    let header = Header::deserialize(&whole).map_err(|err| unfit(&err))?;
    read(&header, whole)
}

/// Reads a bundle from a file in a workspace.
pub(crate) fn file(cx: &Cx<'_>, path: &str) -> Result<Bundle, ToolError> {
    let place = Root::parse(path).filter(|place| !place.directory.is_empty());
    let Some(place) = place else {
        let fault = format!("{:?} is no path in a workspace", clip(path));
        return Err(Reason::argument("path", fault).into());
    };
    let workspace = cx.workspace(&place.workspace)?;
    let mut text = Vec::new();
    loop {
        let offset = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let piece = workspace.read_at(&place.directory, offset, MAX_READ)?;
        if piece.is_empty() {
            break;
        }
        text.extend(piece);
        if text.len() > FILE {
            let fault = format!("is a file of more than {FILE} bytes");
            return Err(Reason::argument("path", fault).into());
        }
    }
    let header = serde_json::from_slice(&text).map_err(|err| unfit(&err))?;
    let mut whole = serde_json::Deserializer::from_slice(&text);
    let bundle = read(&header, &mut whole)?;
    whole.end().map_err(|err| unfit(&err))?;
    Ok(bundle)
}

fn read<'de, D: Deserializer<'de>>(header: &Header, whole: D) -> Result<Bundle, ToolError> {
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
    let mut unknown = Vec::new();
    // An optional record has a `?` of its own in the path.
    let bundle = serde_ignored::deserialize(whole, |key| {
        unknown.push(clip(&key.to_string().replace(".?", "")));
    })
    .map_err(|err| unfit(&err))?;
    if unknown.is_empty() {
        return Ok(bundle);
    }
    let more = match unknown.len().saturating_sub(KEYS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    unknown.truncate(KEYS);
    let fault = format!(
        "the bundle has keys that this version does not know: {}{more}",
        unknown.join(", ")
    );
    Err(Reason::Bundle(fault).into())
}

fn unfit(err: &impl std::fmt::Display) -> ToolError {
    Reason::Bundle(format!("the bundle does not fit: {err}")).into()
}
