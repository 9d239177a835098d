"""Tests without a host. `tollgate packs check` tries the component."""

import pytest
from app import pack
from tollgate_sdk import Refusal
from tollgate_sdk.testing import Session


def test_notes_are_kept_until_there_are_too_many() -> None:
    session = Session(pack, {"max_notes": 2})
    session.call("my_pack_add", text="the build needs protoc")
    session.call("my_pack_add", text="releases are cut on Fridays")
    with pytest.raises(Refusal, match="NOTES_FULL: the maximum of 2 notes is reached"):
        session.call("my_pack_add", text="one too many")
    listed = session.call("my_pack_list", limit=1)
    assert [note["text"] for note in listed["notes"]] == ["releases are cut on Fridays"]


def test_arguments_are_checked() -> None:
    with pytest.raises(Refusal, match="INVALID_ARGUMENTS: limit"):
        Session(pack).call("my_pack_list", limit=0)


def test_every_client_takes_the_tools() -> None:
    assert pack.faults() == []
