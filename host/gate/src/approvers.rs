//! Rules on who may answer a request for approval. Pure.
//!
//! The requester cannot answer its own request. Over HTTP the requester is an identity, and on this machine a
//! connection.

use tollgate_core::identity::Identity;
use tollgate_core::text;
use tollgate_sdk::ToolError;
use tollgate_store::storage::{StoredApproval, claim};

/// Word in [`ApprovalSettings::approvers`] for callers on this machine: stdio and the command line.
const LOCAL: &str = "local";

/// The operator's settings of approvals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Identities that may answer, with `local` for this machine. If empty, everyone except the requester may answer.
    pub approvers: Vec<String>,
}

/// Caller that answers or reads requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answerer<'a> {
    /// Identity of the caller, if the transport authenticated one.
    pub(crate) identity: Option<&'a Identity>,
    /// Caller as the ledger names it.
    pub(crate) actor: Option<&'a str>,
    pub(crate) connection: &'a str,
    /// True for stdio and the command line.
    pub(crate) is_local: bool,
}

impl Answerer<'_> {
    /// Name of the caller: the authenticated identity, or a claimed name.
    pub(crate) fn name(&self) -> Option<&str> {
        match self.identity {
            Some(identity) => Some(identity.as_str()),
            None => self.actor.map(|actor| claim(actor).unwrap_or(actor)),
        }
    }

    fn is_approver(&self, approvers: &[String]) -> bool {
        let is_it = |listed: &String| match self.identity {
            Some(identity) => listed == identity.as_str(),
            None => self.is_local && listed == LOCAL,
        };
        approvers.is_empty() || approvers.iter().any(is_it)
    }

    /// True if the caller may read requests of others.
    pub(crate) fn sees_all(&self, settings: &ApprovalSettings) -> bool {
        self.identity
            .is_none_or(|identity| identity.rights().sees_all || self.is_approver(&settings.approvers))
    }

    /// True if the caller may read a request.
    pub(crate) fn sees(&self, asked: &StoredApproval, settings: &ApprovalSettings) -> bool {
        let is_own = || {
            let identity = self.identity.map(Identity::as_str);
            identity == asked.by.identity.as_deref()
        };
        self.sees_all(settings) || is_own()
    }

    /// Refusal of an answer by this caller, if it may not answer.
    pub(crate) fn objection(&self, asked: &StoredApproval, settings: &ApprovalSettings) -> Option<ToolError> {
        let name = self.name().unwrap_or("a caller without a name");
        let name = text::clean(text::cut(name, 200));
        let unknown = |reason: String, remedy: &str| {
            Some(ToolError::new("APPROVER_UNKNOWN", reason).remediation(remedy))
        };
        if self.identity.is_none() && !self.is_local {
            return unknown(
                "over HTTP, only a caller with a proven identity may answer a request for approval"
                    .to_owned(),
                "Tell the user to answer with `tollgate approvals` on the server's machine, or in a call with a bearer \
                 token.",
            );
        }
        if !self.is_approver(&settings.approvers) {
            return unknown(
                format!(
                    "{name} is not an approver; approvals.approvers and server.console.approvers list the approvers"
                ),
                "Let one of the operator's approvers answer.",
            );
        }
        if self.is_requester(asked) {
            return Some(self.asked(&name));
        }
        self.objection_of_component(asked, &name)
    }

    fn asked(&self, name: &str) -> ToolError {
        let remedy = match self.identity {
            Some(_) => "Tell the user that another identity must answer.",
            None => {
                "Tell the user that a person must answer at a terminal: tollgate approvals allow ID, or deny ID."
            }
        };
        let reason = format!("{name} requested this approval and may not answer it");
        ToolError::new("APPROVER_ASKED", reason).remediation(remedy)
    }

    fn is_requester(&self, asked: &StoredApproval) -> bool {
        let by = &asked.by;
        let is_same = self
            .identity
            .is_some_and(|me| by.identity.as_deref() == Some(me.as_str()));
        is_same || by.connection == self.connection
    }

    /// Refusal by a rule that the component set.
    fn objection_of_component(&self, asked: &StoredApproval, name: &str) -> Option<ToolError> {
        let rules = asked.answerers.as_ref()?;
        let unknown = |reason: String, remedy: &str| {
            Some(ToolError::new("APPROVER_UNKNOWN", reason).remediation(remedy))
        };
        if rules.proven && self.identity.is_none() {
            return unknown(
                "only a caller with a proven identity may answer this request for approval".to_owned(),
                "Answer over HTTP with a bearer token.",
            );
        }
        if rules.another {
            if rules.proven && asked.by.identity.is_none() {
                return Some(
                    ToolError::new(
                        "ASKER_UNKNOWN",
                        "the identity of the requester of this approval is not proven",
                    )
                    .remediation("Request the approval over a connection with a proven identity."),
                );
            }
            let proven = self.identity.is_some() && asked.by.identity.is_some();
            let requester = asked.approval.requested_by.as_deref();
            let requester = requester.map(|name| claim(name).unwrap_or(name));
            if !proven && self.name().is_none() {
                return unknown(
                    "this approval must come from a person other than the requester".to_owned(),
                    "Pass your name as actor.",
                );
            }
            if !proven && self.name() == requester {
                return Some(self.asked(name));
            }
        }
        let is_named = |listed: &String| match self.identity {
            Some(identity) => listed == identity.as_str(),
            None => self.name() == Some(listed) && !Identity::could_be(listed),
        };
        if !rules.names.is_empty() && !rules.names.iter().any(is_named) {
            return unknown(
                format!("{name} is not a permitted approver"),
                "Let one of the operator's approvers answer.",
            );
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_sdk::{Answerers, ApprovalRequest};
    use tollgate_store::storage::{AskedBy, NewApproval, scratch};

    use super::*;

    fn asked(identity: Option<&str>, answerers: Option<Answerers>) -> StoredApproval {
        let session = scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        let request = ApprovalRequest {
            requested_by: Some("ada".to_owned()),
            answerers,
            ..ApprovalRequest::new("k", "Deploy", json!({}))
        };
        let by = AskedBy {
            identity: identity.map(str::to_owned),
            connection: "con_1".to_owned(),
            ..AskedBy::default()
        };
        let new = NewApproval::new("pack", request, by, (1, 1));
        session.approvals().insert(&new).unwrap();
        let stored = session.approvals().get(&new.id).unwrap().unwrap();
        session.commit().unwrap();
        stored
    }

    fn code(asked: &StoredApproval, who: (&str, &str, bool), approvers: &[&str]) -> String {
        let (name, connection, is_local) = who;
        let identity = name.contains(':').then(|| Identity::for_tests(name));
        let claimed = format!("claimed:{name}");
        let answerer = Answerer {
            identity: identity.as_ref(),
            actor: (!name.is_empty()).then_some(&claimed),
            connection,
            is_local,
        };
        let settings = ApprovalSettings {
            approvers: approvers.iter().map(|&name| name.to_owned()).collect(),
        };
        let objection = answerer.objection(asked, &settings);
        objection.map_or_else(|| "may".to_owned(), |err| err.code)
    }

    #[test]
    fn the_requester_may_not_answer() {
        let local = asked(None, None);
        assert_eq!(code(&local, ("grace", "con_1", true), &[]), "APPROVER_ASKED");
        assert_eq!(code(&local, ("grace", "con_2", true), &[]), "may");
        assert_eq!(code(&local, ("", "con_2", true), &[]), "may");
        assert_eq!(code(&local, ("grace", "con_2", false), &[]), "APPROVER_UNKNOWN");
        assert_eq!(code(&local, ("token:grace", "con_2", false), &[]), "may");
        let proven = asked(Some("token:ada"), None);
        assert_eq!(
            code(&proven, ("token:ada", "con_2", false), &[]),
            "APPROVER_ASKED"
        );
        assert_eq!(code(&proven, ("token:grace", "con_2", false), &[]), "may");
        assert_eq!(code(&proven, ("grace", "con_2", true), &[]), "may");
    }

    #[test]
    fn only_approvers_of_the_operator_answer() {
        let proven = asked(Some("token:ada"), None);
        let only = ["token:grace"];
        assert_eq!(code(&proven, ("token:grace", "con_2", false), &only), "may");
        assert_eq!(
            code(&proven, ("token:bob", "con_2", false), &only),
            "APPROVER_UNKNOWN"
        );
        assert_eq!(
            code(&proven, ("token:grace", "con_2", true), &["local"]),
            "APPROVER_UNKNOWN"
        );
        assert_eq!(code(&proven, ("grace", "con_2", true), &only), "APPROVER_UNKNOWN");
        assert_eq!(code(&proven, ("grace", "con_2", true), &["local"]), "may");
        // An approver may not answer what it asked for.
        assert_eq!(
            code(&proven, ("token:ada", "con_2", false), &["token:ada"]),
            "APPROVER_ASKED"
        );
    }

    #[test]
    fn components_restrict_who_answers() {
        let rules = |names: &[&str], proven: bool, another: bool| {
            Some(Answerers {
                names: names.iter().map(|&name| name.to_owned()).collect(),
                proven,
                another,
            })
        };
        let named = asked(None, rules(&["grace", "token:bob"], false, false));
        assert_eq!(code(&named, ("grace", "con_2", true), &[]), "may");
        assert_eq!(code(&named, ("token:bob", "con_2", false), &[]), "may");
        assert_eq!(code(&named, ("bob", "con_2", true), &[]), "APPROVER_UNKNOWN");
        let four_eyes = asked(None, rules(&[], false, true));
        assert_eq!(code(&four_eyes, ("ada", "con_2", true), &[]), "APPROVER_ASKED");
        assert_eq!(code(&four_eyes, ("", "con_2", true), &[]), "APPROVER_UNKNOWN");
        assert_eq!(code(&four_eyes, ("grace", "con_2", true), &[]), "may");
        let proven = asked(None, rules(&[], true, true));
        assert_eq!(code(&proven, ("grace", "con_2", true), &[]), "APPROVER_UNKNOWN");
        assert_eq!(
            code(&proven, ("token:grace", "con_2", false), &[]),
            "ASKER_UNKNOWN"
        );
        let proven = asked(Some("token:ada"), rules(&[], true, true));
        assert_eq!(code(&proven, ("token:grace", "con_2", false), &[]), "may");
    }
}
