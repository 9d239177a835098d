//! Reasons to refuse a call, collected so that the refusal lists all of them at once.

use std::fmt;

use serde_json::{Map, Value};
use tollgate_sdk::{Blocker, NextCall, ToolError};

/// Code that every pack and the host use for invalid arguments.
pub const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";

/// Code that every pack uses for an unknown id, path or name. The blocker's field names the argument.
pub const NOT_FOUND: &str = "NOT_FOUND";

/// A reason to refuse a call. `Display` is the sentence that callers read.
pub trait Reason: fmt::Display {
    /// Creates a reason for one invalid argument. The fault continues a sentence that starts with the field, for
    /// example "is blank".
    fn argument(field: String, fault: String) -> Self;

    /// Stable code in UPPER_SNAKE_CASE.
    fn code(&self) -> &'static str;

    /// Name of the code in the document that the pack implements, if it differs. Callers see it under `source_code` in
    /// the error's context.
    fn source_code(&self) -> Option<&'static str> {
        None
    }

    /// Imperative that tells the caller what to do.
    fn remediation(&self) -> &'static str;

    /// Argument at fault.
    fn field(&self) -> Option<&str> {
        None
    }

    /// Facts by name, as an object. Null values are left out.
    fn context(&self) -> Value {
        Value::Null
    }

    /// Sentence on how to call tools named in a text that clients may not list. `None` if there are none.
    fn how_to_call(_text: &str) -> Option<String> {
        None
    }

    /// Completes the error that callers see, after its reasons and calls were added.
    fn complete(err: ToolError) -> ToolError {
        err
    }

    /// Fault of free text that only this pack knows.
    fn fault_of(_text: &str) -> Option<&'static str> {
        None
    }

    /// Blocker that callers see for this reason.
    fn blocker(&self, next_call: Option<NextCall>) -> Blocker {
        Blocker {
            code: self.code().to_owned(),
            message: self.to_string(),
            field: self.field().map(str::to_owned),
            next_call,
        }
    }
}

/// All reasons found so far, and facts for the caller. Packs define their own type with [`refusals!`](crate::refusals!)
/// and add their checks to it.
#[derive(Debug)]
pub struct Refusals<R> {
    reasons: Vec<(R, Option<NextCall>)>,
    facts: Map<String, Value>,
    fallback: Option<NextCall>,
}

impl<R> Default for Refusals<R> {
    fn default() -> Refusals<R> {
        Refusals {
            reasons: Vec::new(),
            facts: Map::new(),
            fallback: None,
        }
    }
}

impl<R: Reason> Refusals<R> {
    /// Adds a reason.
    pub fn add(&mut self, reason: impl Into<R>) {
        self.reasons.push((reason.into(), None));
    }

    /// Adds a reason, with the call that removes it if there is one.
    pub fn add_with(&mut self, reason: impl Into<R>, next_call: impl Into<Option<NextCall>>) {
        self.reasons.push((reason.into(), next_call.into()));
    }

    /// Adds reasons that have not been added yet.
    pub fn extend(&mut self, reasons: impl IntoIterator<Item = R>)
    where
        R: PartialEq,
    {
        for reason in reasons {
            if self.reasons.iter().all(|(known, _)| *known != reason) {
                self.add(reason);
            }
        }
    }

    /// Adds a fault of one argument.
    pub fn fault(&mut self, field: &str, fault: impl Into<String>) {
        self.add(R::argument(field.to_owned(), fault.into()));
    }

    /// Adds a fact, by name.
    pub fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Sets the call that removes a reason, for each reason without one.
    pub fn next_calls(&mut self, next_call: impl Fn(&R) -> Option<NextCall>) {
        for (reason, known) in &mut self.reasons {
            *known = known.take().or_else(|| next_call(reason));
        }
    }

    /// Sets the call that the refusal names if no reason comes with one.
    pub fn fallback(&mut self, next_call: NextCall) {
        self.fallback = Some(next_call);
    }

    /// Returns whether no reason was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns whether a reason with this code was found.
    #[must_use]
    pub fn has(&self, code: &str) -> bool {
        self.reasons.iter().any(|(reason, _)| reason.code() == code)
    }

