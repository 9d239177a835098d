//! Elicitation: validates a component's questions and content before clients see them, and answers before components
//! do.

use serde_json::Value;
use tollgate_core::hash;
use tollgate_core::text;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::granted::Granted;
use tollgate_sdk::{Action, Answer, AnsweredBy, Asking, Content, Media, Question};

/// Most questions of one call.
const MAX_QUESTIONS: usize = 8;
/// Longest question, in bytes.
const MAX_MESSAGE: usize = 2 << 10;
/// Longest form, in bytes of JSON.
const MAX_FORM: usize = 16 << 10;
/// Size limit of the state that a call stores while it asks, in bytes.
const MAX_STATE: usize = 4 << 10;
/// Most tokens in a model's answer.
const MAX_TOKENS: u32 = 16 << 10;
/// Longest address and longest media type, in bytes.
const MAX_NAME: usize = 2 << 10;

/// Longest reason against an answer, in bytes.
const MAX_REASON: usize = 300;

/// Validates a piece of content. The error says what is wrong.
pub(super) fn content(said: wit::Content) -> Result<Content, String> {
    Ok(match said {
        wit::Content::Text(text) => Content::Text(text::clean_prose(&text)),
        wit::Content::Image(image) => Content::Image(media(image)?),
        wit::Content::Audio(audio) => Content::Audio(media(audio)?),
        wit::Content::Resource(resource) => Content::Resource {
            uri: name(&resource.uri)?,
            mime_type: name(&resource.mime_type)?,
            text: text::clean_prose(&resource.text),
        },
    })
}

/// Bytes of a piece of content.
pub(super) fn size(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Image(media) | Content::Audio(media) => media.data.len(),
        Content::Resource { uri, text, .. } => uri.len() + text.len(),
    }
}

/// SHA-256 of a piece of content and its metadata.
pub(super) fn hash(content: &Content) -> String {
    let (kind, name, bytes) = match content {
        Content::Text(text) => ("text", "", text.as_bytes()),
        Content::Image(media) => ("image", media.mime_type.as_str(), media.data.as_slice()),
        Content::Audio(media) => ("audio", media.mime_type.as_str(), media.data.as_slice()),
        Content::Resource { uri, text, .. } => ("resource", uri.as_str(), text.as_bytes()),
    };
    let bytes = hash::sha256_hex(bytes);
    hash::sha256_hex(format!("{kind}\n{name}\n{bytes}").as_bytes())
}

/// Question of a component. `None` if it cannot be asked, in which case the refusal is returned alone.
pub(super) fn read(said: wit::Asking, granted: &Granted) -> Option<Asking> {
    if said.questions.len() > MAX_QUESTIONS
        || said
            .remember
            .as_ref()
            .is_some_and(|state| state.len() > MAX_STATE)
    {
        tracing::warn!("a component asks too many questions or stores too much, so its refusal is final");
        return None;
    }
    let questions = said.questions.into_iter();
    let questions: Vec<Question> = questions.filter_map(|said| question(said, granted)).collect();
    (!questions.is_empty()).then_some(Asking {
        questions,
        state: said.remember,
    })
}

/// Reason for which an answer does not fit its question. `None` if it fits, or declines.
pub fn misfit(question: &Question, answer: &Answer) -> Option<String> {
    let AnsweredBy::Form(form) = &question.by else {
        return None;
    };
    if answer.action != Action::Accept {
        return None;
    }
    if !answer.content.is_object() {
        return Some("the content is not an object".to_owned());
    }
    // An invalid form accepts every answer.
    let validator = jsonschema::validator_for(form).ok()?;
    let err = validator.validate(&answer.content).err()?;
    let at = err.instance_path().to_string();
    let why = match at.as_str() {
        "" => err.to_string(),
        at => format!("{at}: {err}"),
    };
    Some(text::clean(text::cut(&why, MAX_REASON)))
}

