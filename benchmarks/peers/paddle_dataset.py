"""PaddlePaddle with its native reader (QueueDataset), which gives each thread a file of its own.

In the time: opening the files, reading, parsing, forward, backward, update, to the last update.
Not in it: imports, building the graph, initial parameters, evaluation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import paddle
from measure import Stopwatch, report
from paddle_network import Network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=Path, nargs="+", required=True, help="one file for each thread")
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    network = Network(arguments.seed)
    with Stopwatch() as watch:
        dataset = paddle.distributed.QueueDataset()
        dataset.init(
            batch_size=arguments.batch_size,
            thread_num=arguments.threads,
            use_var=network.inputs,
            pipe_command="cat",
        )
        dataset.set_filelist([str(path) for path in arguments.train])
        network.executor.train_from_dataset(network.main, dataset, thread=arguments.threads)
    report(
        arguments.samples,
        watch,
        auc=network.held_out_auc(arguments.test),
        versions={"paddlepaddle": paddle.__version__},
    )


if __name__ == "__main__":
    main()