    /// Returns whether every reason found so far has this code.
    #[must_use]
    pub fn has_only(&self, code: &str) -> bool {
        self.reasons.iter().all(|(reason, _)| reason.code() == code)
    }

    /// Refuses the call if any reason was found.
    pub fn finish(self) -> Result<(), ToolError> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(self.into()),
        }
    }

    fn message(&self) -> String {
        let first = match self.reasons.first() {
            Some((reason, _)) => reason.to_string(),
            None => "the call was refused".to_owned(),
        };
        match self.reasons.len() {
            0 | 1 => first,
            2 => format!("{first}; and 1 more reason"),
            many => format!("{first}; and {} more reasons", many.saturating_sub(1)),
        }
    }

    /// Every remediation once, in the order of the reasons, plus how to call the tools named in them and in the next
    /// calls.
    fn remediation(&self) -> String {
        let mut remediations: Vec<&str> = Vec::new();
        for (reason, _) in &self.reasons {
            if !remediations.contains(&reason.remediation()) {
                remediations.push(reason.remediation());
            }
        }
        let mut text = remediations.join(" ");
        let calls = self.reasons.iter().filter_map(|(_, call)| call.as_ref());
        let named = calls.fold(text.clone(), |named, call| format!("{named} {}", call.tool));
        if let Some(how) = R::how_to_call(&named) {
            text.push(' ');
            text.push_str(&how);
        }
        text
    }

    /// Facts of all reasons. Facts of earlier reasons take precedence.
    fn context(&self) -> Map<String, Value> {
        let mut context = self.facts.clone();
        if let Some(source) = self.reasons.first().and_then(|(reason, _)| reason.source_code()) {
            context.insert("source_code".to_owned(), source.into());
        }
        for (reason, _) in &self.reasons {
            let Value::Object(facts) = reason.context() else {
                continue;
            };
            for (name, fact) in facts {
                if !fact.is_null() && !context.contains_key(&name) {
                    context.insert(name, fact);
                }
            }
        }
        context
    }
}

/// The error has the code of the first reason, and all reasons as blockers.
impl<R: Reason> From<Refusals<R>> for ToolError {
    fn from(refusals: Refusals<R>) -> ToolError {
        let code = refusals
            .reasons
            .first()
            .map_or("REFUSED", |(reason, _)| reason.code());
        let mut err = ToolError::new(code, refusals.message()).remediation(refusals.remediation());
        err.context = refusals.context();
        let of_reasons = refusals.reasons.iter().find_map(|(_, call)| call.clone());
        err.next_call = of_reasons.or(refusals.fallback);
        let reasons = refusals.reasons.into_iter();
        R::complete(err.blockers(reasons.map(|(reason, call)| reason.blocker(call))))
    }
}

/// Refusal for one reason.
#[must_use]
pub fn refusal<R: Reason>(reason: R, next_call: Option<NextCall>) -> ToolError {
    let mut refusals: Refusals<R> = Refusals::default();
    refusals.add_with(reason, next_call);
    refusals.into()
}

