"""Every wait ends: with what was waited for, or with an error that names it. No process is left behind."""

from __future__ import annotations

import signal

import pytest

from tests.cluster.fleet import Fleet, fleet

WAIT_S = 3.0


def assert_all_end(own: Fleet, words: str, *, but: int) -> None:
    """All processes but the server that was killed end with an error that names it."""
    rest = [server for index, server in enumerate(own.servers) if index != but]
    for each in (*rest, *own.members):
        assert each.wait() == 1, own.words
        assert words in each.words, own.words
        assert "Traceback" not in each.words


@pytest.mark.parametrize("strategy", ["sync", "async"])
def test_a_server_that_never_comes_back_is_named_by_all_who_waited_for_it(cluster_place, strategy):
    options = (f"runner.0.distribute_strategy={strategy}", "runner.0.epochs=50")
    with fleet(cluster_place, 3, 2, *options, wait_s=WAIT_S) as own:
        assert own.wait_for_samples(1000)
        own.servers[1].kill()
        assert_all_end(own, f"gave up waiting for pserver 1 ({own.addresses[1]})", but=1)


@pytest.mark.parametrize("strategy", ["sync", "async"])
def test_a_coordinator_that_never_comes_back_is_named_by_all_who_waited_for_it(cluster_place, strategy):
    options = (f"runner.0.distribute_strategy={strategy}", "runner.0.epochs=50")
    with fleet(cluster_place, 2, 2, *options, wait_s=WAIT_S) as own:
        assert own.wait_for_samples(1000)
        own.servers[0].kill()
        assert_all_end(own, own.addresses[0], but=0)


def test_servers_without_trainers_end(cluster_place):
    with fleet(cluster_place, 2, 1, "runner.0.epochs=50", wait_s=WAIT_S, gather_s=0.01) as own:
        assert own.wait_for_samples(1000)
        own.kill(own.members[0])
        for server in own.servers:
            assert server.wait() == 1, own.words
            assert "no trainer was there for 3 s" in server.words


def test_a_server_that_is_stopped_for_long_is_given_up_and_taken_back(cluster_place):
    with fleet(cluster_place, 2, 2, "runner.0.epochs=3", dead_after_s=2) as own:
        assert own.wait_for_samples(1000)
        own.servers[1].kill(signal.SIGSTOP)
        lost = own.wait_until(lambda status: not all(each["is_live"] for each in status["servers"]))
        assert lost is not None, own.words
        own.servers[1].kill(signal.SIGCONT)
        own.assert_exact(own.finish(), passes=3)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_each_role_in_order(cluster_place, number, code):
    with fleet(cluster_place, 2, 2, "runner.0.epochs=4") as own:
        assert own.wait_for_samples(1000)
        own.members[0].kill(number)
        assert own.members[0].wait() == code, own.words
        # It has left, and was not missed until a deadline.
        assert own.wait_for_samples(4000)
        assert own.servers[0].wait_until(lambda: "reason=it has left" in own.servers[0].words), own.words
        own.servers[1].kill(number)
        assert own.servers[1].wait() == code, own.words
        own.start_server(1)
        own.members.pop(0)
        summary = own.finish()
        own.assert_exact(summary, passes=4)
        assert "Traceback" not in own.words


def test_a_trainer_that_waits_for_servers_of_a_run_that_is_over_ends_well(cluster_place, tmp_path):
    """As a pod that came when the others were leaving; the launcher above it knows, and says so by a file."""
    environment = {"CLICKMILL_END_FILE": str(tmp_path / "is_over")}
    with fleet(cluster_place, 1, 1, "runner.0.epochs=50", gather_s=0.01, environment=environment) as own:
        assert own.wait_for_samples(1000)
        own.servers[0].kill()
        (trainer,) = own.members
        assert trainer.wait_until(lambda: "trainer.rejoins" in trainer.words), own.words
        (tmp_path / "is_over").touch()
        assert trainer.wait() == 0, own.words
        assert "trainer.too_late" in trainer.words
