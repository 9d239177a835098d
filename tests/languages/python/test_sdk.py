"""The SDK's double of the host, beyond what the template's tests show."""

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from tollgate_sdk import Migration, Range, ToolPack, db, surface
from tollgate_sdk.testing import BadReply, Session

TABLE = "CREATE TABLE sloppy_rows (id INTEGER PRIMARY KEY);"


@dataclass
class Counted:
    """Number of rows."""

    rows: Annotated[int, "Number of rows.", Range(0, 10)]


def sloppy(rows: Any) -> ToolPack:
    pack = ToolPack("sloppy", "Counts badly.", migrations=[Migration("0001_init", TABLE)])

    @pack.tool("write", title="Count rows")
    def sloppy_count() -> Counted:
        """Count the rows of a table."""
        db.execute("INSERT INTO sloppy_rows (id) VALUES (1)")
        return Counted(rows)

    return pack


def test_a_reply_that_does_not_match_its_schema_is_refused_and_leaves_no_rows() -> None:
    assert Session(sloppy(3)).call("sloppy_count") == {"rows": 3}
    for rows, why in [("3", "rows: is not an integer"), (11, "rows: it is 11, more than 10"), (None, "rows: is missing")]:
        session = Session(sloppy(rows))
        with pytest.raises(BadReply, match=why):
            session.call("sloppy_count")
        assert session.sql("SELECT id FROM sloppy_rows") == []


def test_faults_are_those_of_packs_check() -> None:
    pack = ToolPack("vague", "Says little.")

    @pack.tool("read", title="A title that is much longer than any menu of a client", destructive=True)
    def Vague_Tool(job_id: Annotated[str, "The job id."], other: str) -> Counted:
        """Do something that nobody knows."""
        return Counted(len(job_id + other))

    assert pack.faults() == [
        "Vague_Tool: the name 'Vague_Tool' does not match ^[a-z][a-z0-9_]{0,39}$",
        "Vague_Tool: the title 'A title that is much longer than any menu of a client' is longer than 40 bytes",
        "Vague_Tool: the tool has the effect read and is marked as destructive",
        "Vague_Tool: input.job_id has a vague description: 'The job id.'",
        "Vague_Tool: input.other has no description",
    ]
    assert sloppy(1).faults() == []


def faults(name: str, text: str, arguments: Any, reply: Any) -> list[str]:
    tool = SimpleNamespace(name=name, aliases=(), title="A title", description=text, effect="read", destructive=False)
    schemas = {"input_schema": arguments, "output_schema": reply}
    return surface.faults(SimpleNamespace(**vars(tool), **schemas))


def test_the_table_of_descriptions_holds() -> None:
    table = json.loads(Path(__file__).with_name("descriptions.json").read_text("utf-8"))
    empty: Any = {"type": "object"}
    for kind, name, text, expected in table["descriptions"]:
        described = {"type": "object", "properties": {name: {"type": "string", "description": text}}}
        found = {
            "parameter": lambda: faults("fine_name", "Call somebody on the phone.", described, empty),
            "field": lambda: faults("fine_name", "Call somebody on the phone.", empty, described),
            "tool": lambda: faults(name, text, empty, empty),
        }[kind]()
        told = {"fine": 0, "vague": "has a vague description", "none": "has no description"}[expected]
        assert len(found) == bool(told) and all(str(told) in fault for fault in found), (name, text, found)
    for keywords, expected in table["schemas"]:
        member = {"type": "object", "description": "Rows to add to the table, by key.", **keywords}
        whole = {"type": "object", "properties": {"a": member}}
        found = faults("fine_name", "Call somebody on the phone.", whole, empty)
        assert sorted(fault.split(": ")[0] for fault in found) == sorted(expected), keywords
