//! Facts that a gate needs: paths, contents and results of commands.

use std::collections::BTreeMap;
use std::time::Duration;

use test_readers::Ended;
use tollgate_sdk::{Command, Ending, FileKind, Workspace};

use super::known::{Facts, Presence, Run};
use super::{Need, delivered};
use crate::access::{self, Access};

/// Maximum size of a file that is checked against a schema or a pattern, in bytes.
const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Maximum bytes of a command's output that are read.
const MAX_OUTPUT_BYTES: u32 = 1 << 20;
/// Learns a fact that a gate needs, unless it is known.
pub(super) fn learn(access: &Result<Access<'_>, String>, need: Need<'_>, time: Duration, facts: &mut Facts) {
    match need {
        Need::Git => {}
        Need::Map if facts.unreachable.is_some() => {}
        Need::Map => facts.unreachable = Some(with(access, crate::repo::reach::unreachable)),
        Need::Path(path) => {
            let known = with(access, |access| {
                Ok(match presence(access, path)? {
                    Presence::File if delivered::is_blank_file(access, path) => Presence::Empty,
                    found => found,
                })
            });
            facts.paths.insert(path.to_owned(), known);
        }
        Need::Content(path) => {
            let known = with(access, |access| content(access, path));
            facts.contents.insert(path.to_owned(), known);
        }
        // A command that several gates name runs once.
        Need::Command(words) if facts.commands.contains_key(words) => {}
        Need::Command(words) => {
            let known = with(access, |access| run(&access.workspace, words, time));
            facts.commands.insert(words.to_vec(), known);
        }
    }
}

fn with<T>(
    access: &Result<Access<'_>, String>,
    look: impl FnOnce(&Access<'_>) -> Result<T, String>,
) -> Result<T, String> {
    match access {
        Ok(access) => look(access),
        Err(why) => Err(why.clone()),
    }
}

/// Kind of what is at a path below the repository.
pub(crate) fn presence(access: &Access<'_>, path: &str) -> Result<Presence, String> {
    let found = access
        .workspace
        .find(&access.root.join(path))
        .map_err(|err| err.to_string())?;
    Ok(match found.map(|entry| (entry.kind, entry.size)) {
        None => Presence::Missing,
        Some((FileKind::File, 0)) => Presence::Empty,
        Some((FileKind::File, _)) => Presence::File,
        Some((FileKind::Directory, _)) => Presence::Directory,
        Some(_) => Presence::Other,
    })
}

fn content(access: &Access<'_>, path: &str) -> Result<String, String> {
    match presence(access, path)? {
        // The reader names a missing file itself.
        Presence::File | Presence::Missing | Presence::Empty => {}
        Presence::Directory => return Err("it is a directory".to_owned()),
        Presence::Other => return Err("it is a link or a special file".to_owned()),
    }
    let bytes = access.workspace.read(&access.root.join(path), MAX_CONTENT_BYTES);
    let bytes = bytes.map_err(|err| err.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

fn run(workspace: &Workspace<'_>, words: &[String], time: Duration) -> Result<Run, String> {
    let words = access::command(workspace.info(), words);
    let (program, arguments) = words.split_first().ok_or("no program was named")?;
    let command = Command::new(program.as_str())
        .args(arguments.iter().cloned())
        .timeout(time)
        .output_limit(MAX_OUTPUT_BYTES);
    let outcome = workspace.run(&command).map_err(|err| err.to_string())?;
    let mut output = outcome.stdout.text().into_owned();
    let errors = outcome.stderr.text();
    if !output.is_empty() && !errors.is_empty() {
        output.push('\n');
    }
    output += &errors;
    let ended = match outcome.ending {
        Ending::Exited(code) => Ended::Exited(code),
        Ending::Signalled(signal) => Ended::Signalled(signal),
        Ending::TimedOut => Ended::TimedOut,
    };
    Ok(Run {
        exit: match ended {
            Ended::Exited(code) => Some(code),
            Ended::Signalled(_) | Ended::TimedOut | Ended::Unknown => None,
        },
        output,
        ended,
        is_cut_off: ended == Ended::TimedOut && outcome.duration < time,
    })
}

/// Commands that the gates of a step ran, with their results, for the reply.
pub(crate) fn runs(facts: &Facts) -> BTreeMap<String, String> {
    let told = facts.commands.iter().map(|(words, run)| {
        let ending = match run {
            Ok(Run { exit: Some(code), .. }) => format!("exit code {code}"),
            Ok(Run { exit: None, .. }) => "killed".to_owned(),
            Err(why) => why.clone(),
        };
        (words.join(" "), ending)
    });
    told.collect()
}
