//! Combination of the verdicts in the chain of policies. Pure: the caller runs the policies.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};
use tollgate_core::text;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::judged::Bound;
use tollgate_sdk::{Blocker, NextCall, ToolError};

use super::member::{Member, Mode, Phase};
use super::policy::{Policy, Unloaded};
use super::verdict::{Answer, Cause, Fault, Verdict, VerdictKind};
use crate::tools::ToolSpec;

/// Longest text of a denial or a question, in bytes.
const MAX_TEXT: usize = 2 << 10;
/// Most denials that one refusal names.
const MAX_DENIALS: usize = 50;
/// Most notes of one policy for one call.
const MAX_NOTES: usize = 16;
/// Most notes of one call.
const MAX_ALL_NOTES: usize = 256;
/// Longest key or value of a note, in bytes.
const MAX_NOTE: usize = 1 << 10;

/// The policies in their order.
pub struct Chain<P = Policy> {
    members: Vec<Member<P>>,
}

impl<P> Default for Chain<P> {
    fn default() -> Chain<P> {
        Chain { members: Vec::new() }
    }
}

/// Verdicts so far on one call and its members.
#[derive(Debug, Clone, Default)]
pub struct Hearing {
    /// Verdict of each policy.
    pub verdicts: Vec<Verdict>,
    /// Notes that policies left for later policies.
    pub notes: Vec<wit::Note>,
    denials: Vec<Denied>,
    questions: Vec<Asked>,
}

/// Decision on a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The call proceeds.
    Pass,
    /// The call proceeds if the client's user agrees.
    Ask(Question),
    /// The call ends with this refusal.
    Deny(ToolError),
}

/// Question for the client's user.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Description of the call.
    pub message: String,
    /// Policies that ask.
    pub policies: Vec<String>,
    /// Data that the answer is bound to besides the call: the message or a key of each question.
    pub bound: Vec<String>,
    /// Refusal unless the user agrees.
    pub otherwise: ToolError,
}

/// Refusal by a policy.
#[derive(Debug, Clone)]
struct Denied {
    policy: String,
    /// Place of the member in the call, if the refusal is about a member.
    place: Option<String>,
    code: String,
    message: String,
    remediation: String,
    next_call: Option<NextCall>,
    cause: Option<Cause>,
}

#[derive(Debug, Clone)]
struct Asked {
    message: String,
    key: Option<String>,
    otherwise: Denied,
}

/// Subject of a judgement: a call or one of its members.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Tool.
    pub tool: &'a str,
    /// Place of a member in the arguments of the enclosing call.
    pub place: Option<&'a str>,
}

impl<P> Chain<P> {
    /// Chain of these members, which are sorted.
    pub fn new(mut members: Vec<Member<P>>) -> Chain<P> {
        members.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
        Chain { members }
    }

    /// Members in their order.
    pub fn members(&self) -> &[Member<P>] {
        &self.members
    }

    /// Number of denials since the host started, by the policy's name.
    pub fn denials(&self) -> Vec<(String, u64)> {
        let counts = self.members.iter();
        counts
            .map(|member| (member.name.clone(), member.denials.load(Ordering::Relaxed)))
            .collect()
    }

    /// Takes over the counters of the chain that this one replaces.
    pub fn inherit(&mut self, before: &Chain<P>) {
        for member in &mut self.members {
            if let Some(known) = before.members.iter().find(|known| known.name == member.name) {
                member.denials = Arc::clone(&known.denials);
            }
        }
    }

    /// True if no policy judges anything.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Members that were not loaded.
    pub fn failures(&self) -> impl Iterator<Item = &Unloaded> {
        self.members
            .iter()
            .filter_map(|member| member.policy.as_ref().err())
    }

    /// Operator's name for a policy at its first place in enforce mode.
    pub fn enforced_as(&self, policy: &P) -> Option<&str> {
        let is_it = |member: &&Member<P>| member.policy.as_ref().is_ok_and(|it| std::ptr::eq(&**it, policy));
        let mut places = self.members.iter().filter(is_it);
        let member = places.find(|member| member.mode == Mode::Enforce)?;
        Some(&member.name)
    }

