//! Native backend for testing a policy.

use std::marker::PhantomData;

use serde_json::Value as Json;

use super::Session;
use super::recollection::Recollection;
use crate::policy::{
    CannotJudge, Note, Outcome, Policy, PolicyCx, Problem, Remembered, Request, Review, Verdict, settings,
};
use crate::{CallInfo, Cx, Effect, Pack};

/// A policy with its settings, over an in-memory database.
///
/// ```
/// # use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Request, Verdict};
/// # use tollgate_sdk::native::Judge;
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Closed { tools: Vec<String> }
/// # impl Policy for Closed {
/// #     const NAME: &'static str = "closed";
/// #     const SUMMARY: &'static str = "Some tools are closed.";
/// #     const PHASE: Phase = Phase::Request;
/// #     fn before(&self, _: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
/// #         Ok(if self.tools.contains(&request.tool) { Denial::new("CLOSED", "it is closed").into() } else { Verdict::Pass })
/// #     }
/// # }
/// let judge = Judge::<Closed>::new(r#"{"tools": ["note_publish"]}"#).unwrap();
/// assert!(judge.before(&Request::of("note_publish", "{}")).is_denied());
/// ```
pub struct Judge<P: Policy> {
    session: Session,
    memory: Recollection,
    settings: String,
    policy: PhantomData<P>,
}

/// Verdict of a policy on a call, with its notes.
///
/// ```
/// # use tollgate_sdk::native::Judged;
/// # use tollgate_sdk::policy::Verdict;
/// let judged = Judged { verdict: Verdict::Pass, notes: Vec::new() };
/// assert!(!judged.is_denied());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Judged<V> {
    /// Verdict of the policy.
    pub verdict: V,
    /// Notes of the policy.
    pub notes: Vec<Note>,
}

impl Judged<Verdict> {
    /// Checks whether the call must not run.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self.verdict, Verdict::Deny(_))
    }
}

/// Presents the tables of a policy as those of a pack without tools.
trait AsPack {
    const PACK: &'static Pack;
}

impl<P: Policy> AsPack for P {
    const PACK: &'static Pack = &Pack {
        name: P::NAME,
        version: P::VERSION,
        summary: P::SUMMARY,
        wants: P::WANTS,
        migrations: P::MIGRATIONS,
        ..Pack::EMPTY
    };
}

impl<P: Policy> Judge<P> {
    /// Creates the policy with settings as JSON text. The error lists every mistake in them.
    pub fn new(text: &str) -> Result<Judge<P>, Vec<Problem>> {
        const { super::require_storage(<P as AsPack>::PACK) };
        settings::<P>(text)?;
        Ok(Judge {
            session: Session::new_policy(<P as AsPack>::PACK),
            memory: Recollection::default(),
            settings: text.to_owned(),
            policy: PhantomData,
        })
    }

    /// Underlying session, to prepare and inspect its database and clock.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Sets the input schema of the evaluated tools. See [`PolicyCx::input_schema`].
    #[must_use]
    pub fn input_schema(mut self, schema: &Json) -> Judge<P> {
        self.memory.input_schema = Some(schema.to_string());
        self
    }

    /// Limits the size of the policy's memory, as `limits.storage_mib` does. Default 64 MiB.
    #[must_use]
    pub fn storage_bytes(mut self, bytes: u64) -> Judge<P> {
        self.memory.quota = bytes;
        self
    }

    /// All entries of the policy's memory, sorted by key.
    #[must_use]
    pub fn remembered(&self) -> Vec<Remembered> {
        self.memory.all()
    }

    /// Evaluates a call with the policy before it runs, on a snapshot. Writing to a table fails, as in a host. Changes
    /// to the policy's memory are committed at once, as with the call's row.
    ///
    /// # Panics
    /// If the policy cannot evaluate the call.
    pub fn before(&self, request: &Request) -> Judged<Verdict> {
        or_panic(self.try_before(request), request)
    }

    /// Like [`before`](Judge::before), but returns the reason if the policy cannot evaluate the call. The memory is
    /// then unchanged.
    pub fn try_before(&self, request: &Request) -> Result<Judged<Verdict>, CannotJudge> {
        self.judge(request, Effect::Read, |policy, cx| policy.before(cx, request))
    }

    /// Evaluates a result with the policy. Writes to tables are kept if the call writes and the result passes.
    ///
    /// # Panics
    /// If the policy cannot evaluate the result.
    pub fn after(&self, request: &Request, outcome: &Outcome) -> Judged<Review> {
        or_panic(self.try_after(request, outcome), request)
    }

    /// Like [`after`](Judge::after), but returns the reason if the policy cannot evaluate the result. The memory is
    /// then unchanged.
    pub fn try_after(&self, request: &Request, outcome: &Outcome) -> Result<Judged<Review>, CannotJudge> {
        let effect = match request.effect {
            Effect::Write => Effect::Write,
            Effect::Read | Effect::Run => Effect::Read,
        };
        self.session.begin_judgement(effect);
        let judged = self.judge(request, effect, |policy, cx| policy.after(cx, request, outcome));
        let is_kept = judged.as_ref().is_ok_and(|judged| judged.verdict == Review::Pass);
        self.session.end_judgement(is_kept);
        judged
    }

    fn judge<V>(
        &self,
        request: &Request,
        effect: Effect,
        body: impl FnOnce(&P, &PolicyCx<'_>) -> Result<V, CannotJudge>,
    ) -> Result<Judged<V>, CannotJudge> {
        let call = CallInfo {
            op_id: request.op_id.clone(),
            envelope_id: request.envelope_id.clone(),
            identity: request.identity.clone(),
            client: request.client.clone(),
            config: self.settings.clone(),
            ..CallInfo::default()
        };
        let policy: P = settings(&self.settings).expect("settings were parsed before");
        let requests = &self.session.backend().requests;
        requests.identity.replace(request.identity.clone());
        self.session.judge_on(effect);
        self.memory.begin(request.at);
        let memory = self.memory.of(self.session.backend());
        let cx = PolicyCx::new(Cx::new(self.session.backend(), &call), &memory);
        let said = body(&policy, &cx);
        let notes = cx.into_notes();
        self.memory.end(said.is_ok());
        said.map(|verdict| Judged { verdict, notes })
    }
}

fn or_panic<V>(judged: Result<Judged<V>, CannotJudge>, request: &Request) -> Judged<V> {
    judged.unwrap_or_else(|CannotJudge(why)| panic!("the policy cannot evaluate {}: {why}", request.tool))
}
