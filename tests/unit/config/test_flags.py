"""Knobs of the communicator from the environment."""

from __future__ import annotations

import pytest

from clickmill.config.cluster import Communicator
from clickmill.config.flags import with_flags
from clickmill.errors import ConfigError


def test_flags_take_the_place_of_what_the_file_says():
    said = {
        "FLAGS_communicator_send_queue_size": "20",
        "FLAGS_communicator_min_send_grad_num_before_recv": "5",
        "FLAGS_communicator_is_sgd_optimizer": "0",
        "FLAGS_communicator_fake_rpc": "true",
        "FLAGS_rpc_deadline": "9000",
        "FLAGS_rpc_retry_times": "0",
    }
    file = Communicator(send_queue_size=2, thread_pool_size=3)
    assert with_flags(file, said) == Communicator(
        send_queue_size=20,
        max_send_grad_num_before_recv=5,
        is_sgd_optimizer=False,
        fake_rpc=True,
        thread_pool_size=3,
        rpc_deadline=9000,
        rpc_retry_times=0,
    )


def test_other_variables_are_passed_over():
    others = {"FLAGS_selected_gpus": "0", "FLAGS_communicator_send_wait_times": "5", "send_queue_size": "7"}
    file = Communicator(send_queue_size=2)
    assert with_flags(file, others) is file


@pytest.mark.parametrize("value", ["0", "-1", "many", ""])
def test_a_value_that_is_not_allowed_names_the_variable(value):
    with pytest.raises(ConfigError, match="FLAGS_communicator_send_queue_size"):
        with_flags(Communicator(), {"FLAGS_communicator_send_queue_size": value})
