//! Targets for components before their code runs, and for their manifests.

use arbitrary::{Result, Unstructured};
use tollgate_components::loading;
use tollgate_components::packs::Manifest;
use tollgate_components::world::World;
use tollgate_sandbox::bindings::exports::tollgate::host::pack::{
    Manifest as Said, Migration, Prompt, PromptArgument, Tier, Tool,
};
use tollgate_sandbox::bindings::tollgate::host::component::{ClientPart, Effect, GitAccess, Want};

/// Checks that no component bytes make the parser panic.
pub(crate) fn component(bytes: &[u8]) {
    let _ = loading::check_component(bytes, World::ToolPack);
}

/// Checks that an accepted manifest has no control characters in texts for people, and has valid names.
pub(crate) fn manifest(bytes: &[u8]) {
    let Ok(said) = said(&mut Unstructured::new(bytes)) else {
        return;
    };
    let Ok(manifest) = Manifest::check(said) else {
        return;
    };
    let lines = [&manifest.version, &manifest.summary];
    let tools = manifest.tools.iter().flat_map(|tool| [&tool.name, &tool.title]);
    for line in lines.into_iter().chain(tools) {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    for tool in &manifest.tools {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(
            !tool.name.is_empty() && tool.name.chars().all(fits),
            "{:?}",
            tool.name
        );
    }
}

fn said(u: &mut Unstructured<'_>) -> Result<Said> {
    Ok(Said {
        name: text(u, "some-pack")?,
        version: text(u, "0.1.0")?,
        summary: text(u, "A pack.")?,
        instructions: text(u, "")?,
        wants: list(u, want)?,
        migrations: list(u, |u| {
            Ok(Migration {
                name: text(u, "0001_init")?,
                sql: text(u, "CREATE TABLE some_pack_rows (id INTEGER PRIMARY KEY)")?,
            })
        })?,
        tools: list(u, tool)?,
        prompts: list(u, prompt)?,
        config_schema: option(u, r#"{"type":"object"}"#)?,
        render_tool: option(u, "some_tool")?,
    })
}

fn tool(u: &mut Unstructured<'_>) -> Result<Tool> {
    Ok(Tool {
        name: text(u, "some_tool")?,
        title: text(u, "Some tool")?,
        description: text(u, "Do something.")?,
        effect: *u.choose(&[Effect::Read, Effect::Write, Effect::Run])?,
        tier: *u.choose(&[Tier::Core, Tier::Standard, Tier::Full])?,
        destructive: u.arbitrary()?,
        idempotent: u.arbitrary()?,
        open_world: u.arbitrary()?,
        members: option(u, "calls")?,
        input_schema: text(
            u,
            r#"{"type":"object","properties":{"a":{"type":"string","description":"A."}},"additionalProperties":false}"#,
        )?,
        output_schema: text(u, r#"{"type":"object"}"#)?,
        aliases: list(u, |u| text(u, "other_tool"))?,
    })
}

fn prompt(u: &mut Unstructured<'_>) -> Result<Prompt> {
    Ok(Prompt {
        name: text(u, "some_prompt")?,
        title: text(u, "Some prompt")?,
        description: text(u, "Ask for something.")?,
        arguments: list(u, |u| {
            Ok(PromptArgument {
                name: text(u, "a")?,
                description: text(u, "A.")?,
                required: u.arbitrary()?,
            })
        })?,
    })
}

fn want(u: &mut Unstructured<'_>) -> Result<Want> {
    Ok(match u.int_in_range(0..=8)? {
        0 => Want::WorkspaceRead(text(u, "*")?),
        1 => Want::WorkspaceWrite(text(u, ".x/")?),
        2 => Want::Process(text(u, "sh")?),
        3 => Want::Tests,
        4 => Want::Git(*u.choose(&[GitAccess::Read, GitAccess::Write])?),
        5 => Want::LedgerQuery,
        6 => Want::Artifacts,
        7 => Want::Client(*u.choose(&[ClientPart::Model, ClientPart::Roots])?),
        _ => Want::Budget(text(u, "approvals")?),
    })
}

/// A text that is usually well-formed, so that later checks run too.
fn text(u: &mut Unstructured<'_>, usual: &str) -> Result<String> {
    Ok(if u.ratio(3, 4)? {
        usual.to_owned()
    } else {
        u.arbitrary()?
    })
}

fn option(u: &mut Unstructured<'_>, usual: &str) -> Result<Option<String>> {
    Ok(if u.arbitrary()? {
        Some(text(u, usual)?)
    } else {
        None
    })
}

fn list<T>(u: &mut Unstructured<'_>, item: impl Fn(&mut Unstructured<'_>) -> Result<T>) -> Result<Vec<T>> {
    let length = u.int_in_range(0..=3)?;
    (0..length).map(|_| item(u)).collect()
}
