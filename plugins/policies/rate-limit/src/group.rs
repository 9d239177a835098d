//! Calls that count together. Pure.

use tollgate_sdk::Operation;
use tollgate_sdk::policy::Request;

use crate::Whose;

/// Calls that are counted together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Group<'a> {
    Everybody,
    Connection(&'a str),
    Identity(&'a str),
    /// Calls that claim no actor and prove none.
    NoActor,
    Envelope(&'a str),
    NoEnvelope,
}

impl<'a> Group<'a> {
    /// The groups that a call is in. A name that nobody proves is whatever the caller says, so it makes no group.
    pub(crate) fn of(whose: Whose, request: &'a Request) -> Vec<Group<'a>> {
        match (whose, &request.identity, &request.envelope_id) {
            (Whose::Everybody, ..) => vec![Group::Everybody],
            (Whose::Connection, ..) => vec![Group::Connection(&request.connection)],
            (Whose::Actor, Some(identity), _) => vec![Group::Identity(identity)],
            (Whose::Actor, None, _) => {
                let mut groups = vec![Group::Connection(&request.connection)];
                if request.recorded_actor().is_none() {
                    groups.push(Group::NoActor);
                }
                groups
            }
            (Whose::Envelope, _, Some(envelope)) => vec![Group::Envelope(envelope)],
            (Whose::Envelope, _, None) => vec![Group::NoEnvelope],
        }
    }

    /// Its name among all groups, the part that callers choose at the end.
    pub(crate) fn key(&self) -> String {
        match self {
            Group::Everybody => "everybody".to_owned(),
            Group::Connection(connection) => format!("connection {connection}"),
            Group::Identity(identity) => format!("identity {identity}"),
            Group::NoActor => "no actor".to_owned(),
            Group::Envelope(envelope) => format!("envelope {envelope}"),
            Group::NoEnvelope => "no envelope".to_owned(),
        }
    }

    /// Who may make so many calls.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Group::Everybody => "all callers together",
            Group::Connection(_) => "each connection",
            Group::Identity(_) => "each actor",
            Group::NoActor => "all callers that name no actor together",
            Group::Envelope(_) => "each envelope",
            Group::NoEnvelope => "all calls in no envelope together",
        }
    }

    /// Whether an operation that the filter finds is in it. No filter finds what has no actor or no envelope.
    pub(crate) fn has(&self, operation: &Operation) -> bool {
        match self {
            Group::NoActor => operation.actor.is_none(),
            Group::NoEnvelope => operation.envelope_id.is_none(),
            _ => true,
        }
    }
}
