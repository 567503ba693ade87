from __future__ import annotations

import pytest

from clickmill.cli import exits
from clickmill.errors import ConfigError, GaveUpError, WireError
from clickmill.launch.pod import verdict
from clickmill.launch.pod.tries import Tries, read_tries
from clickmill.launch.pod.verdict import pod_exit_code

FIRST, LAST, UNCOUNTED = Tries(0, 5), Tries(5, 5), Tries()


@pytest.mark.parametrize(
    ("found", "kind", "tries", "told"),
    [
        (0, None, LAST, 0),
        (1, "WireError", FIRST, 1),
        (1, "WireError", UNCOUNTED, 1),
        (1, "WireError", LAST, 5),
        (137, None, FIRST, 137),
        (137, None, LAST, 5),
        (2, "ConfigError", FIRST, 2),
        (3, "DataError", LAST, 3),
        (4, "FormatError", FIRST, 4),
        (1, "RunFailedError", FIRST, 5),
        (1, "DivergedError", UNCOUNTED, 5),
        (1, "MissingExtra", FIRST, 5),
        (143, None, FIRST, 1),
        (130, None, FIRST, 1),
    ],
)
def test_a_role_that_ended_by_itself(found: int, kind: str | None, tries: Tries, told: int):
    code = pod_exit_code(found, kind=kind, is_asked=False, is_wanted_elsewhere=False, tries=tries)
    assert code == told


@pytest.mark.parametrize("tries", [FIRST, LAST])
@pytest.mark.parametrize(
    ("found", "is_wanted_elsewhere", "told"),
    [(143, False, 143), (137, False, 143), (1, False, 143), (143, True, 1), (0, False, 0), (2, False, 2)],
)
def test_a_pod_that_was_told_to_end(found: int, is_wanted_elsewhere: bool, told: int, tries: Tries):
    code = pod_exit_code(
        found, kind=None, is_asked=True, is_wanted_elsewhere=is_wanted_elsewhere, tries=tries
    )
    assert code == told


def test_codes_are_those_of_every_other_command():
    assert (verdict.FAILURE, verdict.GAVE_UP, verdict.TERMINATED) == (
        exits.FAILURE,
        exits.GAVE_UP,
        exits.TERMINATED,
    )
    assert {exits.USAGE, exits.DATA, exits.DAMAGED, exits.GAVE_UP} == verdict.FINAL_CODES


def test_tries_are_counted_by_whoever_starts_pods_again():
    assert read_tries({}) == UNCOUNTED
    assert read_tries({"CLICKMILL_RESTARTS": "", "CLICKMILL_MAX_RESTARTS": "5"}) == Tries(None, 5)
    assert read_tries({"CLICKMILL_RESTARTS": "5", "CLICKMILL_MAX_RESTARTS": "5"}) == LAST
    with pytest.raises(ConfigError, match="CLICKMILL_RESTARTS"):
        read_tries({"CLICKMILL_RESTARTS": "many"})


def test_a_pod_too_many_gives_up_at_once():
    for tries in (UNCOUNTED, FIRST, LAST):
        tries.check()
    with pytest.raises(GaveUpError, match="started again 6 times"):
        Tries(6, 5).check()


def test_the_last_try_says_that_it_is():
    error = LAST.given_up(WireError("nobody listens", hint="start it"))
    assert str(error) == "nobody listens; this was the last of 5 restarts"
    assert error.hint == "start it"
