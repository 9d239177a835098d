//! Map for people: `REPO_MAP.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{MapFile, RepoMap};
use crate::entry::EntryPoint;
use crate::language::Role;
use crate::path;
use crate::stale::Reason;

/// Limits of a map in Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkdownLimits {
    /// Maximum number of files listed per owner.
    pub files: usize,
    /// Maximum number of lines of each other list.
    pub lines: usize,
}

impl Default for MarkdownLimits {
    fn default() -> MarkdownLimits {
        MarkdownLimits {
            files: 200,
            lines: 50,
        }
    }
}

impl RepoMap {
    /// Renders the map as Markdown. Entries beyond the limits are counted.
    pub fn markdown(&self, limits: MarkdownLimits) -> String {
        let mut text = String::from("# Repository map\n");
        self.summary(&mut text);
        list(
            &mut text,
            "Entry points",
            limits.lines,
            &self.entry_points,
            entry_point,
        );
        self.owners(&mut text, limits.files);
        list(
            &mut text,
            "Conventions",
            limits.lines,
            &self.conventions,
            Clone::clone,
        );
        list(
            &mut text,
            "Imports without a file",
            limits.lines,
            &self.graph.missing,
            |missing| {
                format!(
                    "{}:{}: {}",
                    code(&missing.path),
                    missing.line,
                    code(&missing.import)
                )
            },
        );
        list(
            &mut text,
            "Deprecated or stale",
            limits.lines,
            &self.stale,
            |candidate| {
                let reasons: Vec<String> = candidate.reasons.iter().map(reason).collect();
                format!(
                    "{} ({}): {}",
                    code(&candidate.path),
                    candidate.score,
                    reasons.join("; ")
                )
            },
        );
        list(&mut text, "Not read", limits.lines, &self.problems, |problem| {
            format!("{}: {:?}", code(&problem.path), problem.what)
        });
        text
    }

    fn summary(&self, text: &mut String) {
        let bytes: u64 = self.files.iter().map(|file| file.size).sum();
        let _ = writeln!(text, "\nFiles: {}, size: {bytes} bytes.", self.files.len());
        if self.graph.counts.is_empty() {
            return;
        }
        text.push_str("\n| language | files | imports found | outside | missing |\n|---|---|---|---|---|\n");
        for (language, counts) in &self.graph.counts {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                language.name(),
                counts.files,
                counts.resolved,
                counts.external,
                counts.missing
            );
        }
    }

    /// Writes the files that people edit, by owner, one line each. All others follow in one line for each directory.
    fn owners(&self, text: &mut String, limit: usize) {
        let mut owners: BTreeMap<&str, Vec<&MapFile>> = BTreeMap::new();
        for file in &self.files {
            owners.entry(&file.owner).or_default().push(file);
        }
        text.push_str("\n## Files\n");
        for (owner, files) in owners {
            let _ = writeln!(text, "\n### {}\n", code(owner));
            let is_shown = |file: &&&MapFile| {
                file.description.is_some()
                    || matches!(file.role, Role::Source | Role::Script | Role::Manifest)
            };
            let shown: Vec<&&MapFile> = files.iter().filter(is_shown).take(limit).collect();
            for file in &shown {
                let _ = writeln!(text, "- {}", line(file));
            }
            let others = files.iter().filter(|file| !is_shown(file));
            let named = others_by_directory(text, others.map(|file| file.path.as_str()), limit);
            let rest = files.len() - shown.len() - named;
            if rest > 0 {
                let _ = writeln!(text, "- … and {rest} more");
            }
        }
    }
}

/// Writes the names of files, one line for each directory. Returns their number, which is at most `limit`.
fn others_by_directory<'a>(text: &mut String, paths: impl Iterator<Item = &'a str>, limit: usize) -> usize {
    let mut directories: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut named = 0;
    for path in paths.take(limit) {
        directories
            .entry(path::parent(path))
            .or_default()
            .push(path::name(path));
        named += 1;
    }
    for (directory, names) in directories {
        let names: Vec<String> = names.into_iter().map(code).collect();
        let place = match directory {
            "" => "top".to_owned(),
            directory => code(&format!("{directory}/")),
        };
        let _ = writeln!(text, "- {place}: {}", names.join(", "));
    }
    named
}

fn line(file: &MapFile) -> String {
    let mut line = code(&file.path);
    if let Some(description) = &file.description {
        let _ = write!(line, ": {}", plain(description));
    }
    let mut notes = Vec::new();
    notes.extend((file.imported_by > 0).then(|| format!("imported by {}", file.imported_by)));
    notes.extend((file.imports > 0).then(|| format!("imports {}", file.imports)));
    if !notes.is_empty() {
        let _ = write!(line, " ({})", notes.join(", "));
    }
    line
}

fn list<T>(text: &mut String, title: &str, limit: usize, items: &[T], write: impl Fn(&T) -> String) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n## {title}\n");
    for item in items.iter().take(limit) {
        let _ = writeln!(text, "- {}", write(item));
    }
    let rest = items.len().saturating_sub(limit);
    if rest > 0 {
        let _ = writeln!(text, "- … and {rest} more");
    }
}

fn entry_point(entry: &EntryPoint) -> String {
    let kind = serde_json::to_value(entry.kind).ok();
    let kind = kind
        .as_ref()
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    match &entry.file {
        Some(file) => format!("{kind} {}: {}", code(&entry.name), code(file)),
        None => format!("{kind} {} of {}", code(&entry.name), code(&entry.from)),
    }
}

/// A reason as text.
pub fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Backup { part } => format!("named like a backup ({})", code(part)),
        Reason::NeverImported { mentioned_in: None } => "nothing imports it".to_owned(),
        Reason::NeverImported {
            mentioned_in: Some(file),
        } => format!("nothing imports it, {} mentions it", code(file)),
        Reason::Deprecated { says } => format!("described as deprecated: {}", plain(says)),
        Reason::Named { part } => format!("named like a disused file ({})", code(part)),
        Reason::Duplicate { of } => format!("same content as {}", code(of)),
        Reason::Unreachable => "no program reaches it".to_owned(),
        Reason::Untouched { days } => format!("no commit for {days} days"),
    }
}

/// Given text in one line, without characters of Markdown or HTML.
fn plain(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let mut plain = String::new();
    for c in line.join(" ").chars().filter(|c| !c.is_control()) {
        if matches!(c, '<' | '[' | '|' | '`' | '\\') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

/// A name as code, whatever its characters.
pub fn code(text: &str) -> String {
    let shown = path::show(text);
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{shown}{pad}{fence}")
}
