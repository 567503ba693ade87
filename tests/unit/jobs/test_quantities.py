from __future__ import annotations

from decimal import Decimal

import pytest

from clickmill.jobs.quantities import lacking, parse_amounts, parse_quantity, words


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", "0.5"), ("2", "2"), (3, "3"), ("1.5", "1.5"), ("4Gi", 4 << 30), ("100M", 10**8),
        ("1e3", 1000), ("1E", 10**18), ("128Ki", 131072), ("250u", "0.00025"), ("0", "0"),
    ],
)  # fmt: skip
def test_quantities_of_every_unit_are_read(text, value):
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "much", "Gi", "4 GiB", "--1"])
def test_what_is_no_quantity_is_told(text):
    with pytest.raises(ValueError, match="no quantity"):
        parse_quantity(text)


def test_what_lacks_is_told_resource_by_resource():
    wanted = parse_amounts({"cpu": "4", "memory": "3Gi", "nvidia.com/gpu": "1"})
    room = parse_amounts({"cpu": "2500m", "memory": "4Gi"})
    assert words(lacking(wanted, room)) == "1.5 cpu and 1 nvidia.com/gpu"
    assert words(wanted) == "4 cpu, 3.0 GiB of memory and 1 nvidia.com/gpu"
    assert lacking({"cpu": Decimal(1)}, room) == {}
