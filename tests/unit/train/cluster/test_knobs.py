"""Every knob of the communicator changes something that can be counted, with real servers."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.unit.train.cluster.servers import Servers, open_session, wire
from tests.unit.train.cluster.test_exchange import job

from clickmill import _core
from clickmill.config.cluster import Communicator
from clickmill.errors import WireError
from clickmill.train.cluster.workers import knobs_without_effect

BATCHES = 31
HELLO = 2
"""Frames of a connection before the first request."""


def knob(name: str, value: object) -> str:
    return f"runner.0.communicator.{name}={value}"


def counts_of(trainer) -> object:
    return trainer.workers[-1]._sender.counts


def test_with_the_defaults_a_step_is_one_frame(train):
    trainer = train("dataset.0.validation=null")
    assert len(trainer.sessions) == 1
    first_read = 1
    assert trainer.traffic()[2] == HELLO + first_read + BATCHES


def test_long_frames_go_through_memory_unless_told_otherwise(train):
    def regions() -> int:
        return Path("/proc/self/maps").read_text().count("/memfd:clickmill")

    found, traffic, shared = {}, {}, {}
    for choice in ("false", "true"):
        gc.collect()
        before = regions()
        trainer = train(f"runner.0.cluster.shared_memory={choice}", "hyper_parameters.fc_sizes=[256,64]")
        found[choice] = regions() - before
        traffic[choice] = trainer.traffic()
        shared[choice] = trainer.servers.total("bytes_shared")
        total = trainer.servers.total("bytes_sent") + trainer.servers.total("bytes_received")
        del trainer
    assert found["true"] > 0
    assert found["false"] <= 0, "those of runs before may go"
    assert shared["false"] == 0
    assert 0.5 * total < shared["true"] < total, "requests of a few bytes go through the socket"
    assert traffic["true"] == traffic["false"], "what a message weighs does not depend on its way"


def test_a_queue_sends_beside_the_trainer_and_loses_nothing(train):
    trainer = train(knob("send_queue_size", 4))
    counts = counts_of(trainer)
    assert len(trainer.sessions) == 2
    assert (counts.pushes, counts.frames) == (BATCHES, BATCHES)
    assert 1 <= counts.longest <= 4
    assert (trainer.summary["samples"], trainer.summary["batches"]) == (3050, BATCHES)


def test_merged_pushes_are_fewer_updates_and_the_same_batches(train):
    trainer = train(knob("send_queue_size", 8), knob("max_merge_var_num", 8), num_servers=2)
    counts = counts_of(trainer)
    assert counts.pushes == BATCHES
    assert counts.frames <= BATCHES
    assert trainer.workers[-1].step == counts.frames
    assert (trainer.summary["samples"], trainer.summary["batches"]) == (3050, BATCHES)


def test_dense_parameters_are_read_every_so_many_pushes(train):
    received = {}
    for pushes in (1, 5):
        trainer = train(knob("max_send_grad_num_before_recv", pushes), "hyper_parameters.fc_sizes=[256,64]")
        received[pushes] = trainer.traffic()[1]
        num_dense = sum(array.size for array in trainer._replicas.arrays)
    # After every push but the last, which asks for nothing.
    spared = (BATCHES - 1) - (BATCHES - 1) // 5
    assert received[1] - received[5] == pytest.approx(4 * num_dense * spared, rel=0.01)


def wire_threads() -> set[str]:
    """Those of this process; others, also of a session before, may end meanwhile."""
    found = set()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (thread / "comm").read_text().startswith("wire-"):
                found.add(thread.name)
    return found


@pytest.mark.parametrize(("size", "expected"), [(1, 0), (2, 1), (3, 2), (10, 2)])
def test_a_pool_has_as_many_threads_as_it_may_and_needs(start_servers, tmp_path, size, expected):
    servers: Servers = start_servers(3)
    gc.collect()
    before = wire_threads()
    session = open_session(servers.join(_job()), num_threads=size)

    def rows() -> int:
        ticket = session.locate_signs(0, np.arange(100, dtype=np.uint64))
        (lookup,) = session.step([], [ticket], False)[2][0]
        return lookup.num_rows

    # A thread has its name when it has begun. The one that asks is one of them.
    while len(wire_threads() - before) < expected:
        assert rows() == 100
    assert rows() == 100
    assert len(wire_threads() - before) == expected


def test_fake_rpc_sends_no_parameters_and_the_run_still_ends(train):
    trainer = train(knob("fake_rpc", "true"), "dataset.0.validation=null")
    sent, received, frames = trainer.traffic()
    assert frames == HELLO + 1, "the account of the unit"
    assert sent + received < 2000
    assert (trainer.summary["samples"], trainer.summary["batches"]) == (3050, BATCHES)
    worker = trainer.workers[-1]
    assert worker.step == BATCHES, "it has trained"
    dense = load_file(Path(trainer.summary["checkpoint"]) / "dense.safetensors")
    held = np.concatenate([dense[name].ravel() for name, _ in trainer._replicas.model.named_parameters()])
    own = np.concatenate(worker._dense)
    assert np.abs(held - own).max() > 0.01, "and the servers have not heard of it"


class Closing:
    """Listens, and closes every connection at once."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.mark.parametrize("retries", [0, 2])
def test_a_request_is_tried_again_as_often_as_it_may(retries):
    server = Closing()
    place = {"epoch": 1, "incarnation": 1, "servers": [server.address], "route": [0] * 1024, "num_dense": 0}
    session = _session(place, retries=retries)
    with pytest.raises(WireError):
        session.step([], [session.locate_signs(0, np.arange(3, dtype=np.uint64))])
    server.close()
    assert server.connections == 1 + retries


def test_a_server_that_says_nothing_is_given_up_after_the_deadline():
    """Without the deadline the test would wait for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        place = {"epoch": 1, "incarnation": 1, "servers": [address], "route": [0] * 1024, "num_dense": 0}
        session = _session(place, deadline_ms=150, retries=0)
        with pytest.raises(WireError, match=address.replace(".", r"\.")):
            session.step([], [session.locate_signs(0, np.arange(3, dtype=np.uint64))])


def test_strategies_that_pay_no_regard_to_a_knob_say_so(train, caplog):
    turned = Communicator(send_queue_size=4, max_merge_var_num=2, fake_rpc=True)
    assert knobs_without_effect("async", turned) == []
    assert knobs_without_effect("half_async", turned) == ["max_merge_var_num", "send_queue_size"]
    assert knobs_without_effect("sync", turned) == ["fake_rpc", "max_merge_var_num", "send_queue_size"]
    assert knobs_without_effect("sync", Communicator()) == []
    with caplog.at_level(logging.WARNING, logger="clickmill.train"):
        trainer = train("runner.0.distribute_strategy=half_async", knob("send_queue_size", 4))
    assert "strategy=half_async knobs=send_queue_size" in caplog.text
    assert len(trainer.sessions) == 1


def test_flags_of_a_process_turn_its_own_knobs(train, monkeypatch):
    monkeypatch.setenv("FLAGS_communicator_send_queue_size", "3")
    trainer = train()
    assert counts_of(trainer).pushes == BATCHES


def _session(place: dict, **changes: object) -> _core.Session:
    return _core.Session(json.dumps(wire(**changes)), json.dumps(place))


def _job() -> dict:
    return {**job(1), "strategy": "async"}
