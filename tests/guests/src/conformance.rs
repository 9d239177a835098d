//! Tools, prompts and resources that MCP's official conformance suite expects from a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tollgate_sdk::{
    ClientPart, Content, Cx, Effect, Level, Media, Pack, Tier, Tool, ToolError, Want, prompts, tools,
};

/// Workspace that contains the host's configuration.
const WORKSPACE: &str = "conformance";
/// Path of the configuration.
const CONFIG: &str = "tollgate.toml";
/// Lines of the configuration with which the changing tool and prompt are present and absent.
const PRESENT: &str = "exclude = []";
const ABSENT: &str = "exclude = [\"test_now_and_then*\"]";

/// PNG of one red pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53, 0xde, 0x00,
    0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x08, 0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01,
    0x01, 0x00, 0x18, 0xdd, 0x8d, 0xb0, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60,
    0x82,
];
/// WAV file without samples.
const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\0\0\0\0";

fn image() -> Content {
    Content::Image(Media {
        mime_type: "image/png".to_owned(),
        data: PNG.to_vec(),
    })
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::Resource {
        uri: uri.to_owned(),
        mime_type: mime_type.to_owned(),
        text: text.to_owned(),
    }
}

/// Text reply of a tool.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Said {
    /// Text of the reply.
    said: String,
}

impl Said {
    fn new(said: impl Into<String>) -> Said {
        Said { said: said.into() }
    }
}

/// Declares a tool without arguments.
macro_rules! tool {
    ($(#[$doc:meta])* $name:ident, $tool:literal $(= $alias:literal)?, $effect:ident, $run:expr $(, $content:expr)?) => {
        $(#[$doc])*
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {}

        impl Tool for $name {
            const NAME: &'static str = $tool;
            const TITLE: &'static str = stringify!($name);
            const EFFECT: Effect = Effect::$effect;
            const TIER: Tier = Tier::Core;
            $(const ALIASES: &'static [&'static str] = &[$alias];)?
            type Output = Said;

            fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
                let run: fn(&Cx<'_>) -> Result<Said, ToolError> = $run;
                run(cx)
            }

            fn text(output: &Said) -> Option<String> {
                Some(output.said.clone())
            }
            $(
                fn content(_output: &Said) -> Vec<Content> {
                    $content
                }
            )?
        }
    };
}

#[path = "conformance/asking.rs"]
mod asking;
#[path = "conformance/prompts.rs"]
mod prompts;
#[path = "conformance/reading.rs"]
mod reading;
#[path = "conformance/schemas.rs"]
mod schemas;
#[path = "conformance/tasks.rs"]
mod tasks;

tool!(
    /// Return a simple text.
    SimpleText, "test_simple_text", Read,
    |_| Ok(Said::new("This is a simple text response for testing."))
);
tool!(
    /// Return an image.
    ImageContent, "test_image_content", Read, |_| Ok(Said::new("a red pixel")), vec![image()]
);
tool!(
    /// Return a sound.
    AudioContent, "test_audio_content", Read, |_| Ok(Said::new("silence")),
    vec![Content::Audio(Media { mime_type: "audio/wav".to_owned(), data: WAV.to_vec() })]
);
tool!(
    /// Return an embedded resource with an address.
    EmbeddedResource, "test_embedded_resource", Read, |_| Ok(Said::new("an embedded text")),
    vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
);
tool!(
    /// Return several types of content.
    MultipleContentTypes, "test_multiple_content_types", Read,
    |_| Ok(Said::new("Multiple content types test:")),
    vec![image(), resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#)]
);
tool!(
    /// Fail with an error.
    ErrorHandling, "test_error_handling", Read,
    |_| Err(ToolError::new("AS_ASKED", "This tool intentionally returns an error for testing"))
);
tool!(
    /// Report progress.
    WithProgress, "test_tool_with_progress", Run, |cx| {
        for done in [0, 50, 100] {
            cx.progress(done, Some(100), "going on");
            // The host drops reports that are more frequent.
            std::thread::sleep(Duration::from_millis(300));
        }
        Ok(Said::new("Went on to the end."))
    }
);

tool!(
    /// Log lines during the call.
    WithLogging, "test_tool_with_logging", Run, |cx| {
        for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            cx.log(Level::Info, line);
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Said::new("Logged to the end."))
    }
);
tool!(
    /// Log one line.
    Logging, "test_logging_tool", Read, |cx| {
        cx.log(Level::Info, "a line for who asked for it");
        Ok(Said::new("Logged."))
    }
);
tool!(
    /// Return a text. This tool is absent at times.
    NowAndThen, "test_now_and_then", Read, |_| Ok(Said::new("Here."))
);
tool!(
    /// Add or remove a tool by changing the configuration, as an operator would.
    TriggerToolChange, "test_trigger_tool_change", Write, |cx| come_and_go(cx)
);
tool!(
    /// Add or remove a prompt.
    TriggerPromptChange, "test_trigger_prompt_change", Write, |cx| come_and_go(cx)
);

fn come_and_go(cx: &Cx<'_>) -> Result<Said, ToolError> {
    let workspace = cx.workspace(WORKSPACE)?;
    let config = workspace.read(CONFIG, 64 << 10)?;
    let config = String::from_utf8_lossy(&config);
    let changed = if config.contains(PRESENT) {
        config.replace(PRESENT, ABSENT)
    } else {
        config.replace(ABSENT, PRESENT)
    };
    workspace.write(CONFIG, changed.as_bytes())?;
    Ok(Said::new("The configuration is another."))
}

const PACK: Pack = Pack {
    name: "conformance",
    version: "0.1.0",
    summary: "What the conformance suite wants to find.",
    wants: &[
        Want::WorkspaceRead(WORKSPACE),
        Want::WorkspaceWrite(CONFIG),
        Want::Client(ClientPart::Model),
        Want::Client(ClientPart::Roots),
    ],
    tools: tools![
        SimpleText,
        ImageContent,
        AudioContent,
        EmbeddedResource,
        MultipleContentTypes,
        ErrorHandling,
        WithProgress,
        WithLogging,
        Logging,
        NowAndThen,
        TriggerToolChange,
        TriggerPromptChange,
        asking::AskName,
        asking::AskState,
        asking::AskTampered,
        asking::AskRounds,
        asking::AskModel,
        asking::AskRoots,
        asking::AskEverything,
        asking::AskAnybody,
        asking::MissingCapability,
        asking::StreamingElicitation,
        asking::Elicitation,
        asking::Sampling,
        asking::Defaults,
        asking::Enums,
        reading::StaticText,
        reading::StaticBinary,
        reading::Watched,
        reading::TemplateData,
        reading::ListIds,
        schemas::Routed,
        schemas::Contact,
        tasks::Greet,
        tasks::SlowCompute,
        tasks::FailingJob,
        tasks::ProtocolErrorJob,
        tasks::ConfirmDelete,
        tasks::MultiInput,
        tasks::ToolWithTask
    ],
    prompts: prompts![
        prompts::SimplePrompt,
        prompts::PromptNowAndThen,
        prompts::PromptWithArguments,
        prompts::PromptWithResource,
        prompts::PromptWithImage,
        prompts::PromptThatAsks
    ],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