/// Answer in the component's types.
pub(super) fn wire(answer: Answer) -> wit::Answer {
    wit::Answer {
        key: answer.key,
        action: match answer.action {
            Action::Accept => wit::Action::Accept,
            Action::Decline => wit::Action::Decline,
            Action::Cancel => wit::Action::Cancel,
        },
        content: answer.content.to_string(),
    }
}

fn question(said: wit::Question, granted: &Granted) -> Option<Question> {
    let by = match said.by {
        wit::AnsweredBy::Form(form) => read_form(&form).map(AnsweredBy::Form),
        wit::AnsweredBy::Model(tokens) => {
            let tokens = tokens.clamp(1, MAX_TOKENS);
            granted.model.then_some(AnsweredBy::Model(tokens))
        }
        wit::AnsweredBy::Roots => granted.roots.then_some(AnsweredBy::Roots),
    };
    let is_key = (1..=40).contains(&said.key.len())
        && said.key.starts_with(|c: char| c.is_ascii_lowercase())
        && said
            .key
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let (Some(by), true) = (by, is_key) else {
        tracing::warn!("a component sent a question that no client can answer, or that it was not granted");
        return None;
    };
    Some(Question {
        key: said.key,
        message: text::clean_lines(text::cut(&said.message, MAX_MESSAGE)),
        by,
    })
}

fn read_form(json: &str) -> Option<Value> {
    if json.len() > MAX_FORM {
        return None;
    }
    let form: Value = serde_json::from_str(json).ok()?;
    (form.get("type").and_then(Value::as_str) == Some("object")).then_some(form)
}

fn media(said: wit::Media) -> Result<Media, String> {
    Ok(Media {
        mime_type: name(&said.mime_type)?,
        data: said.data,
    })
}

/// Validates an address or a media type: visible ASCII characters.
fn name(said: &str) -> Result<String, String> {
    let is_name = (1..=MAX_NAME).contains(&said.len()) && said.bytes().all(|byte| byte.is_ascii_graphic());
    if is_name {
        Ok(said.to_owned())
    } else {
        Err(format!(
            "{:?} is not a valid address or media type",
            text::cut(said, 100)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(key: &str, by: wit::AnsweredBy, granted: &Granted) -> Option<Asking> {
        let question = wit::Question {
            key: key.to_owned(),
            message: "What?\u{1b}[31m".to_owned(),
            by,
        };
        let said = wit::Asking {
            questions: vec![question],
            remember: None,
        };
        read(said, granted)
    }

    #[test]
    fn only_questions_that_can_be_answered_are_asked() {
        let nothing = Granted::default();
        let form = |form: &str| wit::AnsweredBy::Form(form.to_owned());
        let asked = asking("name", form(r#"{"type": "object"}"#), &nothing).unwrap();
        assert!(!asked.questions[0].message.contains('\u{1b}'));
        for (key, bad) in [
            ("Name", r#"{"type": "object"}"#),
            ("name", "[]"),
            ("name", "{"),
            ("", "{}"),
        ] {
            assert_eq!(asking(key, form(bad), &nothing), None, "{key} {bad}");
        }
    }

    #[test]
    fn a_model_and_folders_are_asked_for_only_if_that_was_granted() {
        let nothing = Granted::default();
        let both = Granted {
            model: true,
            roots: true,
            ..Granted::default()
        };
        for by in [wit::AnsweredBy::Model(50), wit::AnsweredBy::Roots] {
            assert_eq!(asking("more", by.clone(), &nothing), None);
            assert!(asking("more", by, &both).is_some());
        }
        let greedy = asking("more", wit::AnsweredBy::Model(u32::MAX), &both).unwrap();
        assert_eq!(greedy.questions[0].by, AnsweredBy::Model(MAX_TOKENS));
    }

    #[test]
    fn content_has_names_that_clients_can_read() {
        let image = |mime_type: &str| {
            content(wit::Content::Image(wit::Media {
                mime_type: mime_type.to_owned(),
                data: vec![1, 2],
            }))
        };
        assert_eq!(size(&image("image/png").unwrap()), 2);
        assert!(image("").is_err() && image("image/\u{202e}png").is_err());
    }
}
