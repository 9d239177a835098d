//! `tollgate ledger verify`

use std::io::{BufRead as _, BufReader};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use tollgate_core::text::counted;
use tollgate_store::ledger::head::ExportedHead;
use tollgate_store::ledger::key::PublicKey;
use tollgate_store::ledger::{heads, trusted};
use tollgate_store::storage::{Broken, Head, Session, Verified};

use super::{Global, open_used};
use crate::cli::out;

/// Check that no row was changed, removed, inserted or replaced, and that nothing was added that could do so
#[derive(Debug, Args)]
pub(in crate::cli) struct Verify {
    /// Output of an earlier `ledger export`: a file whose last line is the head, or SEQ:HASH
    #[arg(long, value_name = "FILE|SEQ:HASH")]
    head: Option<String>,
    /// The public key that the head and the anchors must be signed with; can be given more than once
    /// [default: the head's, or else the data directory's]
    #[arg(long, value_name = "KEY")]
    public_key: Vec<PublicKey>,
}

/// A line of an export.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Head { head: ExportedHead },
    Row(Head),
}

impl Verify {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let opened = open_used(global)?;
        let exported = self.head.as_deref().map(read_head).transpose()?;
        let mut keys = self.public_key.clone();
        if let Some(exported) = &exported {
            match exported.check(&self.public_key) {
                Ok(key) => keys.extend(key),
                Err(err) => bail!("the exported head cannot be used: {err}"),
            }
        }
        // A signed head contains the key to trust. The key in the data directory could have been replaced by whoever
        // forged anchors.
        if keys.is_empty() {
            keys = trusted::keys(&opened.data, &opened.session)?;
        }
        // Untrusted recorded heads are a fault of the ledger, and the rows are checked anyway.
        let (noted, fault) = match &exported {
            Some(_) => (None, None),
            None => match heads::newest(&opened.data) {
                Ok(noted) => (noted, None),
                Err(err) => (None, Some(format!("{err:#}"))),
            },
        };
        let known = exported.as_ref().or(noted.as_ref());
        let mut verified = opened
            .session
            .ledger()
            .verify(known.map(|known| &known.head), &keys)?;
        if let (Some(exported), Some(file)) = (&exported, &self.head)
            && verified
                .broken
                .as_ref()
                .is_some_and(|broken| broken.seq == exported.head.seq)
            && let Some(broken) = first_difference(&opened.session, file)?
        {
            verified.broken = Some(broken);
        }
        let is_whole = verified.broken.is_none() && fault.is_none();
        verified.around.extend(fault);
        if global.json {
            out::print_json(&json!(verified));
        } else {
            let text = tell(&verified, known);
            let is_empty = is_whole && verified.rows == 0 && verified.pruned == 0;
            out::print(&match is_empty {
                true => format!(
                    "the ledger in {} is empty: no call has been recorded yet",
                    opened.data.path().display()
                ),
                false => text,
            });
        }
        Ok(if is_whole {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn tell(verified: &Verified, exported: Option<&ExportedHead>) -> String {
    if verified.broken.is_some() || !verified.around.is_empty() {
        let broken = verified.broken.as_ref();
        let others = verified
            .around
            .iter()
            .filter(|fault| broken.is_none_or(|broken| **fault != broken.what));
        let lines = broken.map(ToString::to_string).into_iter().chain(others.cloned());
        let text = lines.collect::<Vec<_>>().join("\n");
        return tollgate_core::text::clean_lines(&text);
    }
    let mut text = format!(
        "{} verified; the head is {}:{}",
        counted(verified.rows, "row"),
        verified.head.seq,
        verified.head.hash
    );
    if verified.pruned > 0 {
        text.push_str(&format!(
            "\npruned before: {}; signed anchors replace these rows",
            counted(verified.pruned, "row")
        ));
    }
    if let (Some(exported), Some(pruned)) = (exported, verified.pruned_before_head) {
        text.push_str(&format!(
            "\nthe rows up to the {} head {} are unchanged",
            exported.seal.as_ref().map_or("exported", |_| "signed"),
            exported.head.seq
        ));
        let before = exported.seal.as_ref().map_or(0, |seal| seal.pruned);
        if pruned > before {
            text.push_str(&format!("; pruned since: {}", counted(pruned - before, "row")));
        }
    }
    if exported.is_none() {
        text.push('\n');
        text.push_str(heads::NO_HEAD_WARNING);
    }
    text
}

/// A head from a file, or as SEQ:HASH.
fn read_head(text: &str) -> anyhow::Result<ExportedHead> {
    if let Some((seq, hash)) = text.split_once(':')
        && let Ok(seq) = seq.parse()
    {
        let hash = hash.to_ascii_lowercase();
        check_hash(&hash)?;
        return Ok(ExportedHead {
            head: Head { seq, hash },
            seal: None,
        });
    }
    let mut last = None;
    for line in lines(text)? {
        if let Line::Head { head } = line? {
            check_hash(&head.head.hash)?;
            last = Some(head);
        }
    }
    last.with_context(|| {
        format!("{text} has no head; it is the last line that `tollgate ledger export` prints")
    })
}

/// Refuses an incomplete hash as a typing mistake, because it does not mean that history was rewritten.
fn check_hash(hash: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{hash:?} is not the hash of a head, which has 64 hex digits; nothing was checked"
    );
    Ok(())
}

/// The lines of an export's file.
fn lines(file: &str) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Line>>> {
    #[allow(clippy::disallowed_methods, reason = "the user names the file")]
    let opened = std::fs::File::open(file).with_context(|| format!("cannot read {file}"))?;
    let file = file.to_owned();
    Ok(BufReader::new(opened)
        .lines()
        .filter(|line| line.as_ref().map_or(true, |line| !line.trim().is_empty()))
        .enumerate()
        .map(move |(number, line)| {
            let line = line.with_context(|| format!("cannot read {file}"))?;
            serde_json::from_str(&line)
                .with_context(|| format!("{file}:{}: not a line of an export", number + 1))
        }))
}

/// First row that differs from the export, if the file has rows.
fn first_difference(session: &Session, file: &str) -> anyhow::Result<Option<Broken>> {
    if !std::path::Path::new(file).exists() {
        return Ok(None);
    }
    for line in lines(file)? {
        if let Line::Row(row) = line?
            && let Some(hash) = session.ledger().hash_of(row.seq)?
            && hash != row.hash
        {
            return Ok(Some(Broken {
                seq: row.seq,
                what: "the row differs from the exported row: the row was replaced, and the history after it was \
                    rewritten".to_owned(),
            }));
        }
    }
    Ok(None)
}
