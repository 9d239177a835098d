//! The policy `side-effect-approval`: a side effect needs an approval.
//!
//! The policy evaluates the tools that the operator lists, and `task_resolve_approval`, whose answers it stores
//! in the transaction of the answer. An approval is for one tool with exactly the same arguments. If the client
//! can ask its user, the user can approve as well, unless `by_another` is set.

mod another;
mod store;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tollgate_sdk::policy::{
    CannotJudge, Denial, Outcome, Phase, Policy, PolicyCx, Problem, Question, Request, Review, Verdict,
};
use tollgate_sdk::{Migration, NextCall, OperationFilter, Want, export_policy};

use crate::store::Answer;

/// Tool that requests an approval.
const REQUEST: &str = "task_request_approval";
/// Tool that answers a request.
const RESOLVE: &str = "task_resolve_approval";
/// Number of hex digits of the arguments' hash in an approval's key.
const KEY_DIGITS: usize = 32;

const DAY_MS: i64 = 24 * 60 * 60_000;

/// Requires an approval for side effects.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SideEffectApproval {
    /// Ask the client's user first, if the client supports questions. Default true.
    ask: bool,
    /// Persons whose answers count. Default: everyone that task-store permits to answer.
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
        if [REQUEST, RESOLVE].contains(&request.tool.as_str()) {
            return Ok(Verdict::Pass);
        }
        let args_hash = key_of(&request.args_hash);
        let last = store::last(&cx.db, &request.tool, args_hash)?;
        let round = match &last {
            Some(answer) if self.is_old(request, answer) => answer.round + 1,
            Some(answer) if answer.status != "approved" => return Ok(rejected(request, answer).into()),
            Some(answer) if self.counts(cx, request, answer)? => return Ok(Verdict::Pass),
            Some(answer) => answer.round + 1,
            None => 1,
        };
        let denial = required(request, &key(args_hash, round));
        if !self.ask || self.by_another {
            return Ok(denial.into());
        }
        Ok(Verdict::Ask(Question {
            message: format!(
                "{} wants to run {} of {}. Allow it?",
                request
                    .actor()
                    .or(request.client.as_deref())
                    .unwrap_or("The client"),
                request.tool,
                request.pack
            ),
            otherwise: denial,
        }))
    }

    fn after(&self, cx: &PolicyCx<'_>, request: &Request, outcome: &Outcome) -> Result<Review, CannotJudge> {
        if !outcome.success {
            return Ok(Review::Pass);
        }
        match request.tool.as_str() {
            REQUEST => another::note(cx, request, &outcome.body).map(|()| Review::Pass),
            RESOLVE => self.judge(cx, request, &outcome.body),
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
                        "Tell the user. A person runs `tollgate call {RESOLVE} 'ARGUMENTS'` in a terminal, without a pipe."
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
        Ok(Review::Pass)
    }

    /// End of an answer's validity.
    fn end(&self, answer: &Answer) -> i64 {
        answer.answered_at + i64::from(self.minutes) * 60_000
    }

    fn is_old(&self, request: &Request, answer: &Answer) -> bool {
        request.at >= self.end(answer)
    }

    /// Checks whether an approval is still valid, and takes it for this call if it counts once.
    fn counts(&self, cx: &PolicyCx<'_>, request: &Request, answer: &Answer) -> Result<bool, CannotJudge> {
        if !self.once {
            return Ok(true);
        }
        let key = format!("{} {}", request.tool, key(&answer.args_hash, answer.round));
        // A clock that is set back does not renew approvals.
        if !cx.ledger().take_once(&key, self.end(answer) + DAY_MS)? {
            return Ok(false);
        }
        // Approvals used before keys were taken, or by a call that was permitted in another way.
        let used = cx.ledger().query(&OperationFilter {
            tool: Some(request.tool.clone()),
            args_hash: Some(request.args_hash.clone()),
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

fn required(request: &Request, key: &str) -> Denial {
    let tool = &request.tool;
    let denial = Denial::new("APPROVAL_REQUIRED", format!("{tool} needs an approval"));
    let wanted = json!({
        "requested_action": format!("Run {tool}"), "side_effect_kind": tool, "idempotency_key": key,
    });
    let Some(arguments) = ready(request, wanted) else {
        return denial.remediation(format!(
            "Call {REQUEST} with side_effect_kind `{tool}` and idempotency_key `{key}`, wait for the answer from \
             {RESOLVE}, and call again with the same arguments."
        ));
    };
    denial
        .next_call(NextCall::new(REQUEST, arguments))
        .remediation(format!(
            "Make next_call, wait for the answer from {RESOLVE}, and call again with the same arguments."
        ))
}

/// Arguments of a request for approval, if the call contains all that are needed.
fn ready(request: &Request, wanted: Value) -> Option<Value> {
    let Value::Object(mut arguments) = wanted else {
        return None;
    };
    for name in ["task_id", "attempt_id", "actor", "actor_role"] {
        let given = request.arguments.get(name)?;
        arguments.insert(name.to_owned(), given.clone());
    }
    Some(Value::Object(Map::from_iter(arguments)))
}

fn rejected(request: &Request, answer: &Answer) -> Denial {
    let reason = format!(
        "{} said {} to {}",
        answer.resolved_by, answer.status, request.tool
    );
    Denial::new("APPROVAL_REJECTED", reason).remediation(
        "Do without the call, or change what was rejected. Other arguments need another approval.",
    )
}

fn key_of(args_hash: &str) -> &str {
    args_hash.get(..KEY_DIGITS).unwrap_or(args_hash)
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
mod tests {
    use tollgate_sdk::Operation;
    use tollgate_sdk::native::Judge;

    use super::*;

    const MINUTE: i64 = 60_000;

    fn deploy(at: i64) -> Request {
        let arguments = r#"{"to": "production", "task_id": "t1", "attempt_id": "a1", "actor": "ada",
            "actor_role": "orchestrator"}"#;
        Request {
            at,
            ..Request::of("job_deploy", arguments)
        }
    }

    fn said(judge: &Judge<SideEffectApproval>, at: i64) -> (String, Option<NextCall>) {
        match judge.before(&deploy(at)).verdict {
            Verdict::Pass => ("pass".to_owned(), None),
            Verdict::Deny(denial) => (denial.code, denial.next_call),
            Verdict::Ask(question) => (
                format!("ask, else {}", question.otherwise.code),
                question.otherwise.next_call,
            ),
            Verdict::Amend(_) => panic!("it amends nothing"),
        }
    }

    fn resolve(judge: &Judge<SideEffectApproval>, asked: &NextCall, status: &str, at: i64) -> Review {
        resolve_from(None, judge, asked, status, at)
    }

    fn resolve_from(
        client: Option<&str>,
        judge: &Judge<SideEffectApproval>,
        asked: &NextCall,
        status: &str,
        at: i64,
    ) -> Review {
        let request = Request {
            at,
            client: client.map(str::to_owned),
            ..Request::of(RESOLVE, "{}")
        };
        let mut approval = asked.arguments.clone();
        approval.insert("status".to_owned(), status.into());
        approval.insert("resolved_by".to_owned(), "grace".into());
        let outcome = Outcome {
            success: true,
            error_code: None,
            body: json!({ "approval": approval }),
            text: None,
            duration_ms: 1,
        };
        judge.after(&request, &outcome).verdict
    }

    #[test]
    fn an_approval_lets_one_call_through() {
        let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false}"#).unwrap();
        let (code, asked) = said(&judge, 0);
        assert_eq!(code, "APPROVAL_REQUIRED");
        assert_eq!(resolve(&judge, &asked.unwrap(), "approved", MINUTE), Review::Pass);
        assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
        judge.session().set_operations(vec![Operation {
            tool: "job_deploy".to_owned(),
            args_hash: deploy(0).args_hash,
            at_ms: 2 * MINUTE,
            success: Some(true),
            ..Operation::default()
        }]);
        let (code, asked) = said(&judge, 3 * MINUTE);
        assert_eq!(code, "APPROVAL_REQUIRED");
        assert!(
            asked.unwrap().arguments["idempotency_key"]
                .as_str()
                .unwrap()
                .ends_with("-2")
        );
    }

    #[test]
    fn an_approval_that_another_call_took_is_used_up() {
        let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false}"#).unwrap();
        let asked = said(&judge, 0).1.unwrap();
        resolve(&judge, &asked, "approved", MINUTE);
        assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
        let key = asked.arguments["idempotency_key"].as_str().unwrap();
        judge.session().set_taken(vec![format!("job_deploy {key}")]);
        let (code, again) = said(&judge, 2 * MINUTE);
        assert_eq!(code, "APPROVAL_REQUIRED");
        // Another answer is another approval.
        resolve(&judge, &again.unwrap(), "approved", 3 * MINUTE);
        assert_eq!(said(&judge, 4 * MINUTE).0, "pass");
    }

    #[test]
    fn it_ends_with_its_time() {
        let judge = Judge::<SideEffectApproval>::new(r#"{"minutes": 5, "once": false}"#).unwrap();
        let (code, asked) = said(&judge, 0);
        assert_eq!(code, "ask, else APPROVAL_REQUIRED");
        resolve(&judge, &asked.unwrap(), "approved", 0);
        assert_eq!(said(&judge, 4 * MINUTE).0, "pass");
        assert_eq!(said(&judge, 5 * MINUTE).0, "ask, else APPROVAL_REQUIRED");
    }

    #[test]
    fn a_no_is_a_no_until_it_is_over() {
        let judge = Judge::<SideEffectApproval>::new(r#"{"minutes": 5}"#).unwrap();
        let asked = said(&judge, 0).1.unwrap();
        resolve(&judge, &asked, "rejected", 0);
        assert_eq!(said(&judge, MINUTE).0, "APPROVAL_REJECTED");
        assert_eq!(said(&judge, 6 * MINUTE).0, "ask, else APPROVAL_REQUIRED");
    }

    #[test]
    fn only_answers_of_those_who_may_count() {
        let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false, "approvers": ["edsger"]}"#).unwrap();
        let asked = said(&judge, 0).1.unwrap();
        assert!(
            matches!(resolve(&judge, &asked, "approved", 0), Review::Deny(denial) if denial.code == "APPROVER_UNKNOWN")
        );
        assert_eq!(said(&judge, MINUTE).0, "APPROVAL_REQUIRED");
        let proven = Judge::<SideEffectApproval>::new(r#"{"ask": false, "proven": true}"#).unwrap();
        assert!(matches!(resolve(&proven, &asked, "approved", 0), Review::Deny(_)));
    }

    #[test]
    fn the_user_of_who_asks_is_no_other() {
        let judge = Judge::<SideEffectApproval>::new(r#"{"by_another": true}"#).unwrap();
        let (code, asked) = said(&judge, 0);
        assert_eq!(code, "APPROVAL_REQUIRED");
        let mut own = asked.clone().unwrap();
        own.arguments.insert("requested_by".to_owned(), "grace".into());
        assert!(
            matches!(resolve(&judge, &own, "approved", 0), Review::Deny(denial) if denial.code == "APPROVER_ASKED")
        );
        assert_eq!(said(&judge, MINUTE).0, "APPROVAL_REQUIRED");
        let mut of_another = asked.unwrap();
        of_another
            .arguments
            .insert("requested_by".to_owned(), "ada".into());
        assert_eq!(resolve(&judge, &of_another, "approved", MINUTE), Review::Pass);
        assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
    }

    #[test]
    fn an_agent_answers_nothing_that_wants_a_terminal() {
        let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false, "terminal": true}"#).unwrap();
        let asked = said(&judge, 0).1.unwrap();
        for client in [
            None,
            Some("agent"),
            Some("tollgate call"),
            Some("claimed:tollgate terminal"),
        ] {
            let review = resolve_from(client, &judge, &asked, "approved", MINUTE);
            assert!(
                matches!(review, Review::Deny(denial) if denial.code == "TERMINAL_REQUIRED"),
                "{client:?}"
            );
        }
        assert_eq!(said(&judge, MINUTE).0, "APPROVAL_REQUIRED");
        let review = resolve_from(Some(tollgate_sdk::TERMINAL), &judge, &asked, "approved", MINUTE);
        assert_eq!(review, Review::Pass);
        assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
    }

    #[test]
    fn approvals_of_other_kinds_are_nobodys_business_here() {
        let judge = Judge::<SideEffectApproval>::new(r#"{"approvers": ["edsger"]}"#).unwrap();
        let other = NextCall::new(
            REQUEST,
            json!({"side_effect_kind": "deploy", "idempotency_key": "release"}),
        );
        assert_eq!(resolve(&judge, &other, "approved", 0), Review::Pass);
        assert!(Judge::<SideEffectApproval>::new(r#"{"minutes": 0}"#).is_err());
    }
}
