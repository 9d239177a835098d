//! Groups of calls that are counted together. Pure.

use tollgate_sdk::Operation;
use tollgate_sdk::policy::Request;

use crate::Whose;

/// A group of calls that are counted together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Group<'a> {
    Everybody,
    Connection(&'a str),
    Identity(&'a str),
    /// Calls without a claimed or proven actor.
    NoActor,
    Envelope(&'a str),
    NoEnvelope,
}

impl<'a> Group<'a> {
    /// Groups that a call belongs to. An unproven name makes no group, because the caller chooses it.
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

    /// Name among all groups, with the part chosen by callers at the end.
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

    /// Callers in the group, for a message.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Group::Everybody => "all callers together",
            Group::Connection(_) => "each connection",
            Group::Identity(_) => "each actor",
            Group::NoActor => "all callers without an actor together",
            Group::Envelope(_) => "each envelope",
            Group::NoEnvelope => "all calls without an envelope together",
        }
    }

    /// Checks whether an operation found by the filter is in the group. Filters cannot find missing actors or
    /// envelopes.
    pub(crate) fn has(&self, operation: &Operation) -> bool {
        match self {
            Group::NoActor => operation.actor.is_none(),
            Group::NoEnvelope => operation.envelope_id.is_none(),
            _ => true,
        }
    }
}
