//! Text of everything that leaves with a result beside its structured part, for policies to judge: all component
//! output that reaches a client, a workspace or the ledger.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tollgate_core::hash;
use tollgate_sandbox::workspaces::DeferredWrite;
use tollgate_sdk::{AnsweredBy, Asking, Content, Media};
use tollgate_store::artifacts::CallArtifacts;

use super::super::Reply;
use super::super::ended::Ended;

/// Shortest readable stretch in binary data, in bytes.
const MIN_STRETCH: usize = 8;

/// Every readable piece, each on separate lines. `None` if there is none.
pub(super) fn text(ended: &Ended, artifacts: &CallArtifacts) -> Option<String> {
    let mut pieces = Pieces::default();
    if let Ok(reply) = &ended.result {
        if reply.refusal.is_none() {
            pieces.reply(reply);
        }
        reply.deferred_writes.iter().for_each(|held| pieces.file(held));
    }
    if let Some(asking) = ended.refusal().and_then(|refusal| refusal.asking.as_deref()) {
        pieces.asking(asking);
    }
    for line in &ended.lines {
        pieces.add(line.text.as_str());
    }
    ended.annotations.texts(|text| pieces.add(text));
    artifacts.each_given(|content| pieces.add(readable(content)));
    pieces.0
}

/// Concatenated texts.
#[derive(Default)]
struct Pieces(Option<String>);

impl Pieces {
    fn add<'a>(&mut self, piece: impl Into<Cow<'a, str>>) {
        let piece = piece.into();
        match &mut self.0 {
            Some(all) => {
                all.push('\n');
                all.push_str(&piece);
            }
            None => self.0 = Some(piece.into_owned()),
        }
    }

    fn reply(&mut self, reply: &Reply) {
        if let Some(text) = &reply.text {
            self.add(text.as_str());
        }
        for piece in &*reply.content {
            self.content(piece);
        }
        self.encoded(reply);
    }

    fn content(&mut self, content: &Content) {
        match content {
            Content::Text(text) => self.add(text.as_str()),
            Content::Image(media) | Content::Audio(media) => self.media(media),
            Content::Resource { uri, mime_type, text } => {
                self.add(uri.as_str());
                self.add(mime_type.as_str());
                self.add(text.as_str());
            }
        }
    }

    fn media(&mut self, media: &Media) {
        let Media { mime_type, data } = media;
        let hash = hash::sha256_hex(data);
        self.add(format!("{mime_type}, {} bytes, SHA-256 {hash}", data.len()));
        self.add(readable(data));
    }

    /// Adds members of a reply that clients get decoded when they read it as a resource.
    fn encoded(&mut self, reply: &Reply) {
        if !reply.json.contains("base64") {
            return;
        }
        let structured = reply.structured();
        if structured.get("encoding").and_then(Value::as_str) != Some("base64") {
            return;
        }
        for text in structured.values().filter_map(Value::as_str) {
            if let Ok(bytes) = BASE64_STANDARD.decode(text) {
                self.add(readable(&bytes));
            }
        }
    }

    fn file(&mut self, held: &DeferredWrite) {
        let name = &held.workspace.info.name;
        self.add(format!("{name}: {}", held.change.path));
        self.add(readable(&held.change.content));
    }

    fn asking(&mut self, asking: &Asking) {
        for question in &asking.questions {
            self.add(question.key.as_str());
            self.add(question.message.as_str());
            if let AnsweredBy::Form(form) = &question.by {
                self.strings(form);
            }
        }
        if let Some(state) = &asking.state {
            self.add(state.as_str());
        }
    }

    /// Adds every string and name of a JSON value, unescaped.
    fn strings(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text.as_str()),
            Value::Array(items) => items.iter().for_each(|item| self.strings(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.add(name.as_str());
                    self.strings(member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Bytes as text if they are text, otherwise their stretches of visible ASCII.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    let stretches = bytes.split(|byte| !matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'));
    for stretch in stretches.filter(|stretch| stretch.len() >= MIN_STRETCH) {
        text.push_str(&String::from_utf8_lossy(stretch));
        text.push('\n');
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_sandbox::progress::{Line, Severity};
    use tollgate_sdk::{Question, ToolError};

    use super::super::super::failure::Failure;
    use super::*;

    fn judged(ended: &Ended) -> String {
        text(ended, &CallArtifacts::default()).unwrap_or_default()
    }

    #[test]
    fn a_reply_without_more_than_its_text_is_judged_as_before() {
        let text = |text: Option<&str>| {
            let reply = Reply {
                json: "{}".to_owned(),
                text: text.map(str::to_owned),
                ..Reply::default()
            };
            super::text(&Ended::of(Ok(reply)), &CallArtifacts::default())
        };
        assert_eq!(text(None), None);
        assert_eq!(text(Some("shown")), Some("shown".to_owned()));
    }

    #[test]
    fn every_way_out_of_a_reply_is_read() {
        let media = |data: &[u8]| Media {
            mime_type: "image/x-kind".to_owned(),
            data: data.to_vec(),
        };
        let content = [
            Content::Text("in a text".to_owned()),
            Content::Image(media(b"\x89PNG\0\0tEXt in a picture\0\xff")),
            Content::Audio(media("in a sound".as_bytes())),
            Content::Resource {
                uri: "notes://in-an-address".to_owned(),
                mime_type: "text/in-a-type".to_owned(),
                text: "in a resource".to_owned(),
            },
        ];
        let json = json!({"encoding": "base64", "content": BASE64_STANDARD.encode("in an encoding")});
        let mut ended = Ended::of(Ok(Reply {
            json: json.to_string(),
            content: content.into(),
            ..Reply::default()
        }));
        ended.lines.push(Line {
            severity: Severity::Info,
            pack: "notes".to_owned(),
            text: "in a line".to_owned(),
        });
        let text = judged(&ended);
        for expected in [
            "in a text",
            "image/x-kind, 25 bytes, SHA-256 ",
            "in a picture",
            "in a sound",
            "notes://in-an-address",
            "text/in-a-type",
            "in a resource",
            "in an encoding",
            "in a line",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn questions_and_what_they_remember_are_read() {
        let form = json!({"type": "object", "properties": {"in_a_name": {"description": "in a \"form\""}}});
        let refusal = ToolError::new("WANTED", "no answer")
            .ask(Question::with_form("in_a_key", "in a question", form))
            .remember("in a memory");
        let text = judged(&Ended::of(Err(Failure::of_tool(refusal))));
        for expected in [
            "in_a_key",
            "in a question",
            "in_a_name",
            "in a \"form\"",
            "in a memory",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
