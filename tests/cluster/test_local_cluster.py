"""`class: local_cluster_train`: one command, all processes, none left behind."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.cluster.launched import LAUNCHER, Launched, Stage, launched, wait_until, write_config

TRAIN = (*LAUNCHER, "train", "-m", "config.yaml")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    folder = tmp_path / "stage"
    folder.mkdir()
    stage = Stage(folder)
    stage.write("workers", 2)
    write_config(tmp_path, "local_cluster_train")
    return stage


@pytest.fixture
def held(stage: Stage) -> Stage:
    """Trainers wait."""
    stage.write("hold")
    return stage


def is_up(stage: Stage) -> bool:
    return len(stage.alive("pserver")) == 2 and len(stage.alive("trainer")) == 2


def nobody_is_left(stage: Stage) -> bool:
    return not stage.alive("pserver") and not stage.alive("trainer")


def fresh(stage: Stage, before: list[int]) -> bool:
    now = stage.alive("trainer")
    return len(now) == 2 and now != before


def test_one_command_runs_a_whole_cluster_and_gives_its_summary(tmp_path, stage):
    with launched(tmp_path, stage, *TRAIN, "--json", "--set", "runner.0.epochs=2") as run:
        assert run.wait() == 0, run.words
    assert json.loads(run.output) == [{"run": "config.yaml", "workers": 2}]
    assert nobody_is_left(stage)
    lines = run.words.splitlines()
    for name in ("pserver 0", "pserver 1", "trainer 0", "trainer 1"):
        own = [line.removeprefix(f"{name} | ") for line in lines if line.startswith(f"{name} | ")]
        log = (tmp_path / "run/logs" / f"{name.replace(' ', '-')}.log").read_text().splitlines()
        assert own
        assert [line for line in log if not line.startswith(("{", "["))] == own
    assert "\x1b" not in run.words


def test_roles_are_told_all_they_need_and_no_secret_is_an_argument(tmp_path, held):
    with launched(tmp_path, held, *TRAIN, "--quiet", "--set", "runner.0.epochs=2") as run:
        run.wait_until(lambda: is_up(held))
        trainers, servers = held.arguments("trainer"), held.arguments("pserver")
        token_file = tmp_path / "run/token"
        token = token_file.read_text().strip()
        assert token_file.stat().st_mode & 0o777 == 0o600
        for pid in (*held.alive("pserver"), *held.alive("trainer")):
            assert token not in Path(f"/proc/{pid}/cmdline").read_text()
        first = next(each for each in servers if each["index"] == "0")
        second = next(each for each in servers if each["index"] == "1")
        assert first["coordinator"] is None
        assert second["coordinator"] == trainers[0]["coordinator"] == trainers[1]["coordinator"]
        assert {each["token_file"] for each in (*trainers, *servers)} == {"run/token"}
        assert trainers[0]["set"] == ["runner.0.epochs=2", 'mode="train"']
        assert all(each["quiet"] for each in (*trainers, *servers))
        held.release()
        assert run.wait() == 0, run.words
    assert not token_file.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_trainers_and_then_servers(tmp_path, held, number, code):
    with launched(tmp_path, held, *TRAIN) as run:
        run.wait_until(lambda: is_up(held))
        run.kill(number)
        assert run.wait() == code, run.words
    assert nobody_is_left(held)
    # The stand-in at number 1 ends with its coordinator, maybe before it is asked.
    assert held.ended()[:3] == ["trainer", "trainer", "pserver"]
    assert "Traceback" not in run.words


def test_a_second_signal_kills_who_does_not_listen(tmp_path, held):
    held.write("deaf", "trainer")
    with launched(tmp_path, held, *TRAIN) as run:
        run.wait_until(lambda: is_up(held))
        run.kill(signal.SIGINT)
        run.wait_until(lambda: len(held.ended()) == 2)
        run.kill(signal.SIGINT)
        assert run.wait() == 130, run.words
    assert nobody_is_left(held)


def test_no_process_outlives_a_killed_supervisor(tmp_path, held):
    with launched(tmp_path, held, *TRAIN) as run:
        run.wait_until(lambda: is_up(held))
        run.kill()
        run.wait()
        wait_until(lambda: nobody_is_left(held))


def test_a_trainer_that_is_killed_is_started_again(tmp_path, held):
    with launched(tmp_path, held, *TRAIN) as run:
        run.wait_until(lambda: is_up(held))
        before = held.alive("trainer")
        os.kill(before[0], signal.SIGKILL)
        run.wait_until(lambda: fresh(held, before))
        held.release()
        assert run.wait() == 0, run.words
    assert "was killed by SIGKILL; started again, 1 of 2 times" in run.words


def test_a_server_that_is_killed_comes_back_where_it_was(tmp_path, held):
    with launched(tmp_path, held, *TRAIN) as run:
        run.wait_until(lambda: is_up(held))
        before, asked = held.alive("pserver"), held.arguments("trainer")[0]["coordinator"]
        victims = [
            pid for pid in before if json.loads((held.folder / f"pserver.{pid}").read_text())["index"] == "0"
        ]
        os.kill(victims[0], signal.SIGKILL)
        run.wait_until(lambda: run.words.count(f"listening at {asked}") == 2)
        held.release()
        assert run.wait() == 0, run.words


def test_what_fails_for_good_ends_the_run_with_its_words_and_its_code(tmp_path, stage):
    error = {"kind": "DataError", "message": "`a.tsv:7`: no label", "hint": "look at line 7"}
    stage.write("fail", {"exit": 3, "error": error})
    with launched(tmp_path, stage, *TRAIN) as run:
        assert run.wait() == 3, run.words
    assert "error: trainer " in run.words
    assert ": `a.tsv:7`: no label\nhint: look at line 7; its log is `run/logs/trainer-" in run.words
    assert " | error: `a.tsv:7`: no label\n" in run.words
    assert "started again" not in run.words
    assert nobody_is_left(stage)


@pytest.mark.parametrize("key", ["data_path", "validation.data_path"])
def test_samples_that_are_not_there_are_told_of_before_anything_is_started(tmp_path, stage, key):
    snapshots = tmp_path / "run/snapshots"
    snapshots.mkdir(parents=True)
    with launched(tmp_path, stage, *TRAIN, "--set", f"dataset.0.{key}=./absent.tsv") as run:
        assert run.wait() == 3
    assert f"error: `{tmp_path}/absent.tsv`: no such file, folder or pattern" in run.words
    assert stage.arguments("pserver") == stage.arguments("trainer") == []
    assert snapshots.exists(), "an earlier run can still go on"


def test_a_failure_that_may_pass_is_tried_again_only_so_often(tmp_path, stage):
    stage.write("fail", {"exit": 1, "error": {"kind": "StateError", "message": "no", "hint": None}})
    with launched(tmp_path, stage, *TRAIN, "--json") as run:
        assert run.wait() == 1, run.words
    assert run.words.count("2 of 2 times") >= 1
    assert "3 of 2" not in run.words
    told = json.loads(run.words.splitlines()[-1])
    assert told["error"]["kind"] == "StateError"
    assert nobody_is_left(stage)


def test_a_second_cluster_in_the_same_folder_is_refused(tmp_path, held):
    with launched(tmp_path, held, *TRAIN) as run:
        run.wait_until(lambda: is_up(held))
        other = tmp_path / "other"
        other.mkdir()
        write_config(other, "local_cluster_train")
        folder = f"runner.0.output_path={tmp_path / 'run'}"
        with launched(other, held, *TRAIN, "--set", folder) as second:
            assert second.wait() == 1
            assert "is in use by another run" in second.words
        assert is_up(held)


def test_snapshots_of_an_earlier_run_are_kept_only_to_go_on_from_them(tmp_path, stage):
    snapshot = tmp_path / "run/snapshots/1/part"
    for resume in (True, False):
        snapshot.parent.mkdir(parents=True, exist_ok=True)
        snapshot.write_text("rows")
        with launched(tmp_path, stage, *TRAIN, *(["--resume"] if resume else [])) as run:
            assert run.wait() == 0, run.words
        assert snapshot.exists() == resume


def test_workers_of_a_collective_run_get_ranks(tmp_path, held):
    with launched(tmp_path, held, *TRAIN, "--set", "runner.0.fleet_mode=collective") as run:
        run.wait_until(lambda: len(held.alive("trainer")) == 2)
        found = [each["environ"] for each in held.arguments("trainer")]
        assert sorted(each["RANK"] for each in found) == ["0", "1"]
        assert {each["WORLD_SIZE"] for each in found} == {"2"}
        assert len({each["MASTER_PORT"] for each in found}) == 1
        held.release()
        assert run.wait() == 0, run.words


@pytest.mark.parametrize("has_colour", [True, False])
def test_a_terminal_shows_colours_and_one_bar(tmp_path, held, has_colour):
    terminal, other = os.openpty()
    shown = bytearray()
    environ = {"TERM": "xterm-256color", "COLUMNS": "150", **({} if has_colour else {"NO_COLOR": "1"})}
    with on_terminal(tmp_path, held, other, environ) as run:
        os.close(other)
        held.release()
        while chunk := read(terminal):
            shown += chunk
        assert run.wait() == 0
    text = shown.decode()
    assert ("\x1b[32mtrainer 0" in text) == has_colour
    assert "trainer 0" in text
    assert "pass 1/1" in text
    assert "loss 0.5" in text


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""  # the other side is closed


def on_terminal(folder: Path, stage: Stage, terminal: int, environ: dict[str, str]):
    import contextlib
    import subprocess

    @contextlib.contextmanager
    def start():
        plain = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
        process = subprocess.Popen(
            TRAIN,
            cwd=folder,
            env={**plain, "STAND_IN": str(stage.folder), **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=terminal,
        )
        try:
            yield Launched(process, folder / "config.yaml", folder / "config.yaml")
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    return start()
