//! A policy's question to the client's user, and the answer.

use serde_json::{Value, json};
use tollgate_sdk as sdk;

/// Key of a policy's question, and of the answer in its form.
const ALLOW: &str = "allow";

/// A question for the client's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Message for the user.
    pub message: String,
    /// Identifies the question and the call.
    pub about: String,
}

impl Pending {
    /// The question as a form. Pass its answer to [`Consent::to`].
    pub fn question(&self) -> sdk::Question {
        let form = json!({
            "type": "object",
            "properties": {ALLOW: {"type": "boolean", "title": "Allow this call"}},
            "required": [ALLOW],
        });
        sdk::Question::with_form(ALLOW, self.message.as_str(), form)
    }
}

/// Answer of the client's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// Identifies the question and the call.
    pub about: String,
    /// True for a yes.
    pub agreed: bool,
}

impl Consent {
    /// Answer from the form of a question. Only an accepted form with a yes is a yes.
    pub fn to(about: String, answer: &sdk::Answer) -> Consent {
        let is_yes = answer.content.get(ALLOW) == Some(&Value::Bool(true));
        Consent {
            about,
            agreed: answer.action == sdk::Action::Accept && is_yes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_accepted_form_with_a_yes_agrees() {
        let pending = Pending {
            message: "Really?".to_owned(),
            about: "a".to_owned(),
        };
        let question = pending.question();
        let agreed = |action, content| {
            let key = question.key.clone();
            let consent = Consent::to(pending.about.clone(), &sdk::Answer { key, action, content });
            assert_eq!(consent.about, "a");
            consent.agreed
        };
        let yes = json!({question.key.clone(): true});
        assert!(agreed(sdk::Action::Accept, yes.clone()));
        assert!(!agreed(sdk::Action::Decline, yes.clone()));
        assert!(!agreed(sdk::Action::Cancel, yes));
        for other in [
            json!({"allow": false}),
            json!({"allow": "true"}),
            json!({}),
            Value::Null,
        ] {
            assert!(!agreed(sdk::Action::Accept, other.clone()), "{other}");
        }
    }
}
