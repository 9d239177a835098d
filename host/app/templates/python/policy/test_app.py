"""Tests without a host. `tollgate policies check` and `test` try the component."""

import pytest
from app import Freeze
from tollgate_sdk import BadSettings, Pass, Request
from tollgate_sdk.testing import Judge


def test_only_those_who_may_change_something() -> None:
    judge = Judge(Freeze, reason="release day", allowed=["ada"])
    assert judge.before(Request("task_create", {"title": "x"})).is_denied
    assert judge.before(Request("task_create", {"actor": "bob"})).is_denied
    assert judge.before(Request("task_create", {"actor": "ada"})).verdict == Pass()
    assert judge.before(Request("task_list", effect="read")).verdict == Pass()


def test_a_reason_is_wanted() -> None:
    with pytest.raises(BadSettings) as wrong:
        Judge(Freeze, reason=" ")
    assert [problem.key for problem in wrong.value.problems] == ["reason"]
