"""Notes that are kept for later conversations.

A tool is an annotated function: agents read the docstring and the texts in `Annotated`, and the result is a dataclass.
"""

from dataclasses import dataclass
from typing import Annotated

from tollgate_sdk import Call, Examples, Length, Range, Refusal, ToolPack, db, migrations, new_id, now


@dataclass
class Settings:
    """Settings of the operator in `[packs.my-pack.config]`."""

    max_notes: Annotated[int, "Maximum number of notes. Default 1000.", Range(1, 10_000)] = 1_000


pack = ToolPack(
    name="my-pack",
    summary="Notes that are kept for later conversations.",
    instructions="Keep facts for later conversations with my_pack_add; read them with my_pack_list.",
    settings=Settings,
    migrations=migrations(
        (
            "0001_init",
            "CREATE TABLE my_pack_notes (id TEXT PRIMARY KEY, text TEXT NOT NULL, created_at TEXT NOT NULL);",
        )
    ),
)


@dataclass
class Note:
    """A note with its id."""

    id: Annotated[str, "Id of the note."]
    text: Annotated[str, "Text of the note."]
    created_at: Annotated[str, "Time of creation."]


@dataclass
class Notes:
    """A list of notes."""

    notes: Annotated[list[Note], "Notes, newest first."]


Text = Annotated[
    str,
    "Text of the note, in one or two sentences.",
    Examples("The build needs protoc."),
    Length(1, 2_000),
]


@pack.tool("write", title="Keep a note")
def my_pack_add(call: Call, text: Text) -> Note:
    """Keep a note for later conversations. Fails if the maximum number of notes is reached."""
    kept = (db.one("SELECT count(id) FROM my_pack_notes") or (0,))[0]
    most = call.settings.max_notes
    if kept >= most:
        raise Refusal(
            "NOTES_FULL",
            f"the maximum of {kept} notes is reached",
            "Ask the operator to raise max_notes in [packs.my-pack.config].",
            context={"max_notes": most},
        )
    note = Note(new_id("note"), text, now())
    db.execute(
        "INSERT INTO my_pack_notes (id, text, created_at) VALUES (?1, ?2, ?3)", note.id, note.text, note.created_at
    )
    return note


@pack.tool("read", title="List notes")
def my_pack_list(limit: Annotated[int, "Maximum number of notes, 1 to 100. Default 20.", Range(1, 100)] = 20) -> Notes:
    """List notes, newest first."""
    rows = db.query("SELECT id, text, created_at FROM my_pack_notes ORDER BY created_at DESC, id DESC LIMIT ?1", limit)
    return Notes([Note(*row) for row in rows])


@pack.prompt(title="Recall")
def my_pack_recall(topic: Annotated[str, "Topic to look for, for example the build."]) -> str:
    """Recall what is known about a topic."""
    return f"Read the notes with my_pack_list, and say what they say about {topic}."


Pack = pack.export()
