//! `DEPRECATED.md`: the files of a repository that may go, with the reasons.

use std::fmt::Write as _;

use conductor_repo::map::{RepoMap, code, reason};

/// List of stale candidates, the likeliest first, for people to review. Nothing is deleted by itself.
pub(crate) fn markdown(map: &RepoMap) -> String {
    let mut text = "# Deprecated files\n\n".to_owned();
    if map.stale.is_empty() {
        text += "No file looks deprecated or stale.\n";
        return text;
    }
    text += "Candidates for deletion, likeliest first. Review each before deleting it.\n\n";
    for candidate in &map.stale {
        let reasons: Vec<String> = candidate.reasons.iter().map(reason).collect();
        let _ = writeln!(
            text,
            "- {} ({}): {}",
            code(&candidate.path),
            candidate.score,
            reasons.join("; ")
        );
    }
    text
}
