"""Schema of the Avazu contest's CSV: 24 columns with a header, in time order."""

from __future__ import annotations

from clickmill.schema.models import GroupSlot, LabelSlot, SchemaConfig, SparseSlot

CATEGORIES = (
    "C1",
    "banner_pos",
    "site_id",
    "site_domain",
    "site_category",
    "app_id",
    "app_domain",
    "app_category",
    "device_id",
    "device_ip",
    "device_model",
    "device_type",
    "device_conn_type",
    *(f"C{number}" for number in range(14, 22)),
)


def avazu_schema(*, hash_size: int | None = None) -> SchemaConfig:
    """All categories, and the hour of the day from `hour`, which is written YYMMDDHH.

    The date itself is left out: a model that has learnt dates knows nothing of tomorrow. The hour is made
    from the last two digits of the column: as a bag they do not tell 12 from 21,
    crossed with the last of them they do.
    """
    hours = (
        SparseSlot(
            name="hour_units", column="hour", separator="", max_length=1, keep="last", hash_size=hash_size
        ),
        SparseSlot(
            name="hour_digits", column="hour", separator="", max_length=2, keep="last", hash_size=hash_size
        ),
        SparseSlot(
            name="hour_of_day", cross=("hour_units", "hour_digits"), max_length=2, hash_size=hash_size
        ),
    )
    categories = tuple(SparseSlot(name=name, hash_size=hash_size) for name in CATEGORIES)
    return SchemaConfig(
        slots=(LabelSlot(name="click"), GroupSlot(name="device", column="device_ip"), *hours, *categories)
    )
