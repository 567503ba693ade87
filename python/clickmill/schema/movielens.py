"""Schema of MovieLens 1M, ratings joined with users and movies: the data of the 2016 recommendation demo."""

from __future__ import annotations

from typing import Literal

from clickmill.schema.models import (
    AffineTransform,
    GroupSlot,
    IdentityTransform,
    LabelSlot,
    LabelTransform,
    SchemaConfig,
    SparseSlot,
    ThresholdTransform,
)

MAX_TITLE_BYTES = 64
MAX_GENRES = 8

Task = Literal["stars", "scaled", "click"]


def movielens_schema(task: Task = "scaled", *, hash_size: int | None = None) -> SchemaConfig:
    """`task` says what is learnt: the rating, the 2016 demo's rating * 2 - 5, or rating >= 4 as a click."""
    transforms: dict[str, LabelTransform] = {
        "stars": IdentityTransform(),
        "scaled": AffineTransform(scale=2.0, shift=-5.0),
        "click": ThresholdTransform(at=4.0),
    }
    single = ("user_id", "gender", "age", "occupation", "movie_id")
    return SchemaConfig(
        slots=(
            LabelSlot(name="rating", transform=transforms[task]),
            GroupSlot(name="user", column="user_id"),
            *(SparseSlot(name=name, hash_size=hash_size) for name in single),
            SparseSlot(
                name="title", separator="", max_length=MAX_TITLE_BYTES, pooling="mean", hash_size=hash_size
            ),
            SparseSlot(
                name="genres", separator="|", max_length=MAX_GENRES, pooling="mean", hash_size=hash_size
            ),
        )
    )