    /// Operator's name for a policy and the effect of its verdicts, at its first place.
    pub fn place_of(&self, policy: &P) -> Option<(&str, Mode)> {
        let is_it = |member: &&Member<P>| member.policy.as_ref().is_ok_and(|it| std::ptr::eq(&**it, policy));
        let member = self.members.iter().find(is_it)?;
        Some((&member.name, member.mode))
    }

    /// True if a policy judges the arguments of a tool's calls, or may judge those of their members.
    pub fn judges_words_of(&self, tool: &ToolSpec) -> bool {
        self.judges(Phase::Request, &tool.name) || (tool.members.is_some() && !self.is_empty())
    }

    /// True if a policy judges this tool in this phase.
    pub fn judges(&self, phase: Phase, tool: &str) -> bool {
        self.members.iter().any(|member| member.judges_in(phase, tool))
    }

    /// Judges a call. `ask` runs a policy on the arguments as amended so far and the notes so far. `accept` converts
    /// a policy's amendment to arguments for the tool, or returns why the tool refuses them. Returns the arguments if
    /// they were amended.
    ///
    /// A denial does not end the evaluation: the caller gets all reasons at once.
    pub fn before(
        &self,
        hearing: &mut Hearing,
        subject: Subject<'_>,
        mut ask: impl FnMut(&P, Option<&str>, &[wit::Note]) -> Answer<BoundVerdict>,
        accept: impl Fn(&str) -> Result<String, String>,
    ) -> Option<String> {
        let mut amended: Option<String> = None;
        let judging = |member: &&Member<P>| member.judges_in(Phase::Request, subject.tool);
        for member in self.members.iter().filter(judging) {
            let answer = match &member.policy {
                Ok(policy) => ask(policy, amended.as_deref(), &hearing.notes),
                Err(unloaded) => not_loaded(unloaded),
            };
            let verdict = answer.said.and_then(|(bound_verdict, notes)| {
                let bound = bound_verdict.bound;
                let verdict = match bound_verdict.verdict {
                    wit::Verdict::Amend(json) => {
                        AcceptedVerdict::Amend(accept(&json).map_err(bad_amendment)?)
                    }
                    wit::Verdict::Pass => AcceptedVerdict::Pass,
                    wit::Verdict::Deny(denial) => AcceptedVerdict::Deny(denial),
                    wit::Verdict::Ask(question) => {
                        let proposed = bound.arguments.map(|json| accept(&json).map_err(bad_amendment));
                        AcceptedVerdict::Ask(question, bound.key, proposed.transpose()?)
                    }
                };
                hearing.add_notes(notes);
                Ok(verdict)
            });
            let said = hearing.record(member, Phase::Request, subject, verdict, answer.took);
            amended = said.or(amended);
        }
        amended
    }

    /// Judges a result. The first of `tools` is that of the call, and the others are those of its members, whose
    /// results are parts of the result. `ask` runs a policy on one of them and the notes so far.
    pub fn after(
        &self,
        hearing: &mut Hearing,
        tools: &[&str],
        mut ask: impl FnMut(&P, usize, &[wit::Note]) -> Answer<wit::Review>,
    ) {
        for member in &self.members {
            let mut judged = tools
                .iter()
                .enumerate()
                .filter(|(_, tool)| member.judges_in(Phase::Response, tool));
            // A policy that judges the whole need not judge the same content again for each part.
            let (own, parts) = match judged.next() {
                Some((0, tool)) => (Some((0, tool)), None),
                first => (first, Some(judged)),
            };
            for (place, tool) in own.into_iter().chain(parts.into_iter().flatten()) {
                let answer = match &member.policy {
                    Ok(policy) => ask(policy, place, &hearing.notes),
                    Err(unloaded) => not_loaded(unloaded),
                };
                let verdict = answer.said.map(|(review, notes)| {
                    hearing.add_notes(notes);
                    match review {
                        wit::Review::Pass => AcceptedVerdict::Pass,
                        wit::Review::Deny(denial) => AcceptedVerdict::Deny(denial),
                    }
                });
                let subject = Subject { tool, place: None };
                hearing.record(member, Phase::Response, subject, verdict, answer.took);
            }
        }
    }
}

