//! Artifacts: content that is kept with an operation for a limited time.

use thiserror::Error;

use crate::ToolError;

/// Maximum number of artifacts of one call.
///
/// ```
/// # use tollgate_sdk::artifacts::MOST;
/// assert_eq!(MOST, 32);
/// ```
pub const MOST: u32 = 32;
/// Maximum bytes of one artifact.
///
/// ```
/// # use tollgate_sdk::artifacts::MOST_BYTES;
/// let log = vec![b'x'; 3 << 20];
/// let end = &log[log.len().saturating_sub(MOST_BYTES)..];
/// assert_eq!(end.len(), 1 << 20);
/// ```
pub const MOST_BYTES: usize = 1 << 20;
/// Maximum bytes of all artifacts of one call.
///
/// ```
/// # use tollgate_sdk::artifacts::{MOST_BYTES, MOST_BYTES_TOGETHER};
/// assert_eq!(MOST_BYTES_TOGETHER / MOST_BYTES, 8);
/// ```
pub const MOST_BYTES_TOGETHER: usize = 8 << 20;

/// Kind of content. The operator chooses which kinds are kept.
///
/// ```
/// # use tollgate_sdk::{ArtifactKind, Cx, Effect, Pack, Tool, ToolError, Want, native::Session, tools};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Check {}
/// # #[derive(serde::Serialize, schemars::JsonSchema)]
/// # struct Checked { log: Option<String> }
/// impl Tool for Check {
/// #     const NAME: &'static str = "notes_check";
/// #     const TITLE: &'static str = "Check";
/// #     const EFFECT: Effect = Effect::Write;
/// #     type Output = Checked;
///     // …
///     fn run(self, cx: &Cx<'_>) -> Result<Checked, ToolError> {
///         let log = cx.keep_artifact(ArtifactKind::Log, b"12 notes, 3 without a title")?;
///         Ok(Checked { log })
///     }
/// }
/// # const PACK: Pack = Pack { name: "notes", wants: &[Want::Artifacts], tools: tools![Check], ..Pack::EMPTY };
/// # let session = Session::new(&PACK);
/// session.keep_artifacts();
/// assert!(session.call("notes_check", "{}").is_ok());
/// assert_eq!(session.artifacts()[0].content, b"12 notes, 3 without a title");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactKind {
    /// Output of a program, and similar text.
    Log,
    /// A diff.
    Diff,
}

/// Reason why content is not kept.
///
/// ```
/// # use tollgate_sdk::{ArtifactError, ToolError};
/// let refusal = ToolError::from(ArtifactError::TooMany(32));
/// assert_eq!(refusal.code, "ARTIFACTS_TOO_LARGE");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArtifactError {
    /// The pack has no grant for artifacts.
    #[error("this pack may not keep artifacts")]
    Denied,
    /// A `Read` tool cannot keep artifacts.
    #[error("this tool is read-only")]
    ReadOnly,
    /// The artifact, or all artifacts of the call together, are too large.
    #[error("artifact is too large: {0}")]
    TooLarge(String),
    /// The call has the maximum number of artifacts.
    #[error("the call already has {0} artifacts; at most {0} are allowed")]
    TooMany(u32),
}

impl From<ArtifactError> for ToolError {
    fn from(err: ArtifactError) -> ToolError {
        let (code, remediation) = match &err {
            ArtifactError::Denied => (
                "ARTIFACTS_DENIED",
                "Ask the operator to set `grants.artifacts = true` for the pack.",
            ),
            ArtifactError::ReadOnly => (
                "ARTIFACTS_DENIED",
                "Report the operation's id to the pack's author.",
            ),
            ArtifactError::TooLarge(_) | ArtifactError::TooMany(_) => {
                ("ARTIFACTS_TOO_LARGE", "Send less at once.")
            }
        };
        ToolError::new(code, err.to_string()).remediation(remediation)
    }
}

/// Artifacts of one call so far, for the limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct Allowance {
    count: u32,
    bytes: usize,
}

impl Allowance {
    /// Counts one more artifact of `bytes` bytes, given a limit of `most`. An error counts nothing.
    pub fn take(&mut self, bytes: usize, most: usize) -> Result<(), ArtifactError> {
        let most = most.min(MOST_BYTES);
        if bytes > most {
            let why = format!("{bytes} bytes; at most {most} are allowed");
            return Err(ArtifactError::TooLarge(why));
        }
        let together = self.bytes.saturating_add(bytes);
        if together > MOST_BYTES_TOGETHER {
            let why = format!(
                "{together} bytes in all artifacts of the call; at most {MOST_BYTES_TOGETHER} are allowed"
            );
            return Err(ArtifactError::TooLarge(why));
        }
        if self.count >= MOST {
            return Err(ArtifactError::TooMany(self.count));
        }
        *self = Allowance {
            count: self.count + 1,
            bytes: together,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_keeps_so_many_so_large_and_so_much() {
        let mut allowance = Allowance::default();
        assert!(matches!(
            allowance.take(MOST_BYTES + 1, usize::MAX),
            Err(ArtifactError::TooLarge(_))
        ));
        assert!(matches!(allowance.take(11, 10), Err(ArtifactError::TooLarge(_))));
        assert_eq!(allowance, Allowance::default(), "what is refused does not count");
        for _ in 0..MOST_BYTES_TOGETHER / MOST_BYTES {
            allowance.take(MOST_BYTES, usize::MAX).unwrap();
        }
        assert!(matches!(
            allowance.take(1, usize::MAX),
            Err(ArtifactError::TooLarge(_))
        ));
        while allowance.take(0, 0).is_ok() {}
        assert_eq!(allowance.count, MOST);
        assert_eq!(allowance.take(0, 0), Err(ArtifactError::TooMany(MOST)));
    }
}
