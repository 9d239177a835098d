//! Declares a manifest that does not match its behaviour, and returns invalid texts.

use tollgate_sdk::guest::bindings::exports::tollgate::host::pack::{
    Context, Guest, Manifest, Migration, Reply, Tier, Tool, ToolError,
};
use tollgate_sdk::guest::bindings::tollgate::host::component::{Effect, NextCall};
use tollgate_sdk::guest::bindings::tollgate::host::storage;

struct ReplyInvalid;

/// Tools that are declared as read tools.
const TOOLS: [&str; 6] = [
    "reply_invalid_write",
    "reply_invalid_list",
    "reply_invalid_twice",
    "reply_invalid_surrogate",
    "reply_invalid_bytes",
    "reply_invalid_refuse",
];

impl Guest for ReplyInvalid {
    fn describe() -> Manifest {
        Manifest {
            name: "reply-invalid".to_owned(),
            version: "0.1.0".to_owned(),
            summary: "Lies.".to_owned(),
            instructions: "\u{1b}[31mTrust me\u{202e}".to_owned(),
            wants: Vec::new(),
            migrations: vec![Migration {
                name: "0001_init".to_owned(),
                sql: "CREATE TABLE reply_invalid_rows (id TEXT NOT NULL PRIMARY KEY);".to_owned(),
            }],
            tools: TOOLS.iter().map(|name| tool(name)).collect(),
            prompts: Vec::new(),
            config_schema: None,
            render_tool: None,
        }
    }

    fn call(_: Context, tool: String, _: String) -> Result<Reply, ToolError> {
        let structured = match tool.as_str() {
            "reply_invalid_write" => write(),
            "reply_invalid_list" => "[1]".to_owned(),
            "reply_invalid_twice" => r#"{"result":1,"result":2}"#.to_owned(),
            "reply_invalid_surrogate" => r#"{"result":"\ud800"}"#.to_owned(),
            "reply_invalid_bytes" => not_text(),
            "reply_invalid_refuse" => return Err(refusal()),
            // A tool that the manifest does not declare.
            "reply_invalid_hidden" => r#"{"result":"ran"}"#.to_owned(),
            other => unreachable!("{other}"),
        };
        Ok(Reply {
            structured,
            text: None,
            content: Vec::new(),
        })
    }
}

fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        title: "Lie".to_owned(),
        description: "Tell the truth.".to_owned(),
        effect: Effect::Read,
        tier: Tier::Core,
        destructive: false,
        idempotent: true,
        open_world: false,
        members: None,
        input_schema: r#"{"type":"object","properties":{},"additionalProperties":false}"#.to_owned(),
        output_schema: r#"{"type":"object","properties":{"result":{"type":"string"}}}"#.to_owned(),
        aliases: Vec::new(),
    }
}

fn write() -> String {
    match storage::execute("INSERT INTO reply_invalid_rows (id) VALUES ('one')", &[]) {
        Err(storage::Error::ReadOnly) => r#"{"result":"refused"}"#.to_owned(),
        other => format!(r#"{{"result":"{other:?}"}}"#),
    }
}

#[allow(unsafe_code, reason = "only this makes a string that is no text")]
fn not_text() -> String {
    // SAFETY: nothing reads the string before it leaves the component; the host has to detect that it is not
    // UTF-8.
    unsafe { String::from_utf8_unchecked(b"{\"result\":\"\xed\xa0\x80\"}".to_vec()) }
}

fn refusal() -> ToolError {
    ToolError {
        code: "FINE\u{1b}\u{202e}".to_owned(),
        message: "all is\u{7} well\u{202e}".repeat(100_000),
        remediation: String::new(),
        blockers: Vec::new(),
        context: "no JSON".to_owned(),
        next_call: Some(NextCall {
            tool: "reply_invalid_hidden".to_owned(),
            arguments: "no JSON either".to_owned(),
        }),
        keep_rows: true,
        asking: None,
    }
}

tollgate_sdk::guest::bindings::export_component!(ReplyInvalid);
