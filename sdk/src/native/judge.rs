//! A policy over a native backend, for its tests.

use std::marker::PhantomData;

use super::Session;
use crate::policy::{
    CannotJudge, Note, Outcome, Policy, PolicyCx, Problem, Request, Review, Verdict, settings,
};
use crate::{CallInfo, Cx, Pack};

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
        settings::<P>(text)?;
        Ok(Judge {
            session: Session::new_policy(<P as AsPack>::PACK),
            settings: text.to_owned(),
            policy: PhantomData,
        })
    }

    /// Underlying session, to prepare and inspect its database and clock.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Evaluates a call with the policy before it runs.
    ///
    /// # Panics
    /// If the policy cannot evaluate the call.
    pub fn before(&self, request: &Request) -> Judged<Verdict> {
        self.judge(request, |policy, cx| policy.before(cx, request))
    }

    /// Evaluates a result with the policy.
    ///
    /// # Panics
    /// If the policy cannot evaluate the result.
    pub fn after(&self, request: &Request, outcome: &Outcome) -> Judged<Review> {
        self.judge(request, |policy, cx| policy.after(cx, request, outcome))
    }

    fn judge<V>(
        &self,
        request: &Request,
        body: impl FnOnce(&P, &PolicyCx<'_>) -> Result<V, CannotJudge>,
    ) -> Judged<V> {
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
        let cx = PolicyCx::new(Cx::new(self.session.backend(), &call));
        match body(&policy, &cx) {
            Ok(verdict) => Judged {
                verdict,
                notes: cx.into_notes(),
            },
            Err(CannotJudge(why)) => panic!("{} cannot evaluate {}: {why}", P::NAME, request.tool),
        }
    }
}
