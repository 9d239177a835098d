//! What the chain of policies makes of their verdicts. Pure: whoever calls runs the policies.

use std::sync::Arc;

use globset::GlobSet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollgate_sdk::ToolError;

use super::load::Policy;
use crate::sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use crate::text;

/// Longest text of a denial, in bytes.
const MAX_TEXT: usize = 2 << 10;
/// Most notes of one policy for one call.
const MAX_NOTES: usize = 16;
/// Longest key or value of a note, in bytes.
const MAX_NOTE: usize = 1 << 10;

/// What a policy's verdicts do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They hold.
    #[default]
    Enforce,
    /// They are recorded.
    Audit,
}

/// When a policy is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the call.
    Request,
    /// Before its result leaves.
    Response,
    /// Both.
    #[default]
    Both,
}

/// One place in the chain.
pub struct Member {
    /// The operator's name for it.
    pub name: String,
    /// What its verdicts do.
    pub mode: Mode,
    /// A call it cannot judge passes.
    pub fail_open: bool,
    /// When it is asked.
    pub phase: Phase,
    /// Which tools it judges.
    pub tools: GlobSet,
    /// The policy, or why it was not loaded. One that was not loaded can judge nothing.
    pub policy: Result<Arc<Policy>, String>,
}

/// The policies in their order.
#[derive(Default)]
pub struct Chain {
    members: Vec<Member>,
}

/// What one policy said of one call, as the ledger keeps it. Without its reasons, which may repeat what
/// the call contained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    policy: String,
    phase: Phase,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It goes on.
    Pass,
    /// It ends with this refusal.
    Deny(ToolError),
    /// It goes on if the client's user agrees, and ends with this refusal otherwise.
    Ask {
        /// What the user reads.
        message: String,
        /// What is answered without a yes.
        otherwise: ToolError,
    },
}

/// A judged call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What becomes of it.
    pub decision: Decision,
    /// Its arguments, if a policy amended them.
    pub amended: Option<Map<String, Value>>,
    /// What each policy said.
    pub verdicts: Vec<Verdict>,
    /// What policies left for those after them.
    pub notes: Vec<(String, String)>,
}

/// What a policy answered, or why it did not.
pub(super) type Answer<V> = Result<(V, Vec<wit::Note>), String>;

impl Chain {
    /// A chain of members in the order in which they judge.
    pub fn new(members: Vec<Member>) -> Chain {
        Chain { members }
    }

    /// The members in their order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Whether nobody judges this tool in this phase.
    pub fn is_silent(&self, tool: &str, phase: Phase) -> bool {
        self.judging(tool, phase).next().is_none()
    }

    fn judging<'a>(&'a self, tool: &'a str, phase: Phase) -> impl Iterator<Item = &'a Member> {
        self.members.iter().filter(move |member| {
            (member.phase == phase || member.phase == Phase::Both) && member.tools.is_match(tool)
        })
    }

    /// Judges a call. `ask` runs a member on the arguments and notes so far; `check` says what is
    /// wrong with amended arguments.
    pub(super) fn before(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        mut ask: impl FnMut(&Policy, &Map<String, Value>, &[(String, String)]) -> Answer<wit::Verdict>,
        check: impl Fn(&Map<String, Value>) -> Result<(), ToolError>,
    ) -> Judged {
        let mut judged = Judged::of(Vec::new());
        for member in self.judging(tool, Phase::Request) {
            let current = judged.amended.as_ref().unwrap_or(arguments);
            let answer = match &member.policy {
                Ok(policy) => ask(policy, current, &judged.notes),
                Err(why) => Err(why.clone()),
            };
            let (said, decision) = match answer {
                Err(why) => member.failed(&why),
                Ok((verdict, notes)) => {
                    judged.add_notes(notes);
                    member.decide(verdict, &check, &mut judged.amended)
                }
            };
            if judged.settle(member, Phase::Request, said, decision) {
                break;
            }
        }
        judged
    }

    /// Judges a result.
    pub(super) fn after(
        &self,
        tool: &str,
        notes: Vec<(String, String)>,
        mut ask: impl FnMut(&Policy, &[(String, String)]) -> Answer<wit::Review>,
    ) -> Judged {
        let mut judged = Judged::of(notes);
        for member in self.judging(tool, Phase::Response) {
            let answer = match &member.policy {
                Ok(policy) => ask(policy, &judged.notes),
                Err(why) => Err(why.clone()),
            };
            let (said, decision) = match answer {
                Err(why) => member.failed(&why),
                Ok((review, notes)) => {
                    judged.add_notes(notes);
                    match review {
                        wit::Review::Pass => (Said::new("pass"), Decision::Pass),
                        wit::Review::Deny(denial) => member.deny("deny", denial),
                    }
                }
            };
            if judged.settle(member, Phase::Response, said, decision) {
                break;
            }
        }
        judged
    }
}

