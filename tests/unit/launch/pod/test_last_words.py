from __future__ import annotations

import json
from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.launch.pod.last_words import error_words, last_words, summary_words, write_last_words

NOWHERE = Path("/nowhere")


@pytest.mark.parametrize(
    ("code", "lines", "words"),
    [
        (
            2,
            ["some line", "error: 2 problems", "  line 3: wrong", "  line 4: too", "hint: read it"],
            "error: trainer 0: 2 problems\n  line 3: wrong\n  line 4: too\nhint: read it",
        ),
        (
            1,
            ["Traceback:", "  File x", "KeyError: 'a'"],
            "error: trainer 0 ended with exit code 1: KeyError: 'a'",
        ),
        (137, ["2026-11-18 - INFO - at work"], "error: trainer 0 was killed by SIGKILL"),
        (139, [], "error: trainer 0 was killed by SIGSEGV"),
    ],
)
def test_a_failure_is_told_in_the_words_of_the_role(code: int, lines: list[str], words: str):
    assert last_words("trainer 0", code, lines, cgroup=NOWHERE) == words


def test_the_error_that_a_role_has_left_comes_first():
    told = {"kind": "DataError", "message": "no samples", "hint": "give it some"}
    words = last_words("trainer 0", 3, ["error: on stderr"], told=told, cgroup=NOWHERE)
    assert words == "error: trainer 0: no samples\nhint: give it some"


@pytest.mark.parametrize(
    ("counter", "limit"),
    [("memory.events", "memory.max"), ("memory/memory.oom_control", "memory/memory.limit_in_bytes")],
)
def test_want_of_memory_is_named(tmp_path: Path, counter: str, limit: str):
    (tmp_path / counter).parent.mkdir(exist_ok=True)
    (tmp_path / counter).write_text("low 0\noom_kill 1\n")
    (tmp_path / limit).write_text("536870912\n")
    words = last_words("trainer 0", 137, [], cgroup=tmp_path)
    assert words == "error: trainer 0 ran out of memory and was killed; its limit is 512 MiB"


def test_words_are_cut_to_what_kubernetes_keeps(tmp_path: Path):
    file = tmp_path / "log"
    write_last_words("é" * 5000, {"CLICKMILL_TERMINATION_LOG": str(file)})
    assert file.read_text() == "é" * 2048


def test_where_there_is_no_container_nothing_is_written():
    write_last_words("error: x", {})


def test_an_error_comes_with_its_hint():
    assert error_words(ConfigError("wrong", hint="mend it")) == "error: wrong\nhint: mend it"


def test_a_run_that_ended_well_is_summed_up(tmp_path: Path):
    events = [
        {
            "event": "pass_end",
            "pass_number": 0,
            "step": 5,
            "samples": 50,
            "train": {"auc": 0.6},
            "validation": {},
        },
        {
            "event": "pass_end",
            "pass_number": 1,
            "step": 9,
            "samples": 90,
            "train": {},
            "validation": {"auc": 0.7},
        },
        {"event": "saved"},
    ]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert json.loads(summary_words(tmp_path)) == {"passes": 2, "batches": 9, "samples": 140, "auc": 0.7}
    assert summary_words(tmp_path / "none") == ""
