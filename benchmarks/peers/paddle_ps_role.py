"""One process of PaddlePaddle's parameter server, a server or a trainer; `paddle_ps.py` starts it.

What makes it fast, and keeps the AUC, was found in its source and by trial:
- The client adds up to 12 gradients before it pushes, which loses AUC (0.70 with two threads); flags that no
  environment variable sets make it push every batch.
- A thread of each trainer pulls the dense parameters right after a batch, mostly before the push of that
  batch has been applied, and not before the slowest thread has done one (0.745 with two threads); pulling
  every few milliseconds instead brings the AUC back.
- A table has 1000 shards, and every pull and push makes a task for each of them; 8 take a fifth less CPU.
- geo exchanges before its k steps are over when a trainer has had no batch for 50 ms, on two cores nearly
  always; with more patience it does so every k steps, for a quarter less CPU. With two trainers on a log this
  short that costs AUC (0.741 against 0.749 to 0.761): they learn for too long without each other.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import paddle
from paddle.base import trainer_factory
from paddle.base.device_worker import DownpourLite
from paddle.distributed import fleet
from paddle.distributed.ps.utils.public import get_the_one_recv_context
from paddle_network import Network
from processes import end_with

EACH_BATCH = {
    "pserver_push_dense_merge_limit": 0,
    "pserver_push_sparse_merge_limit": 0,
    "pserver_async_push_dense_interval_ms": 1,
    "pserver_async_push_sparse_interval_ms": 1,
}
TABLE = "SparseFeatFactors"
TABLE_CONFIG = {
    f"table_parameters.{TABLE}.table_class": "MemorySparseTable",
    f"table_parameters.{TABLE}.shard_num": 8,
}
SETTLED = 1e-4
# Longer than an exchange in which there is nothing to send.
SETTLE_INTERVAL_S = 2.5


class ServedNetwork(Network):
    """The network with its parameters on servers: always (async), or every k steps (geo)."""

    def __init__(self, seed: int, k_steps: int) -> None:
        paddle.enable_static()
        fleet.init(fleet.PaddleCloudRoleMaker())
        strategy = fleet.DistributedStrategy()
        strategy.a_sync = True
        strategy.a_sync_configs = {"k_steps": k_steps}
        strategy.sparse_table_configs = {TABLE: TABLE_CONFIG}
        self.is_geo = k_steps > 0
        self._declare(seed)
        with paddle.static.program_guard(self.main, self.startup):
            fleet.distributed_optimizer(self.optimizer(), strategy).minimize(self.loss)
            # Fleet has put programs of its own in the place of both.
            self.startup = paddle.static.default_startup_program()
        self.main = self.loss.block.program

    def serve(self) -> None:
        fleet.init_server()
        fleet.run_server()

    def join(self) -> None:
        self.executor.run(self.startup)
        fleet.init_worker()

    def train(self, files: list[str], threads: int, batch_size: int) -> None:
        dataset = paddle.distributed.QueueDataset()
        dataset.init(batch_size=batch_size, thread_num=threads, use_var=self.inputs, pipe_command="cat")
        dataset.set_filelist(files)
        self.executor.train_from_dataset(self.main, dataset, thread=threads)

    def evaluate(self, path: Path, deadline_s: float) -> float:
        if self.is_geo:
            self._settle(deadline_s)
        else:
            # Rows come from the servers, as in training; what pushes gradients has to go.
            self.test = self.main._prune([self.main.global_block().var(self.score.name)])
            runtime = fleet.fleet._runtime_handle
            dense = get_the_one_recv_context(runtime.context)
            runtime._pull_all_dense(runtime.scopes, runtime._send_ctx, dense)
        return self.held_out_auc(path)

    def _settle(self, deadline_s: float) -> None:
        """Waits for the exchanges of geo, which go on in the background, to bring nothing new.

        Before that the parameters here lack what the other trainers have learnt since the last exchange.
        """
        scope = paddle.static.global_scope()
        weights = [
            scope.find_var(each.name).get_tensor()
            for each in self.main.all_parameters()
            if each.name != TABLE
        ]

        def copies() -> list[Any]:
            return [weight.__array__().copy() for weight in weights]

        deadline, before = time.monotonic() + deadline_s, copies()
        while time.monotonic() < deadline:
            time.sleep(SETTLE_INTERVAL_S)
            now = copies()
            if max(abs(new - old).max() for new, old in zip(now, before, strict=True)) < SETTLED:
                return
            before = now
        sys.exit("error: the parameters did not settle in time")


def push_each_batch() -> None:
    library = ctypes.CDLL(paddle.base.libpaddle.__file__)
    for name, value in EACH_BATCH.items():
        flag = f"FLAGS_{name}"
        symbol = f"_ZN6paddle11distributed12paddle_flags{len(flag)}{flag}E"
        ctypes.c_int32.in_dll(library, symbol).value = value


def pull_dense_every(interval_ms: int) -> None:
    class SteadyDownpour(DownpourLite):  # type: ignore[misc]
        def _gen_worker_desc(self, trainer_desc: Any) -> None:
            super()._gen_worker_desc(trainer_desc)
            # Batches of the slowest thread between two pulls; with none of them, time alone counts.
            trainer_desc.pull_dense_param.threshold = 0
            trainer_desc.pull_dense_param.sleep_time_ms = interval_ms

    # Programs name the class of their workers; it is looked up there.
    trainer_factory.DownpourLite = SteadyDownpour


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, required=True, help="descriptor of the pipe to the starter")
    parser.add_argument("--starter", type=int, required=True, help="id of its process")
    parser.add_argument("--train", nargs="+", required=True, help="files of this trainer")
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--k-steps", type=int, required=True, help="of geo; 0: async")
    parser.add_argument("--pull-interval-ms", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--deadline-s", type=float, required=True)
    options = parser.parse_args()
    end_with(options.starter)
    events = os.fdopen(options.events, "w")

    def say(**event: Any) -> None:
        print(json.dumps(event), file=events, flush=True)

    push_each_batch()
    pull_dense_every(options.pull_interval_ms)
    network = ServedNetwork(options.seed, options.k_steps)
    if fleet.is_server():
        network.serve()
        return
    network.join()
    say(version=paddle.__version__)
    for word in map(str.strip, sys.stdin):
        if word == "train":
            network.train(options.train, options.threads, options.batch_size)
            say(trained=True)
        else:
            say(auc=network.evaluate(options.test, options.deadline_s))


if __name__ == "__main__":
    main()
