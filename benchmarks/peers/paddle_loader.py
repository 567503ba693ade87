"""PaddlePaddle with its Python DataLoader: worker processes parse whole batches, the main one trains.

In the time: starting the workers, opening the files, reading, parsing, feeding, forward, backward, update.
Not in it: imports, building the graph, initial parameters, evaluation.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import paddle
from measure import Stopwatch, report
from multislot import batches
from paddle_network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np


class Log(paddle.io.IterableDataset):
    """Batches of the files; with several workers, each reads its share of the files."""

    def __init__(self, paths: list[Path], batch_size: int) -> None:
        super().__init__()
        self.paths = paths
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[list[np.ndarray]]:
        worker = paddle.io.get_worker_info()
        paths = self.paths if worker is None else self.paths[worker.id :: worker.num_workers]
        for path in paths:
            for label, dense, ids in batches(path, self.batch_size):
                yield [label.astype("int64")[:, None], dense, ids]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--train", type=Path, nargs="+", required=True, help="one file or more for each worker"
    )
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    network = Network(arguments.seed, joined=True)
    with Stopwatch() as watch:
        loader = paddle.io.DataLoader(
            Log(arguments.train, arguments.batch_size),
            feed_list=network.inputs,
            places=[paddle.CPUPlace()],
            batch_size=None,
            num_workers=arguments.workers,
            return_list=False,
        )
        for feed in loader:
            network.executor.run(network.main, feed=feed)
    report(
        arguments.samples,
        watch,
        auc=network.held_out_auc(arguments.test),
        versions={"paddlepaddle": paddle.__version__},
    )


if __name__ == "__main__":
    main()
