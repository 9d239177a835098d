//! Evidence: the proof that work was done.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{ArtifactKind, Cx, Effect, Level, Tier, Tool, ToolError};

use crate::build::declared;
use crate::checkpoint;
use crate::error::{Reason, Refusals};
use crate::evidence;
use crate::limits::{MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_NAME_CHARS, MAX_TITLE_CHARS};
use crate::model::{Checkpoint, EventType, EvidenceKind};
use crate::mutation;
use crate::record::{Evidence, Root, Step};
use crate::redact;
use crate::reply::{Warning, Written};
use crate::run::{self, Run};
use crate::scope::Located;
use crate::store::Kind;
use crate::target::StepTarget;
use crate::write::Write;

/// Body size in bytes above which a body becomes an artifact, if artifacts are enabled.
const ARTIFACT_BYTES: usize = 16_000;
/// Characters of such a body that the pack keeps as a preview.
const PREVIEW_CHARS: usize = 2_000;

/// Attach evidence to a step, plan or task: output, diffs, links or checks. A linked checkpoint becomes
/// required. Secrets are redacted. Next: tasks_close_step.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct EvidenceCapture {
    #[serde(flatten)]
    target: StepTarget,
    /// Checkpoint to support. Items can name another one.
    checkpoint: Option<Checkpoint>,
    /// Evidence with content. At most 20 items, checks and attachments together.
    #[serde(default)]
    items: Vec<Item>,
    /// Checks that you performed. One line each.
    #[serde(default)]
    checks: Vec<String>,
    /// Paths or URIs of evidence files.
    #[serde(default)]
    attachments: Vec<String>,
}

/// Piece of evidence.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    /// Kind, default cmd_output. url and file need `uri`.
    kind: Option<EvidenceKind>,
    /// Title in one line, for example the command that ran.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: Option<String>,
    /// Content: output or a diff, at most 256000 bytes.
    body: Option<String>,
    /// URL or path. Needed for the kinds url and file.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    uri: Option<String>,
    /// Exit code of the command that produced the output.
    exit_code: Option<i32>,
    /// Operation id of a test_run, whose result counts.
    #[schemars(length(max = MAX_NAME_CHARS))]
    operation_id: Option<String>,
    /// Checkpoint that the item supports.
    checkpoint: Option<Checkpoint>,
}

impl Tool for EvidenceCapture {
    const NAME: &'static str = "tasks_evidence_capture";
    const TITLE: &'static str = "Attach evidence";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        self.check(&write)?;
        let (root, step) = self.target.root_or_step(&mut write)?;
        let id = root.meta().id.clone();
        let mut kept = Vec::new();
        let mut found = 0;
        for item in self.all_items() {
            kept.push(keep(&mut write, &id, step.as_ref(), &item, &mut found)?);
        }
        write.warnings.extend(Warning::redacted(found));
        write.warnings.extend(stated(&write, &kept));
        link(&mut write, &root, step.as_ref(), &kept)?;
        let ids: Vec<String> = kept.iter().map(|evidence| evidence.id.clone()).collect();
        let linked: Vec<Checkpoint> = kept.iter().filter_map(|evidence| evidence.checkpoint).collect();
        let target = step.as_ref().map(|step| step.record.id.as_str());
        let data = json!({"evidence": ids, "checkpoints": linked});
        write.event(EventType::EvidenceCaptured, &id, target, data);
        let workspace = write.scope.workspace.clone();
        let actor = write.actor().map(str::to_owned);
        let mut written = Written::about(&id, write.finish()?);
        written.ids = ids;
        written.artifacts = kept
            .into_iter()
            .filter_map(|evidence| evidence.artifact)
            .collect();
        let at = step.as_ref().map(|step| step.record.id.clone());
        if let Some(step) = &step {
            written = written.step(&step.record.id, &step.path);
        }
        written.then(cx, &workspace, at.as_deref(), actor.as_deref())
    }
}

