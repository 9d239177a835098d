//! Evidence: what shows that work was done.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{ArtifactKind, Cx, Effect, Level, Tier, Tool, ToolError};

use crate::build::declared;
use crate::error::{Reason, Refusals};
use crate::limits::{ENTRIES, ENTRY, NAME, TITLE};
use crate::model::{Checkpoint, EventType, EvidenceKind, Workspace};
use crate::mutation;
use crate::record::{Evidence, Step};
use crate::redact;
use crate::reply::{Warning, Written};
use crate::scope::{Located, Selector};
use crate::store::Kind;
use crate::write::Write;

/// Bytes of a body from which on it is kept as an artifact, if artifacts are kept.
const LARGE: usize = 16_000;
/// Characters of such a body that are kept here as well.
const PREVIEW: usize = 2_000;

/// Attach evidence to a step, or to the plan or task itself: items with a body or a URI, names of checks that
/// were made, paths or URIs of attachments. It closes nothing. Linked to a checkpoint, it makes that one
/// required. Secrets are redacted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvidenceCapture {
    /// The workspace.
    workspace: Workspace,
    /// The plan or task.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// The step by path such as s:0.s:1.
    #[schemars(length(max = NAME))]
    path: Option<String>,
    /// The step by id.
    #[schemars(length(max = NAME))]
    step_id: Option<String>,
    /// The checkpoint that all of it is for, unless an item says another.
    checkpoint: Option<Checkpoint>,
    /// Items with content, at most 20 in one call with checks and attachments.
    #[serde(default)]
    items: Vec<Item>,
    /// Checks that were made, a line each.
    #[serde(default)]
    checks: Vec<String>,
    /// Paths or URIs of files.
    #[serde(default)]
    attachments: Vec<String>,
    /// The revision as you know it.
    expected_revision: Option<i64>,
    /// The id that the target has to have.
    #[schemars(length(max = NAME))]
    expected_target_id: Option<String>,
}

/// One piece of evidence.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    /// What it is.
    kind: EvidenceKind,
    /// One line, such as the command.
    #[schemars(length(min = 1, max = TITLE))]
    title: Option<String>,
    /// Its content: output or a diff, at most 256000 bytes.
    body: Option<String>,
    /// Where it is, for a url or file.
    #[schemars(length(min = 1, max = ENTRY))]
    uri: Option<String>,
    /// The exit code of the command.
    exit_code: Option<i32>,
    /// The checkpoint it is for.
    checkpoint: Option<Checkpoint>,
}

impl Tool for EvidenceCapture {
    const NAME: &'static str = "tasks_evidence_capture";
    const TITLE: &'static str = "Attach evidence";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        self.check(&write)?;
        let root = write.root(self.task.as_deref(), self.expected_revision)?;
        let id = root.meta().id.clone();
        let selector = Selector {
            path: self.path.as_deref(),
            id: self.step_id.as_deref(),
            expected: self.expected_target_id.as_deref(),
        };
        let step = selector.step_of(&write.scope, &id)?;
        let mut kept = Vec::new();
        let mut found = 0;
        for item in self.all_items() {
            kept.push(keep(&mut write, &id, step.as_ref(), item, &mut found)?);
        }
        write.warnings.extend(Warning::redacted(found));
        link(&mut write, step.as_ref(), &kept)?;
        let ids: Vec<String> = kept.iter().map(|evidence| evidence.id.clone()).collect();
        let linked: Vec<Checkpoint> = kept.iter().filter_map(|evidence| evidence.checkpoint).collect();
        let target = step.as_ref().map(|step| step.record.id.as_str());
        let data = json!({"evidence": ids, "checkpoints": linked});
        write.event(EventType::EvidenceCaptured, &id, target, data);
        let mut written = Written::about(&id, write.finish()?);
        written.ids = ids;
        written.artifacts = kept
            .into_iter()
            .filter_map(|evidence| evidence.artifact)
            .collect();
        Ok(match &step {
            Some(step) => written.step(&step.record.id, &step.path),
            None => written,
        })
    }
}

impl EvidenceCapture {
    /// Wants evidence within its bounds, every item that is not being told with its size.
    fn check(&self, write: &Write<'_>) -> Result<(), ToolError> {
        let (most, bytes) = (write.scope.config.items(), write.scope.config.artifact_bytes());
        let mut refusals = Refusals::default();
        let count = self.items.len() + self.checks.len() + self.attachments.len();
        if count == 0 {
            refusals.add(Reason::input(
                "items",
                "are missing; so are checks and attachments",
            ));
        }
        if count > most {
            refusals.add(Reason::EvidenceTooLarge {
                field: "items".to_owned(),
                size: count,
                limit: most,
            });
        }
        for (place, item) in self.items.iter().enumerate() {
            let at = format!("items[{place}]");
            let size = item.body.as_ref().map_or(0, String::len);
            if size > bytes {
                refusals.add(Reason::EvidenceTooLarge {
                    field: format!("{at}.body"),
                    size,
                    limit: bytes,
                });
            }
            item.check(&at, &mut refusals);
        }
        refusals.texts("checks", &self.checks, ENTRIES, ENTRY);
        refusals.texts("attachments", &self.attachments, ENTRIES, ENTRY);
        refusals.finish()
    }

