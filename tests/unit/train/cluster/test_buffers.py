from __future__ import annotations

from typing import Any

import torch

from clickmill.train.cluster.buffers import encode_buffers, load_buffers
from clickmill.train.replica import Replicas


def replicas(mean: float, count: int) -> Replicas:
    model: Any = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    model[1].running_mean.fill_(mean)
    model[1].num_batches_tracked.fill_(count)
    return Replicas(model, 2)


def test_a_checkpoint_gets_the_mean_of_all_trainers_in_every_worker() -> None:
    told = [encode_buffers(replicas(1.0, 10)), encode_buffers(replicas(3.0, 30))]
    own = replicas(0.0, 0)
    load_buffers(own, [state for state in told if state is not None])
    for replica in own.all:
        assert replica.model[1].running_mean.tolist() == [2.0, 2.0, 2.0]
        assert replica.model[1].num_batches_tracked.item() == 30


def test_a_net_without_buffers_has_nothing_to_tell() -> None:
    model: Any = torch.nn.Linear(2, 2)
    assert encode_buffers(Replicas(model, 1)) is None


def test_what_another_net_told_is_passed_over() -> None:
    own = replicas(5.0, 7)
    load_buffers(own, ['{"elsewhere": "AAAA"}'])
    assert own.model[1].running_mean.tolist() == [5.0, 5.0, 5.0]
