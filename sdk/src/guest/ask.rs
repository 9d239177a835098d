//! Conversions of content and questions between SDK types and WIT types.

use super::wit;
use crate::{Action, Answer, AnsweredBy, Asking, Content, Media};

pub(super) fn content(piece: Content) -> wit::Content {
    match piece {
        Content::Text(text) => wit::Content::Text(text),
        Content::Image(image) => wit::Content::Image(media(image)),
        Content::Audio(audio) => wit::Content::Audio(media(audio)),
        Content::Resource { uri, mime_type, text } => {
            wit::Content::Resource(wit::TextResource { uri, mime_type, text })
        }
    }
}

fn media(media: Media) -> wit::Media {
    wit::Media {
        mime_type: media.mime_type,
        data: media.data,
    }
}

pub(super) fn asking(asking: Asking) -> wit::Asking {
    let questions = asking.questions.into_iter().map(|question| wit::Question {
        key: question.key,
        message: question.message,
        by: match question.by {
            AnsweredBy::Form(form) => wit::AnsweredBy::Form(form.to_string()),
            AnsweredBy::Model(max_tokens) => wit::AnsweredBy::Model(max_tokens),
            AnsweredBy::Roots => wit::AnsweredBy::Roots,
        },
    });
    wit::Asking {
        questions: questions.collect(),
        remember: asking.state,
    }
}

pub(super) fn answer(said: wit::Answer) -> Answer {
    Answer {
        key: said.key,
        action: match said.action {
            wit::Action::Accept => Action::Accept,
            wit::Action::Decline => Action::Decline,
            wit::Action::Cancel => Action::Cancel,
        },
        content: serde_json::from_str(&said.content).unwrap_or_default(),
    }
}
