//! Notes that are kept for later conversations.
//!
//! A tool is its argument struct: fields are the parameters, agents read the doc comments, and `run` does
//! the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{
    Cx, DbError, Effect, Hints, Pack, Row, Tier, Timestamp, Tool, ToolError, config_schema, id,
    migration, params, tools,
};

/// Settings of the operator in `[packs.my-pack.config]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// Maximum number of notes. Default 1000.
    #[schemars(range(min = 1, max = 10_000))]
    max_notes: i64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { max_notes: 1_000 }
    }
}

id!(
    /// A note.
    NoteId,
    "note"
);

/// A note with its id.
#[derive(Serialize, JsonSchema)]
pub struct Note {
    /// Id of the note.
    id: NoteId,
    /// Text of the note.
    text: String,
    /// Time of creation.
    created_at: Timestamp,
}

impl TryFrom<Row> for Note {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Note, DbError> {
        Ok(Note {
            id: row.get(0)?,
            text: row.get(1)?,
            created_at: row.get(2)?,
        })
    }
}

/// Keep a note for later conversations. Fails if the maximum number of notes is reached.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddNote {
    /// Text of the note, in one or two sentences, for example "The build needs protoc."
    #[schemars(length(min = 1, max = 2_000))]
    text: String,
}

impl Tool for AddNote {
    const NAME: &'static str = "my_pack_add";
    const TITLE: &'static str = "Keep a note";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const HINTS: Hints = Hints::ADDITIVE;
    type Output = Note;

    fn run(self, cx: &Cx<'_>) -> Result<Note, ToolError> {
        let settings: Settings = cx.config()?;
        let row = cx
            .db
            .query_row("SELECT count(id) FROM my_pack_notes", &[])?;
        let kept: i64 = row.map_or(Ok(0), |row| row.get(0))?;
        if kept >= settings.max_notes {
            return Err(
                ToolError::new("NOTES_FULL", format!("the maximum of {kept} notes is reached"))
                    .remediation("Ask the operator to raise max_notes in [packs.my-pack.config].")
                    .context("max_notes", settings.max_notes),
            );
        }
        let note = Note {
            id: cx.new_id(),
            text: self.text,
            created_at: cx.now(),
        };
        cx.db.execute(
            "INSERT INTO my_pack_notes (id, text, created_at) VALUES (?1, ?2, ?3)",
            params![note.id, note.text, note.created_at],
        )?;
        Ok(note)
    }
}

/// List notes, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListNotes {
    /// Maximum number of notes, 1 to 100. Default 20.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

const fn twenty() -> u32 {
    20
}

/// A list of notes.
#[derive(Serialize, JsonSchema)]
pub struct Notes {
    /// Notes, newest first.
    notes: Vec<Note>,
}

impl Tool for ListNotes {
    const NAME: &'static str = "my_pack_list";
    const TITLE: &'static str = "List notes";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Notes;

    fn run(self, cx: &Cx<'_>) -> Result<Notes, ToolError> {
        let notes = cx.db.query_as(
            "SELECT id, text, created_at FROM my_pack_notes ORDER BY created_at DESC, id DESC LIMIT ?1",
            params![self.limit],
        )?;
        Ok(Notes { notes })
    }
}

/// Definition of the pack.
pub const PACK: Pack = Pack {
    name: "my-pack",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Notes that are kept for later conversations.",
    instructions: "Keep facts for later conversations with my_pack_add; read them with my_pack_list.",
    tools: tools![AddNote, ListNotes],
    migrations: &[migration!("../migrations", "0001_init")],
    config_schema: Some(config_schema::<Settings>),
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_sdk::native::{Session, table};

    use super::PACK;

    #[test]
    fn notes_are_kept_until_there_are_too_many() {
        let session = Session::new(&PACK)
            .config(&json!({ "max_notes": 2 }))
            .checked();
        let log = session.script(
            r#"
            my_pack_add {"text": "the build needs protoc"}
            my_pack_add {"text": "releases are cut on Fridays"}
            my_pack_add {"text": "one too many"}
            my_pack_list {"limit": 1}
            "#,
        );
        assert!(
            log.contains("err NOTES_FULL: the maximum of 2 notes is reached"),
            "{log}"
        );
        let listed = log
            .lines()
            .rfind(|line| line.starts_with("ok"))
            .unwrap_or_default();
        assert!(listed.contains("releases are cut on Fridays"), "{log}");
        assert!(!listed.contains("protoc"), "{log}");
        let refused = session.call("my_pack_list", r#"{"limit": 0}"#).unwrap_err();
        assert_eq!(refused.code, "INVALID_ARGUMENTS");
    }

    #[test]
    fn every_client_takes_the_tools() {
        assert_eq!(table::faults(&PACK), Vec::<String>::new());
    }
}
