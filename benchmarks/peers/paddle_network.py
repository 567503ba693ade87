"""CTR-DNN 400-400-400 as a static graph of PaddlePaddle 2.6, with the optimizer of the seeds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle
from measure import auc
from multislot import HASH_SIZE, NUM_DENSE, NUM_SPARSE, batches

if TYPE_CHECKING:
    from pathlib import Path

EMBEDDING_DIM = 10
LAYERS = (400, 400, 400)


class Network:
    """Programs and variables; `inputs` is in the order of the fields of a line.

    `joined` takes all ids as one [B, 26] input, which a Python reader can give and the native one cannot.
    """

    def __init__(self, seed: int, *, joined: bool = False) -> None:
        self._declare(seed, joined=joined)
        with paddle.static.program_guard(self.main, self.startup):
            self.optimizer().minimize(self.loss)
        self.executor.run(self.startup)

    @staticmethod
    def optimizer() -> paddle.optimizer.Optimizer:
        # Lazy mode updates the rows of a batch alone; without it each step would walk the whole table.
        return paddle.optimizer.Adam(learning_rate=1e-3, lazy_mode=True)

    def _declare(self, seed: int, *, joined: bool = False) -> None:
        """The forward graph up to loss and score, in `main`; and `test`, its copy."""
        paddle.enable_static()
        paddle.seed(seed)
        self.main = paddle.static.Program()
        self.startup = paddle.static.Program()
        self.executor = paddle.static.Executor(paddle.CPUPlace())
        with paddle.static.program_guard(self.main, self.startup):
            self.label = paddle.static.data("label", [None, 1], "int64")
            self.dense = paddle.static.data("dense", [None, NUM_DENSE], "float32")
            if joined:
                self.ids = [paddle.static.data("ids", [None, NUM_SPARSE], "int64")]
            else:
                self.ids = [
                    paddle.static.data(f"C{slot + 1}", [None, 1], "int64") for slot in range(NUM_SPARSE)
                ]
            logit = self._logit()
            self.loss = paddle.nn.functional.binary_cross_entropy_with_logits(
                logit, paddle.cast(self.label, "float32")
            )
            self.score = paddle.nn.functional.sigmoid(logit)
            self.test = self.main.clone(for_test=True)

    @property
    def inputs(self) -> list[Any]:
        return [self.label, self.dense, *self.ids]

    def _logit(self) -> Any:
        # One look-up for all slots is a little faster than 26 of them.
        ids = paddle.concat(self.ids, axis=1) if len(self.ids) > 1 else self.ids[0]
        rows = paddle.static.nn.embedding(
            ids,
            size=[HASH_SIZE, EMBEDDING_DIM],
            is_sparse=True,
            param_attr=paddle.ParamAttr(
                name="SparseFeatFactors", initializer=paddle.nn.initializer.Uniform(-0.01, 0.01)
            ),
        )
        hidden = paddle.concat([paddle.reshape(rows, [-1, NUM_SPARSE * EMBEDDING_DIM]), self.dense], axis=1)
        width = NUM_SPARSE * EMBEDDING_DIM + NUM_DENSE
        for size in LAYERS:
            hidden = paddle.static.nn.fc(
                hidden,
                size,
                activation="relu",
                weight_attr=paddle.ParamAttr(
                    initializer=paddle.nn.initializer.Normal(std=1 / math.sqrt(width))
                ),
            )
            width = size
        return paddle.static.nn.fc(
            hidden,
            1,
            weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Normal(std=1 / math.sqrt(width))),
        )

    def feed(self, label: np.ndarray, dense: np.ndarray, ids: np.ndarray) -> dict[str, np.ndarray]:
        width = NUM_SPARSE // len(self.ids)
        slots = {
            variable.name: np.ascontiguousarray(ids[:, slot * width : (slot + 1) * width])
            for slot, variable in enumerate(self.ids)
        }
        return {"label": label.astype(np.int64)[:, None], "dense": dense, **slots}

    def held_out_auc(self, path: Path) -> float:
        labels, scores = [], []
        for label, dense, ids in batches(path, 10_000):
            feed = self.feed(label, dense, ids)
            (score,) = self.executor.run(self.test, feed=feed, fetch_list=[self.score])
            labels.append(label)
            scores.append(score[:, 0])
        return auc(np.concatenate(labels), np.concatenate(scores))