/// Verdict of a policy, with the binding of its question.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundVerdict {
    /// The verdict.
    pub verdict: wit::Verdict,
    /// Binding of the policy's question.
    pub bound: Bound,
}

impl From<wit::Verdict> for BoundVerdict {
    fn from(verdict: wit::Verdict) -> BoundVerdict {
        BoundVerdict {
            verdict,
            bound: Bound::default(),
        }
    }
}

/// A verdict whose amendment was accepted.
enum AcceptedVerdict {
    Pass,
    Amend(String),
    Deny(wit::Denial),
    Ask(wit::Question, Option<String>, Option<String>),
}

fn not_loaded<V>(unloaded: &Unloaded) -> Answer<V> {
    Answer {
        said: Err(Fault {
            cause: Cause::NotLoaded,
            detail: unloaded.to_string(),
        }),
        took: std::time::Duration::ZERO,
    }
}

fn bad_amendment(why: String) -> Fault {
    Fault {
        cause: Cause::BadAmendment,
        detail: why,
    }
}

impl Hearing {
    /// A hearing that continues from another one's notes.
    pub fn with_notes(notes: Vec<wit::Note>) -> Hearing {
        Hearing {
            notes,
            ..Hearing::default()
        }
    }

    /// Decision on the call after all verdicts.
    pub fn decision(&self) -> Decision {
        if let Some(refusal) = refusal(&self.denials) {
            return Decision::Deny(refusal);
        }
        let otherwise: Vec<Denied> = self
            .questions
            .iter()
            .map(|asked| asked.otherwise.clone())
            .collect();
        let mut messages: Vec<&str> = self
            .questions
            .iter()
            .map(|asked| asked.message.as_str())
            .collect();
        messages.dedup();
        match refusal(&otherwise) {
            None => Decision::Pass,
            Some(otherwise) => Decision::Ask(Question {
                message: messages.join("\n"),
                policies: askers(&self.questions),
                bound: self.questions.iter().map(Asked::bound).collect(),
                otherwise,
            }),
        }
    }

    /// Total time of all verdicts.
    pub fn took(&self) -> std::time::Duration {
        let each = self.verdicts.iter().map(|verdict| verdict.us);
        std::time::Duration::from_micros(each.fold(0, u64::saturating_add))
    }

    /// Records what a policy returned and its consequences. Returns the arguments that hold from now on, if they
    /// changed.
    fn record<P>(
        &mut self,
        member: &Member<P>,
        phase: Phase,
        subject: Subject<'_>,
        said: Result<AcceptedVerdict, Fault>,
        took: std::time::Duration,
    ) -> Option<String> {
        let denied = |denial| Denied::of(member, subject, denial);
        let (mut kind, mut amended, mut denial, mut question) = (VerdictKind::Pass, None, None, None);
        match said {
            Ok(AcceptedVerdict::Pass) => {}
            Ok(AcceptedVerdict::Amend(arguments)) => (kind, amended) = (VerdictKind::Amend, Some(arguments)),
            Ok(AcceptedVerdict::Deny(said)) => (kind, denial) = (VerdictKind::Deny, Some(denied(said))),
            Ok(AcceptedVerdict::Ask(said, key, arguments)) => {
                let otherwise = denied(said.otherwise);
                let message = line(&said.message);
                kind = VerdictKind::Ask;
                amended = arguments;
                question = Some(Asked {
                    message,
                    key,
                    otherwise,
                });
            }
            Err(fault) => {
                (kind, denial) = (VerdictKind::Failed, Some(Denied::failed(member, subject, &fault)))
            }
        }
        let about = denial
            .as_ref()
            .or(question.as_ref().map(|asked| &asked.otherwise));
        let is_excused = kind == VerdictKind::Failed && member.fail_open;
        let verdict = Verdict {
            policy: member.name.clone(),
            phase,
            mode: member.mode,
            verdict: kind,
            code: about.map(|denied| denied.code.clone()),
            cause: about.and_then(|denied| denied.cause),
            answer: None,
            excused: is_excused,
            us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            times: 1,
        };
        verdict.add(&mut self.verdicts);
        if member.mode == Mode::Audit || is_excused {
            return None;
        }
        if denial.is_some() {
            member.denials.fetch_add(1, Ordering::Relaxed);
        }
        self.denials.extend(denial);
        self.questions.extend(question);
        amended
    }

