//! What a client's user says to a question of a policy.
//!
//! The gate waits for nobody: a call that wants an answer is refused with the question, and comes again with
//! the answer. An answer is to one question about one call with these arguments, and to no other.

use crate::hash;
use crate::policies::{Question, Verdict};

use super::draft::Draft;

/// A question to the client's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// What the user reads.
    pub message: String,
    /// Which question about which call it is.
    pub about: String,
}

/// What the client's user said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// Which question about which call it was.
    pub about: String,
    /// Whether it was a yes.
    pub agreed: bool,
}

/// Whether the user agreed to what is asked of a call; otherwise what is to be asked, if that was not yet.
pub(super) fn check(
    consent: Option<&Consent>,
    question: &Question,
    draft: &mut Draft,
) -> Result<(), Option<Pending>> {
    let operation = &draft.operation;
    let about = format!(
        "{}\n{}\n{}",
        operation.tool, operation.args_hash, question.message
    );
    let about = hash::sha256_hex(about.as_bytes());
    let (answer, outcome) = match consent.filter(|consent| consent.about == about) {
        Some(consent) if consent.agreed => ("yes", Ok(())),
        Some(_) => ("no", Err(None)),
        None => {
            let message = question.message.clone();
            ("none", Err(Some(Pending { message, about })))
        }
    };
    Verdict::answered(&mut draft.verdicts, answer);
    outcome
}
