//! The policy `side-effect-approval`: a side effect needs an approval.
//!
//! A denied call asks for its approval by itself: the request is in the list of the host, where a person answers with
//! `approval_resolve` or `tollgate approvals`. The policy also evaluates `task_resolve_approval`, whose answers it
//! stores in the transaction of the answer. An approval is for one tool with exactly the same arguments. If the client
//! can ask its user, the user can approve as well, unless `by_another` is set.

mod another;
mod required;
mod store;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate_sdk::policy::{
    CannotJudge, Denial, Outcome, Phase, Policy, PolicyCx, Problem, Question, Request, Review, Verdict,
};
use tollgate_sdk::{
    Answerers, Approval, ApprovalError, ApprovalRequest, ApprovalStatus, Migration, OperationFilter, Want,
    export_policy,
};

use crate::store::Answer;

/// Tool that requests an approval.
const REQUEST_TOOL: &str = "task_request_approval";
/// Tool that answers a request.
const RESOLVE_TOOL: &str = "task_resolve_approval";
/// Tools of the host's list of approvals.
const APPROVAL_TOOLS: [&str; 2] = ["approval_list", "approval_resolve"];
/// Characters of an identity in an approval's key.
const IDENTITY_CHARS: usize = 60;
/// Number of hex digits of the arguments' hash in an approval's key.
const KEY_DIGITS: usize = 32;

const DAY_MS: i64 = 24 * 60 * 60_000;

/// Requires an approval for side effects.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SideEffectApproval {
    /// Ask the client's user first, if the client supports questions. Default true.
    ask: bool,
    /// People whose answers count. Default: everyone that task-store permits to answer.
    approvers: Vec<String>,
    /// Count only answers over a connection with a proven identity. Default false.
    proven: bool,
    /// Require that the approver is not the requester (four-eyes principle). The client's own user is not asked
    /// then. Default false.
    by_another: bool,
    /// Count only answers of a person who runs `tollgate call` in a terminal. Default false.
    terminal: bool,
    /// Validity of an approval in minutes. Default 1440, one day.
    minutes: u32,
    /// Use up an approval with the first successful call. Default true.
    once: bool,
}

impl Default for SideEffectApproval {
    fn default() -> SideEffectApproval {
        SideEffectApproval {
            ask: true,
            approvers: Vec::new(),
            proven: false,
            by_another: false,
            terminal: false,
            minutes: 24 * 60,
            once: true,
        }
    }
}

impl Policy for SideEffectApproval {
    const NAME: &'static str = "side-effect-approval";
    const SUMMARY: &'static str = "Requires an approval for side effects.";
    const PHASE: Phase = Phase::Both;
    const WANTS: &'static [Want] = &[Want::LedgerQuery];
    const MIGRATIONS: &'static [Migration] = &[
        Migration {
            name: "0001_init",
            sql: include_str!("../../../../migrations/policy-side-effect-approval/0001_init.sql"),
        },
        Migration {
            name: "0002_requests",
            sql: include_str!("../../../../migrations/policy-side-effect-approval/0002_requests.sql"),
        },
    ];

    fn problems(&self) -> Vec<Problem> {
        if self.minutes == 0 {
            return vec![Problem::new("minutes", "must be at least 1")];
        }
        Vec::new()
    }

    fn before(&self, cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let tool = request.tool.as_str();
        if [REQUEST_TOOL, RESOLVE_TOOL].contains(&tool) || APPROVAL_TOOLS.contains(&tool) {
            return Ok(Verdict::Pass);
        }
        let subject = subject(request);
        let last = store::last(&cx.db, &request.tool, &subject)?;
        let round = last.as_ref().map_or(1, |answer| answer.round + 1);
        let newest = cx.approvals().find(&list_key(request))?;
        let is_newest = |answer: &Answer| {
            let listed = newest.as_ref().filter(|listed| is_decided(listed));
            listed.is_none_or(|listed| listed.answered_at_ms < Some(answer.answered_at))
        };
        match last.filter(|answer| !self.is_old(request, answer.answered_at) && is_newest(answer)) {
            Some(answer) if answer.status != "approved" => {
                let reason = format!("said {}", answer.status);
                return Ok(rejected(request, &answer.resolved_by, &reason).into());
            }
            Some(answer) if self.counts(cx, request, &answer)? => {
                withdraw(cx, &list_key(request))?;
                return Ok(Verdict::Pass);
            }
            _ => {}
        }
        let listed = match self.listed(cx, request)? {
            Ok(listed) => listed,
            Err(verdict) => return Ok(verdict),
        };
        let denial = required::denial(request, &key(&subject, round), listed.as_ref());
        if !self.ask || self.by_another {
            return Ok(denial.into());
        }
        let who = request.actor().or(request.client.as_deref());
        let who = who.unwrap_or("The client");
        let message = format!(
            "{who} wants to run {} of {}. Allow it?",
            request.tool, request.pack
        );
        Ok(Verdict::Ask(Question::new(message, denial)))
    }

    fn after(&self, cx: &PolicyCx<'_>, request: &Request, outcome: &Outcome) -> Result<Review, CannotJudge> {
        if !outcome.success {
            return Ok(Review::Pass);
        }
        match request.tool.as_str() {
            REQUEST_TOOL => another::note(cx, request, &outcome.body).map(|()| Review::Pass),
            RESOLVE_TOOL => self.judge(cx, request, &outcome.body),
            _ => Ok(Review::Pass),
        }
    }
}
export_policy!(SideEffectApproval);

