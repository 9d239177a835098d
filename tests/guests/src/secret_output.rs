//! Outputs a secret in every possible way: in its reply, beside it, during the call, and in stored data.

use guests::Done;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{
    ArtifactKind, Content, Cx, Effect, Event, Level, Media, Pack, Prompt, Question, Tool, ToolError, Want,
    prompts, tools,
};

/// Text in place of the secret.
const HARMLESS: &str = "nothing to hide";

/// A token in the format of GitHub, assembled at run time: other tests search for secrets in directories with
/// this component.
fn secret() -> String {
    ["ghp", "0123456789abcdefghijklmnopqrstuvwxyz"].join("_")
}

fn bytes(around: &[u8], word: &str) -> Vec<u8> {
    [around, word.as_bytes(), around].concat()
}

/// Way to output the secret.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Way to output the text, for example reply.
    way: String,
    /// Output a harmless text instead of the secret. Default false.
    #[serde(default)]
    harmless: bool,
}

impl Way {
    fn word(&self) -> String {
        if self.harmless {
            HARMLESS.to_owned()
        } else {
            secret()
        }
    }
}

/// Output the secret in a reply, or beside it.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-resources" = [{"path": "said/{way}.txt", "name": "said", "title": "Said",
    "description": "What was said.", "mime_type": "text/plain"}]))]
pub struct Read(Way);

/// A reply with its content.
#[derive(Serialize, JsonSchema)]
pub struct Said {
    /// Text of the reply.
    said: String,
    /// Encoding of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    #[serde(skip)]
    text: Option<String>,
    #[serde(skip)]
    content: Vec<Content>,
}

impl Tool for Read {
    const NAME: &'static str = "leak_read";
    const TITLE: &'static str = "Say";
    const EFFECT: Effect = Effect::Read;
    type Output = Said;

    fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
        let word = self.0.word();
        let mut said = Said {
            said: "done".to_owned(),
            encoding: None,
            text: None,
            content: Vec::new(),
        };
        let media = |mime_type: &str, data: Vec<u8>| Media {
            mime_type: mime_type.to_owned(),
            data,
        };
        let resource = |uri: String, text: &str| Content::Resource {
            uri,
            mime_type: "text/plain".to_owned(),
            text: text.to_owned(),
        };
        let error = || ToolError::new("AS_ASKED", "no").remediation("Ask for something else.");
        let form = |word: &str| serde_json::json!({"type": "object", "properties": {"x": {"type": "string", "description": word}}});
        match self.0.way.as_str() {
            "structured" => said.said = word,
            "text" => said.text = Some(word),
            "content" => said.content.push(Content::Text(word)),
            "resource" => said.content.push(resource("notes://one".to_owned(), &word)),
            "address" => said
                .content
                .push(resource(format!("notes://{}", word.replace(' ', "-")), "x")),
            "image" => said
                .content
                .push(Content::Image(media("image/png", bytes(b"\x89\0\xff", &word)))),
            "audio" => said
                .content
                .push(Content::Audio(media("audio/wav", word.into_bytes()))),
            // `Z2hw` is the beginning in base64.
            "base64" => (said.encoding, said.said) = (Some("base64".to_owned()), base64(word.as_bytes())),
            "line" => cx.log(Level::Info, &word),
            "message" => return Err(ToolError::new("AS_ASKED", word)),
            "context" => return Err(error().context("word", word)),
            "question" => return Err(error().ask(Question::with_form("x", word, form("x")))),
            "form" => return Err(error().ask(Question::with_form("x", "Well?", form(&word)))),
            "memory" => {
                return Err(error()
                    .ask(Question::with_form("x", "Well?", form("x")))
                    .remember(word));
            }
            other => return Err(error().context("way", other)),
        }
        Ok(said)
    }

    fn text(output: &Said) -> Option<String> {
        output.text.clone()
    }

    fn content(output: &Said) -> Vec<Content> {
        output.content.clone()
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > three.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    text
}

/// Output the secret in stored data.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Write(Way);

impl Tool for Write {
    const NAME: &'static str = "leak_write";
    const TITLE: &'static str = "Leave";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let word = self.0.word();
        match self.0.way.as_str() {
            "file" => cx.workspace("main")?.write("one.txt", word.as_bytes())?,
            "bytes" => cx.workspace("main")?.write("one.bin", &bytes(b"\0\xff", &word))?,
            "path" => cx.workspace("main")?.write(&format!("{word}.txt"), b"x")?,
            "kept" => {
                cx.workspace("main")?.write("one.txt", word.as_bytes())?;
                cx.keep_rows();
                return Err(ToolError::new("AS_ASKED", "no").remediation("Look into the file."));
            }
            "note" => cx.ledger().append(&Event::new("it.was").note(word))?,
            "changed" => cx.ledger().append(&Event::new("it.was").changed([word]))?,
            "artifact" => drop(cx.keep_artifact(ArtifactKind::Log, word.as_bytes())?),
            other => return Err(ToolError::new("UNKNOWN_WAY", other)),
        }
        Ok(Done::new("done"))
    }
}

/// Output the secret during the call.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Run(Way);

impl Tool for Run {
    const NAME: &'static str = "leak_run";
    const TITLE: &'static str = "Tell";
    const EFFECT: Effect = Effect::Run;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let word = self.0.word();
        match self.0.way.as_str() {
            "line" => cx.log(Level::Warn, &word),
            "progress" => cx.progress(1, Some(4), &word),
            "trap" => {
                cx.log(Level::Warn, &word);
                cx.ledger().append(&Event::new("it.was").changed([word]))?;
                panic!("as asked");
            }
            other => return Err(ToolError::new("UNKNOWN_WAY", other)),
        }
        Ok(Done::new("done"))
    }
}

/// A prompt with the secret.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shown {}

impl Prompt for Shown {
    const NAME: &'static str = "leak_prompt";
    const TITLE: &'static str = "Show";

    fn say(self, _cx: &Cx<'_>) -> Result<String, ToolError> {
        Ok("Look.".to_owned())
    }

    fn show(&self, _cx: &Cx<'_>) -> Vec<Content> {
        vec![Content::Text(secret())]
    }
}

const PACK: Pack = Pack {
    name: "secret-output",
    version: "0.1.0",
    summary: "Says a secret in every way.",
    wants: &[
        Want::WorkspaceRead("main"),
        Want::WorkspaceWrite("."),
        Want::Artifacts,
    ],
    tools: tools![Read, Write, Run],
    prompts: prompts![Shown],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
