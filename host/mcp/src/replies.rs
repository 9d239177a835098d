//! Conversion of the gate's outcomes to MCP results.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{
    CallToolResult, ContentBlock, ErrorData, GetPromptResponse, GetPromptResult, MetaObject, PromptMessage,
    ResourceContents, Role,
};
use serde_json::{Value, json};
use tollgate_gate::{CallOutcome, Left, Reply};
use tollgate_sdk::{Content, ToolError};

use super::handler::Structured;

/// Longest text of a result, in bytes. The structured result is not shortened.
const MAX_TEXT: usize = 40 << 10;

/// Result of a tool call.
pub(super) fn result(outcome: CallOutcome, structured: Structured) -> CallToolResult {
    let meta = meta(&outcome);
    let mut result = match outcome.result {
        Ok(mut reply) => {
            if let Some(left) = &outcome.left {
                tell_left(&mut reply, left);
            }
            success(reply, structured)
        }
        Err(err) => failure(&err),
    };
    result.meta = Some(meta);
    result
}

/// Adds what is left of the envelope's limits to a reply, where models read it. The hash in the ledger excludes this
/// addition, so that equal results have equal hashes.
fn tell_left(reply: &mut Reply, left: &Left) {
    let mut structured = reply.structured();
    let text = reply.text.take().unwrap_or_else(|| reply.json.clone());
    reply.text = Some(format!("{text}\n\nLeft in this envelope: {}.", left.in_words()));
    if !structured.contains_key("left") {
        structured.insert("left".to_owned(), json!(left));
        reply.json = Value::Object(structured).to_string();
    }
}

/// Result of a prompt. MCP's prompt results cannot represent a refusal, so a refusal becomes a protocol error with
/// everything that a tool's refusal contains.
pub(super) fn said(outcome: CallOutcome) -> Result<GetPromptResponse, ErrorData> {
    let meta = meta(&outcome);
    match outcome.result {
        Ok(reply) => {
            let text = ContentBlock::text(reply.text.unwrap_or(reply.json));
            let blocks = reply.content.iter().map(block).chain([text]);
            let messages = blocks.map(|block| PromptMessage::new(Role::User, block));
            let mut result = GetPromptResult::new(messages.collect());
            result.meta = Some(meta);
            Ok(result.into())
        }
        Err(err) => Err(ErrorData::invalid_params(
            err.to_string(),
            Some(json!({ "error": err })),
        )),
    }
}

/// Metadata of every reply: its operation, the remaining budget, and the operation that it repeated.
pub(super) fn meta(outcome: &CallOutcome) -> MetaObject {
    let mut meta = MetaObject::new();
    let mut add = |key: &str, value: Value| meta.0.insert(format!("tollgate/{key}"), value);
    add("op_id", outcome.op_id.as_str().into());
    add(
        "duration_ms",
        u64::try_from(outcome.duration.as_millis())
            .unwrap_or(u64::MAX)
            .into(),
    );
    if let Some(envelope) = &outcome.envelope_id {
        add("envelope_id", envelope.as_str().into());
    }
    if let Some(standing) = &outcome.standing {
        let counter = |used: i64, limit: Option<i64>| match limit {
            Some(limit) => json!({"used": used, "limit": limit, "left": (limit - used).max(0)}),
            None => json!({"used": used}),
        };
        let mut budget = json!({
            "mutations": counter(standing.mutations, standing.limits.max_mutations),
            "test_runs": counter(standing.test_runs, standing.limits.max_test_runs),
        });
        if standing.edits > 0 || standing.limits.max_edits.is_some() {
            budget["edits"] = counter(standing.edits, standing.limits.max_edits);
        }
        for (name, named) in &outcome.budgets {
            budget[name.as_str()] = json!({"used": named.used, "limit": named.limit, "left": named.left()});
        }
        add("budget", budget);
    }
    if let Some(mutation) = &outcome.mutation {
        let mut note = json!({"fingerprint": mutation.fingerprint, "changed": mutation.changed});
        match mutation.repeated {
            Some(1) => note["no_op"] = true.into(),
            Some(period) => note["oscillation"] = json!({"period": period}),
            None => {}
        }
        add("mutation", note);
    }
    if !outcome.stale.is_empty() {
        add("stale", json!({ "reasons": outcome.stale }));
    }
    if let Some(why) = &outcome.not_kept {
        add("not_kept", json!({ "error": why }));
    }
    meta
}

fn success(reply: Reply, structured: Structured) -> CallToolResult {
    let structured = match structured {
        Structured::Json => Value::Object(reply.structured()),
        Structured::Text => Value::String(reply.json.clone()),
    };
    let text = reply.text.unwrap_or(reply.json);
    let text = ContentBlock::text(shortened(text));
    let blocks = std::iter::once(text).chain(reply.content.iter().map(block));
    let mut result = CallToolResult::success(blocks.collect());
    result.structured_content = Some(structured);
    result
}

/// MCP form of a piece of content.
fn block(content: &Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(shortened(text.clone())),
        Content::Image(media) => ContentBlock::image(BASE64_STANDARD.encode(&media.data), &media.mime_type),
        Content::Audio(media) => ContentBlock::audio(BASE64_STANDARD.encode(&media.data), &media.mime_type),
        Content::Resource { uri, mime_type, text } => {
            ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
        }
    }
}

fn failure(err: &ToolError) -> CallToolResult {
    let body = json!({ "error": err });
    let mut result = CallToolResult::error(vec![ContentBlock::text(shortened(body.to_string()))]);
    result.structured_content = Some(body);
    result
}

fn shortened(text: String) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let mark = format!(
        "\n[cut: {} of {} bytes; the structured result is complete]",
        MAX_TEXT,
        text.len()
    );
    format!("{}{mark}", tollgate_core::text::cut(&text, MAX_TEXT - mark.len()))
}