impl SideEffectApproval {
    /// Stores an answer that counts.
    fn judge(&self, cx: &PolicyCx<'_>, request: &Request, body: &Value) -> Result<Review, CannotJudge> {
        let Some((kind, answer)) = self.answer(request, body) else {
            return Ok(Review::Pass);
        };
        let who = if self.proven {
            request.identity.as_deref()
        } else {
            Some(answer.resolved_by.as_str())
        };
        let counts =
            who.is_some_and(|who| self.approvers.is_empty() || self.approvers.iter().any(|one| one == who));
        if !counts {
            let reason = format!(
                "`{}` is not a permitted approver",
                who.unwrap_or("somebody unknown")
            );
            return Ok(Denial::new("APPROVER_UNKNOWN", reason)
                .remediation("Let one of the operator's `approvers` answer.")
                .into());
        }
        if self.terminal && !request.is_at_terminal() {
            return Ok(
                Denial::new("TERMINAL_REQUIRED", "only a person at a terminal may answer this")
                    .remediation(format!(
                        "Tell the user to run `tollgate call {RESOLVE_TOOL} 'ARGUMENTS'` in a terminal, without a pipe."
                    ))
                    .into(),
            );
        }
        if self.by_another
            && let Err(denial) = another::check(cx, request, body, self.proven)?
        {
            return Ok(denial.into());
        }
        store::remember(&cx.db, &kind, &answer)?;
        withdraw(cx, &format!("{kind} {}", answer.args_hash))?;
        Ok(Review::Pass)
    }

    /// End of the validity of an answer that was given at a time.
    fn end(&self, answered_at: i64) -> i64 {
        answered_at.saturating_add(i64::from(self.minutes) * 60_000)
    }

    fn is_old(&self, request: &Request, answered_at: i64) -> bool {
        request.at >= self.end(answered_at)
    }

    /// The open request for this call in the host's list, or the verdict that follows from its answer. None if the call
    /// does not fit in the list.
    fn listed(
        &self,
        cx: &PolicyCx<'_>,
        request: &Request,
    ) -> Result<Result<Option<Approval>, Verdict>, CannotJudge> {
        // Answers from the list say nothing of a terminal.
        if self.terminal {
            return Ok(Ok(None));
        }
        let mut wanted = self.wanted(cx, request);
        let asked = match cx.approvals().ask(&wanted) {
            // The way through task-store is open in any case.
            Err(ApprovalError::Full(_) | ApprovalError::Invalid(_)) => return Ok(Ok(None)),
            asked => asked?,
        };
        let answered_at = asked.answered_at_ms.unwrap_or_default();
        let is_old = self.is_old(request, answered_at);
        match asked.status {
            ApprovalStatus::Approved if !is_old && self.takes(cx, &asked, answered_at)? => {
                return Ok(Err(Verdict::Pass));
            }
            ApprovalStatus::Rejected if !is_old => {
                let by = asked.answered_by.as_deref().unwrap_or("a person");
                let reason = match &asked.note {
                    Some(note) => format!("said no ({note})"),
                    None => "said no".to_owned(),
                };
                return Ok(Err(rejected(request, by, &reason).into()));
            }
            ApprovalStatus::Approved | ApprovalStatus::Rejected => {
                wanted.renew = true;
                return match cx.approvals().ask(&wanted) {
                    Err(ApprovalError::Full(_)) => Ok(Ok(None)),
                    renewed => Ok(Ok(Some(renewed?))),
                };
            }
            ApprovalStatus::Pending | ApprovalStatus::Withdrawn | ApprovalStatus::Expired => {}
        }
        Ok(Ok(Some(asked)))
    }

    /// Takes an approval of the list for this call, if it counts once.
    fn takes(&self, cx: &PolicyCx<'_>, approval: &Approval, answered_at: i64) -> Result<bool, CannotJudge> {
        if !self.once {
            return Ok(true);
        }
        let until = self.end(answered_at).saturating_add(DAY_MS);
        Ok(cx.ledger().take_once(&approval.id, until)?)
    }