impl EvidenceCapture {
    /// Requires evidence within its limits and reports every item that is too large.
    fn check(&self, write: &Write<'_>) -> Result<(), ToolError> {
        let (most, bytes) = (write.scope.config.items(), write.scope.config.artifact_bytes());
        let mut refusals = Refusals::default();
        let count = self.items.len() + self.checks.len() + self.attachments.len();
        if count == 0 {
            refusals.add(Reason::input(
                "items",
                "are missing, and there are no checks or attachments",
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
        refusals.texts("checks", &self.checks, MAX_ENTRIES, MAX_ENTRY_CHARS);
        refusals.texts("attachments", &self.attachments, MAX_ENTRIES, MAX_ENTRY_CHARS);
        refusals.finish()
    }

    /// All evidence as items. A check becomes command output without a body, an attachment a file.
    fn all_items(&self) -> impl Iterator<Item = Item> {
        let plain = |kind| Item {
            kind: Some(kind),
            title: None,
            body: None,
            uri: None,
            exit_code: None,
            operation_id: None,
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
    fn kind(&self) -> EvidenceKind {
        self.kind.unwrap_or(EvidenceKind::CmdOutput)
    }

    fn check(&self, at: &str, refusals: &mut Refusals) {
        refusals.optional_text(&format!("{at}.title"), self.title.as_deref(), MAX_TITLE_CHARS);
        refusals.optional_text(&format!("{at}.uri"), self.uri.as_deref(), MAX_ENTRY_CHARS);
        let needs_uri = matches!(self.kind(), EvidenceKind::Url | EvidenceKind::File);
        if needs_uri && self.uri.is_none() {
            refusals.add(Reason::input(
                format!("{at}.uri"),
                format!("is required for the kind {}", self.kind()),
            ));
        }
        let has_body = !self.body.as_deref().unwrap_or_default().trim().is_empty();
        if self.kind() == EvidenceKind::Diff && !has_body {
            refusals.add(Reason::input(
                format!("{at}.body"),
                "is required for the kind diff",
            ));
            return;
        }
        let is_empty = !has_body && self.title.is_none();
        if !needs_uri && is_empty && self.operation_id.is_none() {
            refusals.add(Reason::input(
                format!("{at}.body"),
                "or a title or operation_id is required",
            ));
        }
        if self.operation_id.is_some() && self.exit_code.is_some() {
            refusals.add(Reason::input(
                format!("{at}.exit_code"),
                "is taken from the operation and must be omitted",
            ));
        }
        refusals.optional_text(
            &format!("{at}.operation_id"),
            self.operation_id.as_deref(),
            MAX_NAME_CHARS,
        );
    }
}

/// Stores one item with its secrets redacted.
fn keep(
    write: &mut Write<'_>,
    root: &str,
    step: Option<&Located<Step>>,
    item: &Item,
    found: &mut usize,
) -> Result<Evidence, ToolError> {
    let (mut item, kind) = (item.clone(), item.kind());
    let mut taken = mutation::now(&write.scope)?;
    if let Some(run) = ran(write, &item)? {
        taken = run.taken;
        item.exit_code = Some(run.exit_code);
        item.title.get_or_insert(run.summary);
    }
    let mut clean = |text: Option<String>| text.map(|text| redact::clean(&text, found));
    let (title, uri, body) = (clean(item.title), clean(item.uri), clean(item.body));
    let bytes = body.as_ref().map_or(0, String::len);
    let artifact = body.as_deref().and_then(|body| set_aside(write, kind, body));
    let evidence = Evidence {
        id: write.fresh_id(Kind::Evidence, "EVD")?,
        task: root.to_owned(),
        step: step.map(|step| step.record.id.clone()),
        position: write.position(),
        kind,
        title,
        uri,
        exit_code: item.exit_code,
        operation: item.operation_id,
        checkpoint: item.checkpoint,
        bytes,
        artifact,
        actor: write.actor().map(str::to_owned),
        taken,
        created_at: write.scope.now(),
    };
    if let Some(mut body) = body {
        if evidence.artifact.is_some() {
            body = body.chars().take(PREVIEW_CHARS).collect();
        }
        write.keep_body(root, &evidence.id, body);
    }
    write.put(&evidence)?;
    Ok(evidence)
}

/// The test run that an item names. One that the ledger does not have is refused where evidence is required, and warned
/// about elsewhere.
fn ran(write: &mut Write<'_>, item: &Item) -> Result<Option<Run>, ToolError> {
    let Some(operation) = &item.operation_id else {
        return Ok(None);
    };
    match run::look_up(&write.scope, operation)? {
        Ok(run) => Ok(Some(run)),
        Err(fault) if write.scope.config.requires_evidence(&write.scope.workspace) => {
            let operation = operation.clone();
            Err(Reason::UnknownRun { operation, fault }.into())
        }
        Err(fault) => {
            let message = format!("operation {operation} {fault}; it proves nothing");
            write.warnings.push(Warning::new("UNKNOWN_RUN", message));
            Ok(None)
        }
    }
}

/// Warns about evidence that its caller states, where only test runs prove a checkpoint.
fn stated(write: &Write<'_>, kept: &[Evidence]) -> Option<Warning> {
    let is_stated = kept.iter().any(|evidence| evidence.operation.is_none());
    let is_required = write.scope.config.requires_evidence(&write.scope.workspace);
    (is_stated && is_required).then(|| {
        let message = "evidence without an operation_id is stored, but does not count for checkpoints in this workspace; \
                       run test_run and attach its operation_id";
        Warning::new("STATED_EVIDENCE", message.to_owned())
    })
}

/// Stores a large body as an artifact. `None` if the host keeps no artifacts; the pack then stores the body
/// itself.
fn set_aside(write: &Write<'_>, kind: EvidenceKind, body: &str) -> Option<String> {
    if body.len() <= ARTIFACT_BYTES {
        return None;
    }
    let cx = write.scope.cx;
    let kind = match kind {
        EvidenceKind::Diff => ArtifactKind::Diff,
        EvidenceKind::CmdOutput | EvidenceKind::Url | EvidenceKind::File => ArtifactKind::Log,
    };
    cx.keep_artifact(kind, body.as_bytes()).unwrap_or_else(|err| {
        cx.log(
            Level::Warn,
            &format!("a body could not be stored as an artifact: {err}"),
        );
        None
    })
}

/// Makes the checkpoints that evidence is linked to required. On a closed step this takes effect as well: the
/// task is not completed before they are confirmed.
fn link(
    write: &mut Write<'_>,
    root: &Root,
    step: Option<&Located<Step>>,
    kept: &[Evidence],
) -> Result<(), ToolError> {
    let Some(step) = step else {
        return Ok(());
    };
    let linked: BTreeSet<Checkpoint> = kept.iter().filter_map(|evidence| evidence.checkpoint).collect();
    let mut wanting = step.record.clone();
    wanting.required.extend(declared(&linked));
    if wanting == step.record {
        return Ok(());
    }
    let missing = checkpoint::missing(&wanting, &BTreeSet::new());
    if wanting.is_done() && !missing.is_empty() {
        let mut refusals = Refusals::default();
        refusals.unfinished(&write.scope, root.meta());
        refusals.finish()?;
        let names: Vec<&str> = missing.iter().map(|checkpoint| checkpoint.as_str()).collect();
        write.warnings.push(Warning::new(
            "CHECKPOINT_REQUIRED",
            format!(
                "step {} is closed without {}; confirm it with tasks_verify before the task is completed",
                step.path,
                names.join(", ")
            ),
        ));
    }
    write.put(&wanting)
}
