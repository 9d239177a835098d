//! Exports of the component, implemented with a [`Policy`].

use serde_json::Value as Json;

use super::{Imports, read_effect, wire_migration, wire_next_call, wire_want};
use crate::policy::{
    CannotJudge, Denial, Note, Outcome, Phase, Policy, PolicyCx, Problem, Request, Review, Verdict, settings,
};
use crate::{CallInfo, Cx, config_schema};

/// Bindings that `cargo xtask docs` generates from `wit/`. The imports are those of the world for packs.
#[allow(
    unsafe_code,
    unreachable_pub,
    unused_qualifications,
    missing_docs,
    clippy::all,
    clippy::cast_possible_truncation,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
#[rustfmt::skip]
pub mod bindings;

mod imports;

pub use bindings::export_component;
pub use imports::PolicyImports;

use bindings::exports::tollgate::host::judge as wit;
use bindings::tollgate::host::judged_call;

/// Implemented by `export_policy!`.
pub trait Exported {
    /// Policy behind the exports.
    type Policy: Policy;
}

impl<E: Exported> wit::Guest for E {
    fn describe() -> wit::Manifest {
        wit::Manifest {
            name: E::Policy::NAME.to_owned(),
            version: E::Policy::VERSION.to_owned(),
            summary: E::Policy::SUMMARY.to_owned(),
            phase: match E::Policy::PHASE {
                Phase::Request => wit::Phase::Request,
                Phase::Response => wit::Phase::Response,
                Phase::Both => wit::Phase::Both,
            },
            wants: E::Policy::WANTS.iter().map(wire_want).collect(),
            migrations: E::Policy::MIGRATIONS.iter().map(wire_migration).collect(),
            config_schema: Some(config_schema::<E::Policy>().to_string()),
        }
    }

    fn configure(text: String) -> Result<(), Vec<wit::Problem>> {
        settings::<E::Policy>(&text)
            .map(drop)
            .map_err(|problems| problems.into_iter().map(wire_problem).collect())
    }

    fn before_call(request: wit::Request) -> Result<(wit::Verdict, Vec<wit::Note>), String> {
        judge::<E::Policy, _>(request, |policy, cx, request| policy.before(cx, request))
            .and_then(|(verdict, notes)| Ok((wire_verdict(verdict)?, notes)))
    }

    fn after_call(
        request: wit::Request,
        outcome: wit::Outcome,
    ) -> Result<(wit::Review, Vec<wit::Note>), String> {
        let outcome = Outcome {
            success: outcome.success,
            error_code: outcome.error_code,
            body: serde_json::from_str(&outcome.body).map_err(|err| err.to_string())?,
            text: outcome.text,
            duration_ms: outcome.duration_ms,
        };
        judge::<E::Policy, _>(request, |policy, cx, request| policy.after(cx, request, &outcome))
            .map(|(review, notes)| (wire_review(review), notes))
    }
}

fn judge<P: Policy, V>(
    request: wit::Request,
    body: impl FnOnce(&P, &PolicyCx<'_>, &Request) -> Result<V, CannotJudge>,
) -> Result<(V, Vec<wit::Note>), String> {
    let call = CallInfo {
        op_id: request.op_id.clone(),
        envelope_id: request.envelope_id.clone(),
        identity: request.identity.clone(),
        client: request.client.clone(),
        config: request.settings.clone(),
        ..CallInfo::default()
    };
    let policy: P = settings(&request.settings).map_err(|problems| {
        let all: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        format!("its settings are invalid: {}", all.join("; "))
    })?;
    let request = read_request(request)?;
    let cx = PolicyCx::new(Cx::new(&Imports, &call), &PolicyImports);
    let said = body(&policy, &cx, &request).map_err(|CannotJudge(why)| why)?;
    Ok((said, cx.into_notes().into_iter().map(wire_note).collect()))
}

fn read_request(request: wit::Request) -> Result<Request, String> {
    Ok(Request {
        arguments: serde_json::from_str(&request.arguments).map_err(|err| err.to_string())?,
        args_hash: request.args_hash,
        op_id: request.op_id,
        pack: request.pack,
        tool: request.tool,
        effect: read_effect(request.effect),
        envelope_id: request.envelope_id,
        identity: request.identity,
        client: request.client,
        connection: request.connection,
        at: request.at,
        notes: request
            .notes
            .into_iter()
            .map(|note| Note {
                key: note.key,
                value: note.value,
            })
            .collect(),
    })
}

fn wire_verdict(verdict: Verdict) -> Result<wit::Verdict, String> {
    Ok(match verdict {
        Verdict::Pass => wit::Verdict::Pass,
        Verdict::Amend(arguments) => wit::Verdict::Amend(Json::Object(arguments).to_string()),
        Verdict::Deny(denial) => wit::Verdict::Deny(wire_denial(denial)),
        Verdict::Ask(question) => {
            if let Some(key) = &question.key {
                judged_call::bind_question(key)?;
            }
            if let Some(arguments) = question.arguments {
                judged_call::propose(&Json::Object(arguments).to_string())?;
            }
            wit::Verdict::Ask(wit::Question {
                message: question.message,
                otherwise: wire_denial(question.otherwise),
            })
        }
    })
}

fn wire_review(review: Review) -> wit::Review {
    match review {
        Review::Pass => wit::Review::Pass,
        Review::Deny(denial) => wit::Review::Deny(wire_denial(denial)),
    }
}

fn wire_denial(denial: Denial) -> wit::Denial {
    wit::Denial {
        code: denial.code,
        reason: denial.reason,
        remediation: denial.remediation,
        next_call: denial.next_call.map(wire_next_call),
    }
}

fn wire_note(note: Note) -> wit::Note {
    wit::Note {
        key: note.key,
        value: note.value,
    }
}

fn wire_problem(problem: Problem) -> wit::Problem {
    wit::Problem {
        key: problem.key,
        message: problem.message,
    }
}
