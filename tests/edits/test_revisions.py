"""The tree of revisions: ids, undo, redo, branches, and what is kept on disk."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.edits.kinds import (
    Edit,
    FixDimension,
    InsertNode,
    RenameNode,
    ScaleTensor,
    SetMetadata,
    from_json,
    read_script,
    script,
    to_json,
)
from core.edits.revisions import History
from core.errors import BrokenFile, NotFound, UsageError

ROOT = "ab" * 32
A, B, C = RenameNode("a", "b"), SetMetadata("k", "v"), ScaleTensor("w", 2.0)


def test_an_id_is_the_hash_of_parent_and_edit() -> None:
    text = '{"edit":"rename_node","node":"a","to":"b"}'
    expected = hashlib.sha256(f"{ROOT}\n{text}".encode()).hexdigest()
    assert History.of(ROOT).committed(A).head == expected


def test_undo_redo_and_a_branch() -> None:
    history = History.of(ROOT).committed(A).committed(B)
    second = history.head
    back = history.undo()
    assert back.edits() == [A]
    assert back.redo().head == second
    branch = back.committed(C)
    assert branch.edits() == [A, C]
    assert branch.edits(second) == [A, B]
    assert {item.id for item in branch.children(back.head)} == {second, branch.head}
    assert branch.at(second[:8]).edits() == [A, B]
    assert branch.named(second, "first try").at("first try").head == second
    with pytest.raises(UsageError, match="nothing to redo"):
        branch.redo()
    with pytest.raises(UsageError, match="nothing to undo"):
        History.of(ROOT).undo()
    with pytest.raises(NotFound):
        branch.at("ffffffff")


def test_whole_numbers_where_fractions_may_stand_are_the_same_edit() -> None:
    whole, fraction = (History.of(ROOT).committed(ScaleTensor("w", factor)) for factor in (2, 2.0))
    assert whole.head == fraction.head
    assert History.load(whole.dump()) == whole


def test_what_was_saved_and_what_was_recovered() -> None:
    history = History.of(ROOT)
    assert not history.dirty
    history = history.committed(A)
    assert history.dirty
    history = history.written()
    assert not history.dirty
    assert history.undo().dirty
    assert History.load(history.dump()).recovered().dirty


@pytest.mark.parametrize(
    "harm",
    [
        lambda text: text[:-20],
        lambda text: text.replace('"to": "b"', '"to": "c"'),
        lambda text: text.replace('"version": 1', '"version": 2'),
        lambda text: text.replace(ROOT, "", 1),
        lambda text: "[" * 100_000,
        lambda text: "[1, 2]",
        lambda text: json.dumps({**json.loads(text), "head": "0" * 64}),
    ],
)
def test_a_damaged_history_is_told_from_a_good_one(harm: object) -> None:
    text = History.of(ROOT).committed(A).committed(B).dump()
    assert History.load(text).edits() == [A, B]
    with pytest.raises(BrokenFile):
        History.load(harm(text))  # type: ignore[operator]


EDITS: st.SearchStrategy[Edit] = st.sampled_from(
    [A, B, C, InsertNode("x", "Cast", {"to": 10}), FixDimension("n", 3), RenameNode("a", "c")]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(EDITS, st.sampled_from(["undo", "redo"])), max_size=25))
def test_any_order_of_edits_undos_and_redos(steps: list[Edit | str]) -> None:
    history, done, undone = History.of(ROOT), list[Edit](), list[Edit]()
    for step in steps:
        if step == "undo":
            if not done:
                continue
            history = history.undo()
            undone.append(done.pop())
        elif step == "redo":
            if not undone:
                continue
            history = history.redo()
            done.append(undone.pop())
        elif not isinstance(step, str):
            history = history.committed(step)
            done.append(step)
            undone.clear()
        assert history.edits() == done
    replayed = History.of(ROOT)
    for edit in read_script(history.script()):
        replayed = replayed.committed(edit)
    assert replayed.head == history.head
    assert History.load(history.dump()) == history


def test_a_script_says_what_is_wrong_in_it() -> None:
    assert read_script(script([A, B, C])) == [A, B, C]
    assert to_json(A) == {"edit": "rename_node", "node": "a", "to": "b"}
    for entry, words in (
        ({"edit": "rename_node", "node": "a"}, "lacks 'to'"),
        ({"edit": "rename_nod", "node": "a", "to": "b"}, "no edit 'rename_nod'"),
        ({"edit": "rename_node", "node": "a", "to": 3}, "to of rename_node is 3, expected str"),
        ({"edit": "rename_node", "node": "a", "to": "b", "now": 1}, "no field 'now'"),
        ({"edit": "fix_dimension", "symbol": "n", "size": True}, "expected int"),
        ([], 'has no "edit"'),
    ):
        with pytest.raises(UsageError, match=words):
            from_json(entry)
    for text, words in (("{", "no JSON"), ('{"version": 2, "edits": []}', "version"), ("[" * 100_000, "no JSON")):
        with pytest.raises(UsageError, match=words):
            read_script(text)
