//! Check that the approver is not the requester.

use serde_json::Value;
use tollgate_sdk::policy::{CannotJudge, Denial, PolicyCx, Request};

use crate::REQUEST_TOOL;
use crate::store;

/// A person, by the given name and by the identity that the transport proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) identity: Option<String>,
}

/// Objection to an approver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Objection {
    /// The approver is the requester.
    Asked,
    /// The requester is unknown.
    Unknown,
}

/// Compares identities if both have one, because a name is only a claim. If identities are required, names do
/// not count.
fn objection(asked: &Person, answers: &Person, proven: bool) -> Option<Objection> {
    match (&asked.identity, &answers.identity) {
        (Some(asked), Some(answers)) if asked == answers => Some(Objection::Asked),
        (Some(_), Some(_)) if proven => None,
        _ if proven => Some(Objection::Unknown),
        _ => (asked.name == answers.name).then_some(Objection::Asked),
    }
}

/// Stores the first requester.
pub(crate) fn note(cx: &PolicyCx<'_>, request: &Request, body: &Value) -> Result<(), CannotJudge> {
    if let (Some(id), Some(name)) = (text(body, "id"), text(body, "requested_by")) {
        let asked = Person {
            name,
            identity: request.identity.clone(),
        };
        store::note(&cx.db, &id, &asked)?;
    }
    Ok(())
}

/// Refuses an answer by the requester, or by a person who may be the requester.
pub(crate) fn check(
    cx: &PolicyCx<'_>,
    request: &Request,
    body: &Value,
    proven: bool,
) -> Result<Result<(), Denial>, CannotJudge> {
    let noted = match text(body, "id") {
        Some(id) => store::asked(&cx.db, &id)?,
        None => None,
    };
    let asked = noted.unwrap_or_else(|| Person {
        name: text(body, "requested_by").unwrap_or_default(),
        identity: None,
    });
    let answers = Person {
        name: text(body, "resolved_by").unwrap_or_default(),
        identity: request.identity.clone(),
    };
    Ok(match objection(&asked, &answers, proven) {
        None => Ok(()),
        Some(Objection::Asked) => Err(Denial::new(
            "APPROVER_ASKED",
            format!("`{}` requested this and may not answer it", answers.name),
        )
        .remediation("Let another person answer.")),
        Some(Objection::Unknown) => Err(Denial::new(
            "ASKER_UNKNOWN",
            "the identity of the requester is not proven",
        )
        .remediation(format!(
            "Request and answer over connections with a proven identity, and apply the policy to {REQUEST_TOOL}."
        ))),
    })
}

/// Text field of the approval in a result.
fn text(body: &Value, name: &str) -> Option<String> {
    Some(body.get("approval")?.get(name)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str, identity: Option<&str>) -> Person {
        Person {
            name: name.to_owned(),
            identity: identity.map(str::to_owned),
        }
    }

    #[test]
    fn who_may_answer_whom() {
        let ada = person("ada", Some("token:ada"));
        let grace = person("grace", Some("token:grace"));
        let disguised = person("grace", Some("token:ada"));
        let namesake = person("ada", Some("token:other"));
        let unproven = person("grace", None);
        let same_name = person("ada", None);
        for (answers, by_name, by_proof) in [
            (&ada, Some(Objection::Asked), Some(Objection::Asked)),
            (&grace, None, None),
            (&disguised, Some(Objection::Asked), Some(Objection::Asked)),
            (&namesake, Some(Objection::Asked), None),
            (&unproven, None, Some(Objection::Unknown)),
            (&same_name, Some(Objection::Asked), Some(Objection::Unknown)),
        ] {
            assert_eq!(objection(&ada, answers, false), by_name, "{answers:?}");
            assert_eq!(objection(&ada, answers, true), by_proof, "{answers:?}");
        }
        let nobody = person("", None);
        assert_eq!(objection(&nobody, &grace, true), Some(Objection::Unknown));
    }
}