/// Defines a pack's own type of [`Refusals`], so that the pack can add checks as methods. Also converts the pack's
/// reasons to tool errors.
///
/// ```
/// # #[derive(Debug)]
/// # pub(crate) struct Fault(String, String);
/// # impl std::fmt::Display for Fault {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{} {}", self.0, self.1) }
/// # }
/// # impl tollgate_kit::Reason for Fault {
/// #     fn argument(field: String, fault: String) -> Fault { Fault(field, fault) }
/// #     fn code(&self) -> &'static str { "INVALID_ARGUMENTS" }
/// #     fn remediation(&self) -> &'static str { "Correct the argument." }
/// # }
/// tollgate_kit::refusals! {
///     /// Every reason found so far why a call has to be refused.
///     pub(crate) struct Refusals of Fault;
/// }
///
/// let mut refusals = Refusals::default();
/// refusals.text("title", " ", 80);
/// assert_eq!(refusals.finish().unwrap_err().message, "title is blank");
/// ```
#[macro_export]
macro_rules! refusals {
    ($(#[$doc:meta])* $visibility:vis struct $name:ident of $reason:ty;) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        $visibility struct $name($crate::Refusals<$reason>);

        impl $name {
            /// Refuses the call if any reason was found.
            $visibility fn finish(self) -> ::std::result::Result<(), $crate::ToolError> {
                self.0.finish()
            }
        }

        impl ::std::ops::Deref for $name {
            type Target = $crate::Refusals<$reason>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl ::std::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }

        impl ::std::convert::From<$name> for $crate::ToolError {
            fn from(refusals: $name) -> $crate::ToolError {
                refusals.0.into()
            }
        }

        impl ::std::convert::From<$reason> for $crate::ToolError {
            fn from(reason: $reason) -> $crate::ToolError {
                $crate::refusal(reason, None)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq)]
    enum Odd {
        Argument(String, String),
        Closed(&'static str),
    }

    impl fmt::Display for Odd {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Odd::Argument(field, fault) => write!(f, "{field} {fault}"),
                Odd::Closed(id) => write!(f, "{id} is closed"),
            }
        }
    }

    impl Reason for Odd {
        fn argument(field: String, fault: String) -> Odd {
            Odd::Argument(field, fault)
        }

        fn code(&self) -> &'static str {
            match self {
                Odd::Argument(..) => "INVALID_ARGUMENTS",
                Odd::Closed(_) => "CLOSED",
            }
        }

        fn remediation(&self) -> &'static str {
            match self {
                Odd::Argument(..) => "Correct the argument.",
                Odd::Closed(_) => "Reopen it.",
            }
        }

        fn source_code(&self) -> Option<&'static str> {
            matches!(self, Odd::Argument(..)).then_some("BAD_TITLE")
        }

        fn field(&self) -> Option<&str> {
            match self {
                Odd::Argument(field, _) => Some(field),
                Odd::Closed(_) => None,
            }
        }

        fn context(&self) -> Value {
            match self {
                Odd::Argument(..) => Value::Null,
                Odd::Closed(id) => json!({"id": id, "since": null}),
            }
        }
    }

    #[test]
    fn all_reasons_are_told_at_once() {
        let mut refusals: Refusals<Odd> = Refusals::default();
        refusals.text("title", " ", 80);
        refusals.extend([Odd::Closed("T1"), Odd::Closed("T2"), Odd::Closed("T1")]);
        refusals.fact("same", true);
        refusals.next_calls(|reason| match reason {
            Odd::Closed(id) => Some(NextCall::new("reopen", json!({"id": id}))),
            Odd::Argument(..) => None,
        });
        assert!(refusals.has("CLOSED") && !refusals.is_empty());
        let err = refusals.finish().unwrap_err();
        expect![[r#"
            INVALID_ARGUMENTS: title is blank; and 2 more reasons
            Correct the argument. Reopen it.
            context {"same":true,"source_code":"BAD_TITLE","id":"T1"}
            next_call {"tool":"reopen","arguments":{"id":"T1"}}
            {"code":"INVALID_ARGUMENTS","message":"title is blank","field":"title"}
            {"code":"CLOSED","message":"T1 is closed","next_call":{"tool":"reopen","arguments":{"id":"T1"}}}
            {"code":"CLOSED","message":"T2 is closed","next_call":{"tool":"reopen","arguments":{"id":"T2"}}}
        "#]]
        .assert_eq(&shown(&err));
    }

    #[test]
    fn a_fallback_is_for_reasons_without_a_call() {
        let (look, reopen) = (
            NextCall::new("look", json!({})),
            NextCall::new("reopen", json!({})),
        );
        let mut refusals: Refusals<Odd> = Refusals::default();
        refusals.fallback(look.clone());
        assert!(refusals.is_empty());
        refusals.add(Odd::Closed("T1"));
        assert_eq!(refusals.finish().unwrap_err().next_call, Some(look.clone()));
        let mut refusals: Refusals<Odd> = Refusals::default();
        refusals.fallback(look);
        refusals.add_with(Odd::Closed("T1"), reopen.clone());
        assert_eq!(refusals.finish().unwrap_err().next_call, Some(reopen));
    }

    fn shown(err: &ToolError) -> String {
        let mut lines = vec![
            err.to_string(),
            err.remediation.clone(),
            format!("context {}", json!(err.context)),
            format!("next_call {}", json!(err.next_call)),
        ];
        lines.extend(err.blockers.iter().map(|blocker| json!(blocker).to_string()));
        lines.join("\n") + "\n"
    }
}
