//! Replies of calls as stored with tasks, so that any host can return them.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use tollgate_core::failure_class::FailureClass;
use tollgate_core::task::TaskEvent;
use tollgate_sdk::{Content, Media, ToolError};
use tollgate_store::storage::{MAX_REPLY, TaskEnd};

use crate::call::CallOutcome;
use crate::reply::Reply;
use crate::task_slot::Latest;

/// Stored reply or refusal of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptReply {
    op_id: String,
    envelope_id: Option<String>,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content: Vec<KeptContent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ToolError>,
}

/// A piece of content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptContent {
    Text(String),
    /// Media type, and the bytes as Base64.
    Image(String, String),
    Audio(String, String),
    /// Address, media type and text.
    Resource(String, String, String),
}

impl KeptReply {
    pub(super) fn of(latest: &Latest, took: Duration, result: Result<&Reply, &ToolError>) -> KeptReply {
        let mut kept = KeptReply {
            op_id: latest.op_id.clone(),
            envelope_id: latest.envelope_id.clone(),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            json: None,
            text: None,
            content: Vec::new(),
            error: None,
        };
        match result {
            Ok(Reply {
                refusal: Some(refusal),
                ..
            }) => kept.error = Some((**refusal).clone()),
            Ok(reply) => {
                kept.json = Some(reply.json.clone());
                kept.text.clone_from(&reply.text);
                kept.content = reply.content.iter().map(KeptContent::of).collect();
            }
            Err(refusal) => kept.error = Some(refusal.clone()),
        }
        kept
    }

    /// End of a task with this reply. `cause` is the class of the call's failure.
    pub(super) fn end(mut self, cause: Option<FailureClass>) -> TaskEnd {
        let mut reply = self.to_json();
        if reply.len() > MAX_REPLY {
            // The structured result contains the same.
            (self.text, self.content) = (None, Vec::new());
            reply = self.to_json();
        }
        let code = self.error.as_ref().map(|error| error.code.as_str());
        let event = match cause {
            Some(FailureClass::Cancelled) => TaskEvent::Stopped,
            // The call broke off without a result.
            Some(FailureClass::Trap | FailureClass::Host | FailureClass::Interrupted) => TaskEvent::Broke,
            None
            | Some(
                FailureClass::Refused
                | FailureClass::ToolError
                | FailureClass::TestFailure
                | FailureClass::Timeout,
            ) => TaskEvent::Replied,
        };
        TaskEnd {
            event,
            op_id: Some(self.op_id).filter(|id| !id.is_empty()),
            error_code: code.map(str::to_owned),
            note: self.error.as_ref().map(|error| error.message.clone()),
            reply,
        }
    }

    pub(super) fn read(json: &str) -> Option<KeptReply> {
        serde_json::from_str(json)
            .inspect_err(|err| tracing::error!(%err, "the reply of a task cannot be read"))
            .ok()
    }

    /// Outcome of the call, as it would be answered now.
    pub(super) fn into_outcome(self) -> CallOutcome {
        let result = match self.error {
            Some(error) => Err(error),
            None => Ok(Reply {
                json: self.json.unwrap_or_else(|| "{}".to_owned()),
                text: self.text,
                content: self
                    .content
                    .into_iter()
                    .filter_map(KeptContent::into_content)
                    .collect(),
                ..Reply::default()
            }),
        };
        CallOutcome {
            op_id: self.op_id,
            result,
            cause: None,
            duration: Duration::from_millis(self.duration_ms),
            envelope_id: self.envelope_id,
            standing: None,
            left: None,
            budgets: BTreeMap::new(),
            mutation: None,
            stale: Vec::new(),
            not_kept: None,
            asked: None,
            approvals: Vec::new(),
            is_overtaken: false,
            has_effects: true,
            lines: Vec::new(),
        }
    }

    fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl KeptContent {
    fn of(content: &Content) -> KeptContent {
        let media = |media: &Media| (media.mime_type.clone(), BASE64_STANDARD.encode(&media.data));
        match content {
            Content::Text(text) => KeptContent::Text(text.clone()),
            Content::Image(image) => {
                let (kind, data) = media(image);
                KeptContent::Image(kind, data)
            }
            Content::Audio(audio) => {
                let (kind, data) = media(audio);
                KeptContent::Audio(kind, data)
            }
            Content::Resource { uri, mime_type, text } => {
                KeptContent::Resource(uri.clone(), mime_type.clone(), text.clone())
            }
        }
    }

    fn into_content(self) -> Option<Content> {
        let media = |mime_type: String, data: String| {
            let data = BASE64_STANDARD.decode(data).ok()?;
            Some(Media { mime_type, data })
        };
        Some(match self {
            KeptContent::Text(text) => Content::Text(text),
            KeptContent::Image(kind, data) => Content::Image(media(kind, data)?),
            KeptContent::Audio(kind, data) => Content::Audio(media(kind, data)?),
            KeptContent::Resource(uri, mime_type, text) => Content::Resource { uri, mime_type, text },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest() -> Latest {
        Latest {
            op_id: "op_1".to_owned(),
            envelope_id: None,
            tool: "test_run".to_owned(),
            args_hash: String::new(),
        }
    }

    #[test]
    fn a_reply_is_said_again_as_it_was() {
        let image = Media {
            mime_type: "image/png".to_owned(),
            data: vec![0, 255],
        };
        let content = [
            Content::Text("t".to_owned()),
            Content::Image(image.clone()),
            Content::Audio(image),
            Content::Resource {
                uri: "note://1".to_owned(),
                mime_type: "text/plain".to_owned(),
                text: "x".to_owned(),
            },
        ];
        let reply = Reply {
            json: r#"{"a":"\"ä"}"#.to_owned(),
            text: Some("text".to_owned()),
            content: content.clone().into(),
            ..Reply::default()
        };
        let end = KeptReply::of(&latest(), Duration::from_millis(7), Ok(&reply)).end(None);
        assert_eq!((end.event, &end.error_code), (TaskEvent::Replied, &None));
        let outcome = KeptReply::read(&end.reply).unwrap().into_outcome();
        let again = outcome.result.unwrap();
        assert_eq!(
            (again.json.as_str(), again.text.as_deref()),
            (r#"{"a":"\"ä"}"#, Some("text"))
        );
        assert_eq!(*again.content, content);
        assert_eq!(
            (outcome.op_id.as_str(), outcome.duration.as_millis()),
            ("op_1", 7)
        );
    }

    #[test]
    fn a_call_that_broke_off_fails_and_a_refused_one_is_answered() {
        // A component may return any of the host's codes, so the code does not matter.
        let event = |cause: FailureClass| {
            let error = ToolError::new("STORAGE_FULL", "it failed");
            let kept = KeptReply::of(&latest(), Duration::ZERO, Err(&error));
            kept.end(Some(cause)).event
        };
        assert_eq!(event(FailureClass::ToolError), TaskEvent::Replied);
        assert_eq!(event(FailureClass::Refused), TaskEvent::Replied);
        assert_eq!(event(FailureClass::Timeout), TaskEvent::Replied);
        assert_eq!(event(FailureClass::Cancelled), TaskEvent::Stopped);
        assert_eq!(event(FailureClass::Trap), TaskEvent::Broke);
        assert_eq!(event(FailureClass::Host), TaskEvent::Broke);
    }

    #[test]
    fn a_reply_that_is_too_large_keeps_its_structure() {
        let reply = Reply {
            json: r#"{"a":1}"#.to_owned(),
            text: Some("x".repeat(MAX_REPLY)),
            ..Reply::default()
        };
        let end = KeptReply::of(&latest(), Duration::ZERO, Ok(&reply)).end(None);
        assert!(end.reply.len() < 200 && end.reply.contains(r#"{\"a\":1}"#));
    }
}