    /// Request for the host's list: exactly this call.
    fn wanted(&self, cx: &PolicyCx<'_>, request: &Request) -> ApprovalRequest {
        let title = format!("Run {} of {}", request.tool, request.pack);
        let detail = json!({
            "pack": request.pack, "tool": request.tool, "arguments": request.arguments,
            "args_hash": request.args_hash,
        });
        let open_ms = (i64::from(self.minutes) * 60_000).max(DAY_MS);
        ApprovalRequest {
            requested_by: request.actor().map(str::to_owned),
            until_ms: Some(cx.now().as_ms().saturating_add(open_ms)),
            answerers: Some(Answerers {
                names: self.approvers.clone(),
                proven: self.proven,
                another: self.by_another,
            }),
            ..ApprovalRequest::new(list_key(request), title, detail)
        }
    }

    /// Checks whether an approval is still valid, and takes it for this call if it counts once.
    fn counts(&self, cx: &PolicyCx<'_>, request: &Request, answer: &Answer) -> Result<bool, CannotJudge> {
        if !self.once {
            return Ok(true);
        }
        let key = format!("{} {}", request.tool, key(&answer.args_hash, answer.round));
        // A clock that is set back does not renew approvals.
        if !cx
            .ledger()
            .take_once(&key, self.end(answer.answered_at).saturating_add(DAY_MS))?
        {
            return Ok(false);
        }
        // Approvals used before keys were taken, or by a call that was permitted in another way.
        let used = cx.ledger().query(&OperationFilter {
            tool: Some(request.tool.clone()),
            args_hash: Some(request.args_hash.clone()),
            actor: request.identity.clone(),
            success: Some(true),
            since_ms: Some(answer.answered_at),
            newest_first: true,
            limit: 1,
            ..OperationFilter::default()
        })?;
        Ok(used.is_empty())
    }

    /// Answer of task_resolve_approval, if its subject is a call of this policy's kind.
    fn answer(&self, request: &Request, body: &Value) -> Option<(String, Answer)> {
        let text = |name: &str| Some(body.get("approval")?.get(name)?.as_str()?.to_owned());
        let (args_hash, round) = read_key(&text("idempotency_key")?)?;
        let answer = Answer {
            args_hash,
            round,
            status: text("status")?,
            resolved_by: text("resolved_by")?,
            answered_at: request.at,
        };
        Some((text("side_effect_kind")?, answer))
    }
}

/// Takes a request out of the host's list, whose call was decided through task-store.
fn withdraw(cx: &PolicyCx<'_>, key: &str) -> Result<(), CannotJudge> {
    match cx.approvals().settle(
        key,
        ApprovalStatus::Withdrawn,
        None,
        Some("decided through task-store"),
    ) {
        // A key that is not one of the list has nothing to withdraw there.
        Ok(_) | Err(ApprovalError::Invalid(_)) => Ok(()),
        Err(err) => Err(err.into()),
    }
}

fn is_decided(listed: &Approval) -> bool {
    matches!(listed.status, ApprovalStatus::Approved | ApprovalStatus::Rejected)
}

fn rejected(request: &Request, by: &str, reason: &str) -> Denial {
    Denial::new("APPROVAL_REJECTED", format!("{by} {reason} to {}", request.tool))
        .remediation("Omit the call, or change the rejected part. Other arguments need another approval.")
}

/// Key of a call in the host's list.
fn list_key(request: &Request) -> String {
    format!("{} {}", request.tool, subject(request))
}

/// Subject of an approval: arguments, and the identity that calls with them, if it is proven. An equal call of
/// somebody else neither shares the request nor uses the approval.
fn subject(request: &Request) -> String {
    let hash = request.args_hash.get(..KEY_DIGITS).unwrap_or(&request.args_hash);
    match &request.identity {
        None => hash.to_owned(),
        Some(identity) => {
            // Identities of one issuer begin alike.
            let over = identity.chars().count().saturating_sub(IDENTITY_CHARS);
            let end: String = identity.chars().skip(over).collect();
            format!("{hash}@{end}")
        }
    }
}

/// Key of an approval: the call, and the number of the request.
fn key(args_hash: &str, round: i64) -> String {
    format!("{args_hash}-{round}")
}

fn read_key(key: &str) -> Option<(String, i64)> {
    let (args_hash, round) = key.rsplit_once('-')?;
    let round = round.parse().ok().filter(|round| *round > 0)?;
    (!args_hash.is_empty()).then(|| (args_hash.to_owned(), round))
}

#[cfg(test)]
mod tests;