    /// All of it as items: a check is output without a body, an attachment a file elsewhere.
    fn all_items(&self) -> impl Iterator<Item = Item> {
        let plain = |kind| Item {
            kind,
            title: None,
            body: None,
            uri: None,
            exit_code: None,
            checkpoint: None,
        };
        let checks = self.checks.iter().map(move |check| Item {
            title: Some(check.clone()),
            ..plain(EvidenceKind::CmdOutput)
        });
        let attachments = self.attachments.iter().map(move |attachment| Item {
            uri: Some(attachment.clone()),
            ..plain(EvidenceKind::File)
        });
        self.items
            .iter()
            .cloned()
            .chain(checks)
            .chain(attachments)
            .map(|item| Item {
                checkpoint: item.checkpoint.or(self.checkpoint),
                ..item
            })
    }
}

impl Item {
    fn check(&self, at: &str, refusals: &mut Refusals) {
        refusals.optional_text(&format!("{at}.title"), self.title.as_deref(), TITLE);
        refusals.optional_text(&format!("{at}.uri"), self.uri.as_deref(), ENTRY);
        let needs_uri = matches!(self.kind, EvidenceKind::Url | EvidenceKind::File);
        if needs_uri && self.uri.is_none() {
            refusals.add(Reason::input(
                format!("{at}.uri"),
                format!("is missing; a {} is somewhere", self.kind),
            ));
        }
        if !needs_uri && self.body.as_deref().unwrap_or_default().is_empty() && self.title.is_none() {
            refusals.add(Reason::input(
                format!("{at}.body"),
                "is missing, and so is a title",
            ));
        }
    }
}

/// Keeps one item without its secrets.
fn keep(
    write: &mut Write<'_>,
    root: &str,
    step: Option<&Located<Step>>,
    item: Item,
    found: &mut usize,
) -> Result<Evidence, ToolError> {
    let taken = mutation::now(&write.scope)?;
    let mut clean = |text: Option<String>| text.map(|text| redact::clean(&text, found));
    let (title, uri, body) = (clean(item.title), clean(item.uri), clean(item.body));
    let bytes = body.as_ref().map_or(0, String::len);
    let artifact = body.as_deref().and_then(|body| set_aside(write, item.kind, body));
    let evidence = Evidence {
        id: write.fresh_id(Kind::Evidence, "EVD")?,
        task: root.to_owned(),
        step: step.map(|step| step.record.id.clone()),
        position: write.position(),
        kind: item.kind,
        title,
        uri,
        exit_code: item.exit_code,
        checkpoint: item.checkpoint,
        bytes,
        artifact,
        taken,
        created_at: write.scope.now(),
    };
    if let Some(mut body) = body {
        if evidence.artifact.is_some() {
            body = body.chars().take(PREVIEW).collect();
        }
        write.keep_body(root, &evidence.id, body);
    }
    write.put(&evidence)?;
    Ok(evidence)
}

/// The artifact that a large body becomes. What the host does not keep is kept here like any other.
fn set_aside(write: &Write<'_>, kind: EvidenceKind, body: &str) -> Option<String> {
    if body.len() <= LARGE {
        return None;
    }
    let cx = write.scope.cx;
    let kind = match kind {
        EvidenceKind::Diff => ArtifactKind::Diff,
        EvidenceKind::CmdOutput | EvidenceKind::Url | EvidenceKind::File => ArtifactKind::Log,
    };
    cx.keep_artifact(kind, body.as_bytes()).unwrap_or_else(|err| {
        cx.log(Level::Warn, &format!("a body is no artifact: {err}"));
        None
    })
}

/// Makes the checkpoints that evidence is linked to required.
fn link(write: &mut Write<'_>, step: Option<&Located<Step>>, kept: &[Evidence]) -> Result<(), ToolError> {
    let Some(step) = step.filter(|step| !step.record.is_done()) else {
        return Ok(());
    };
    let linked: BTreeSet<Checkpoint> = kept.iter().filter_map(|evidence| evidence.checkpoint).collect();
    let mut wanting = step.record.clone();
    wanting.required.extend(declared(&linked));
    if wanting != step.record {
        write.put(&wanting)?;
    }
    Ok(())
}