    fn add_notes(&mut self, notes: Vec<wit::Note>) {
        let clean = |said: &str| text::clean(text::cut(said, MAX_NOTE));
        let room = MAX_ALL_NOTES.saturating_sub(self.notes.len()).min(MAX_NOTES);
        self.notes
            .extend(notes.into_iter().take(room).map(|note| wit::Note {
                key: clean(&note.key),
                value: clean(&note.value),
            }));
    }
}

impl Asked {
    /// Binding of a question: its key or its message, in distinguishable form.
    fn bound(&self) -> String {
        match &self.key {
            Some(key) => format!("key {key}"),
            None => format!("message {}", self.message),
        }
    }
}

impl Denied {
    fn of<P>(member: &Member<P>, subject: Subject<'_>, denial: wit::Denial) -> Denied {
        Denied {
            policy: member.name.clone(),
            place: subject.place.map(str::to_owned),
            code: text::code(&denial.code),
            message: format!("policy `{}`: {}", member.name, line(&denial.reason)),
            remediation: line(&denial.remediation),
            next_call: denial.next_call.and_then(|call| {
                let arguments: Map<String, Value> = serde_json::from_str(&call.arguments).ok()?;
                // The person who runs the call should see all of it.
                (!text::hides_in(&arguments)).then(|| NextCall {
                    arguments,
                    tool: line(&call.tool),
                })
            }),
            cause: None,
        }
    }

    /// Denial by a policy that did not judge, unless the operator configured otherwise.
    fn failed<P>(member: &Member<P>, subject: Subject<'_>, fault: &Fault) -> Denied {
        let policy = member.name.as_str();
        tracing::warn!(
            policy,
            tool = subject.tool,
            cause = fault.cause.phrase(),
            detail = fault.detail,
            fail_open = member.fail_open,
            "a policy did not evaluate a call"
        );
        Denied {
            policy: policy.to_owned(),
            place: subject.place.map(str::to_owned),
            code: "POLICY_FAILED".to_owned(),
            message: format!(
                "policy `{policy}` {}, so the call was refused",
                fault.cause.phrase()
            ),
            remediation: format!(
                "Ask your operator to find the reason in the host's log and to correct [policies.{policy}]."
            ),
            next_call: None,
            cause: Some(fault.cause),
        }
    }

    fn blocker(&self) -> Blocker {
        let message = format!("{} {}", self.message, self.remediation);
        let mut blocker = Blocker::new(self.code.as_str(), message.trim_end());
        if let Some(place) = &self.place {
            blocker = blocker.field(place.as_str());
        }
        match &self.next_call {
            Some(call) => blocker.next_call(call.clone()),
            None => blocker,
        }
    }
}

/// All denials as one refusal, named after the first.
fn refusal(denials: &[Denied]) -> Option<ToolError> {
    let first = denials.first()?;
    let mut err = ToolError::new(first.code.as_str(), first.message.as_str())
        .remediation(first.remediation.as_str())
        .context("policy", first.policy.as_str());
    if let Some(cause) = first.cause {
        err = err.context("cause", serde_json::to_value(cause).unwrap_or(Value::Null));
    }
    if let Some(call) = &first.next_call {
        err = err.next_call(call.clone());
    }
    if denials.len() > 1 || first.place.is_some() {
        err = err.blockers(denials.iter().take(MAX_DENIALS).map(Denied::blocker));
    }
    Some(err)
}

/// Policies that ask, without duplicates.
fn askers(questions: &[Asked]) -> Vec<String> {
    let mut names: Vec<String> = questions
        .iter()
        .map(|asked| asked.otherwise.policy.clone())
        .collect();
    names.dedup();
    names
}

fn line(said: &str) -> String {
    text::clean(text::cut(said, MAX_TEXT))
}
