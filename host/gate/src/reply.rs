//! Replies of components, validated before policies and clients see them.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use tollgate_core::hash;
use tollgate_core::text;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::workspaces::DeferredWrite;
use tollgate_sdk::{Content, ToolError};

use super::elicit;
use super::failure::Failure;

/// Size limit of a component's reply, in bytes of JSON.
const MAX_REPLY: usize = 1 << 20;

/// Most pieces of content beside a reply's text.
const MAX_CONTENT: usize = 20;

/// A successful reply.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// Structured result as the component wrote it: a JSON object on one line.
    pub json: String,
    /// Text to show instead of the JSON.
    pub text: Option<String>,
    /// Further content to show.
    pub content: Arc<[Content]>,
    /// Set if the call was refused but its writes are kept. Inside the gate such a call counts as successful; its row
    /// and its caller get the refusal.
    pub refusal: Option<Box<ToolError>>,
    /// Files to write to workspaces once the call is committed.
    pub deferred_writes: Arc<[DeferredWrite]>,
}

impl Reply {
    /// Structured result.
    pub fn structured(&self) -> Map<String, Value> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// SHA-256 of the result, content included.
    pub fn hash(&self) -> String {
        if self.content.is_empty() {
            return hash::sha256_hex(self.json.as_bytes());
        }
        let mut all = self.json.clone();
        for piece in &*self.content {
            all.push('\n');
            all.push_str(&elicit::hash(piece));
        }
        hash::sha256_hex(all.as_bytes())
    }
}

/// Validated reply of a component.
pub(super) fn read(pack: &str, said: wit::Reply) -> Result<Reply, Failure> {
    let bad = |why: String| {
        let error = ToolError::new("BAD_REPLY", format!("pack `{pack}` sent an invalid reply: {why}"));
        Failure::trap(error.remediation("Report the operation's id to the pack's author."))
    };
    if said.structured.len() > MAX_REPLY {
        let failure = bad(format!(
            "{} bytes; at most {MAX_REPLY} are allowed",
            said.structured.len()
        ));
        return Err(failure.map(|error| {
            error.remediation("Request less data in one call, for example with a smaller limit.")
        }));
    }
    let content = said.content.into_iter().map(elicit::content);
    let content: Vec<Content> = content.collect::<Result<_, _>>().map_err(bad)?;
    let size: usize = content.iter().map(elicit::size).sum();
    if size > MAX_REPLY || content.len() > MAX_CONTENT {
        return Err(bad(format!(
            "{} pieces of content with {size} bytes; at most {MAX_CONTENT} with {MAX_REPLY} bytes are allowed",
            content.len()
        )));
    }
    Ok(Reply {
        content: content.into(),
        json: object(said.structured).map_err(|err| bad(format!("not a JSON object: {err}")))?,
        text: said.text.map(|said| text::clean_prose(&said)),
        deferred_writes: Arc::default(),
        refusal: None,
    })
}

/// Validates a JSON object that every parser must understand in the same way. It is sent to the client unchanged, so
/// it is read to its end. A tree is built only for an object that spans several lines.
fn object(json: String) -> serde_json::Result<String> {
    if json.contains(['\n', '\r']) {
        return Ok(Value::Object(serde_json::from_str(&json)?).to_string());
    }
    let mut reader = serde_json::Deserializer::from_str(&json);
    (&mut reader).deserialize_map(Sound)?;
    reader.end()?;
    Ok(json)
}

/// Validates JSON to its end without storing any of it.
struct Sound;

impl<'de> DeserializeSeed<'de> for Sound {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Sound)?.is_some() {}
        Ok(())
    }

    /// A duplicate name would be one value to some parsers and another to others.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = Vec::new();
        while let Some(Name(name)) = members.next_key()? {
            names.push(name);
            members.next_value_seed(Sound)?;
        }
        names.sort_unstable();
        if names.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(A::Error::custom("a name occurs twice in one object"));
        }
        Ok(())
    }
}

/// Hash of a member's name, which suffices to detect duplicates.
struct Name(u64);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Name, D::Error> {
        struct Hashed;
        impl Visitor<'_> for Hashed {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                use std::hash::{Hash as _, Hasher as _};
                let mut hasher = std::hash::DefaultHasher::new();
                name.hash(&mut hasher);
                Ok(Name(hasher.finish()))
            }
        }
        json.deserialize_str(Hashed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_object_in_one_line() {
        let read = |json: &str| object(json.to_owned()).map_err(|err| err.to_string());
        let same = r#"{"a":[1,-2,0.5,null,true,"\u00e9\ud83d\ude00"],"b":{"a":1},"c":"x"}"#;
        assert_eq!(read(same).unwrap(), same);
        assert_eq!(read("{\n \"a\": 1,\r\n \"b\": []}").unwrap(), r#"{"a":1,"b":[]}"#);
        for bad in [
            "",
            "[]",
            "\"{}\"",
            "{} {}",
            "{\"a\":1",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":1e999}",
            "{\"a\":1,\"b\":2,\"a\":3}",
            "{\"a\":[{\"b\":1,\"b\":1}]}",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        assert!(read(&deep).unwrap_err().contains("recursion"));
    }
}