/// A verdict in a word, with its code.
struct Said {
    verdict: &'static str,
    code: Option<String>,
}

impl Said {
    fn new(verdict: &'static str) -> Said {
        Said { verdict, code: None }
    }
}

impl Member {
    fn decide(
        &self,
        verdict: wit::Verdict,
        check: impl Fn(&Map<String, Value>) -> Result<(), ToolError>,
        amended: &mut Option<Map<String, Value>>,
    ) -> (Said, Decision) {
        match verdict {
            wit::Verdict::Pass => (Said::new("pass"), Decision::Pass),
            wit::Verdict::Deny(denial) => self.deny("deny", denial),
            wit::Verdict::Ask(question) => {
                let (said, decision) = self.deny("ask", question.otherwise);
                let Decision::Deny(otherwise) = decision else {
                    return (said, decision);
                };
                let message = text::clean(text::cut(&question.message, MAX_TEXT));
                (said, Decision::Ask { message, otherwise })
            }
            wit::Verdict::Amend(json) => match self.amend(&json, check) {
                Ok(arguments) => {
                    if self.mode == Mode::Enforce {
                        *amended = Some(arguments);
                    }
                    (Said::new("amend"), Decision::Pass)
                }
                Err(why) => self.failed(&why),
            },
        }
    }

    fn amend(
        &self,
        json: &str,
        check: impl Fn(&Map<String, Value>) -> Result<(), ToolError>,
    ) -> Result<Map<String, Value>, String> {
        let arguments = serde_json::from_str(json)
            .map_err(|err| format!("it amended the arguments to something that is no object: {err}"))?;
        check(&arguments).map_err(|err| {
            let all: Vec<&str> = err.blockers.iter().map(|blocker| blocker.message.as_str()).collect();
            format!("it amended the arguments to ones the tool does not take: {} {}", err.message, all.join("; "))
        })?;
        Ok(arguments)
    }

    fn deny(&self, verdict: &'static str, denial: wit::Denial) -> (Said, Decision) {
        let clean = |said: &str| text::clean(text::cut(said, MAX_TEXT));
        let code = text::code(&denial.code);
        let err = ToolError::new(&code, format!("policy `{}`: {}", self.name, clean(&denial.reason)))
            .remediation(clean(&denial.remediation))
            .context("policy", self.name.as_str());
        let said = Said {
            verdict,
            code: Some(code),
        };
        (said, Decision::Deny(err))
    }

    /// A policy that did not judge denies, unless the operator said otherwise.
    fn failed(&self, why: &str) -> (Said, Decision) {
        tracing::warn!(policy = self.name, why, fail_open = self.fail_open, "a policy could not judge a call");
        let said = Said::new("failed");
        if self.fail_open {
            return (said, Decision::Pass);
        }
        let err = ToolError::new(
            "POLICY_FAILED",
            format!("policy `{}` could not judge the call, so it was not let through", self.name),
        )
        .remediation("The host's log says why; the operator mends the policy or lets it fail open.")
        .context("policy", self.name.as_str());
        (said, Decision::Deny(err))
    }
}

impl Judged {
    fn of(notes: Vec<(String, String)>) -> Judged {
        Judged {
            decision: Decision::Pass,
            amended: None,
            verdicts: Vec::new(),
            notes,
        }
    }

    fn add_notes(&mut self, notes: Vec<wit::Note>) {
        let clean = |said: &str| text::clean(text::cut(said, MAX_NOTE));
        self.notes.extend(
            notes
                .into_iter()
                .take(MAX_NOTES)
                .map(|note| (clean(&note.key), clean(&note.value))),
        );
    }

    /// Records what a member said and whether that ends the call. A question waits until every other
    /// member has passed: nobody is asked about a call that is denied anyway.
    fn settle(&mut self, member: &Member, phase: Phase, said: Said, decision: Decision) -> bool {
        self.verdicts.push(Verdict {
            policy: member.name.clone(),
            phase,
            verdict: said.verdict,
            code: said.code,
            mode: (member.mode == Mode::Audit).then_some(Mode::Audit),
        });
        if member.mode == Mode::Audit {
            return false;
        }
        match decision {
            Decision::Pass => false,
            Decision::Deny(_) => {
                self.decision = decision;
                true
            }
            Decision::Ask { .. } => {
                if self.decision == Decision::Pass {
                    self.decision = decision;
                }
                false
            }
        }
    }
}
