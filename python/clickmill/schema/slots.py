"""Schema from the keys of older configurations: `sparse_slots`, `dense_slots`, `label_slot`, `padding`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from clickmill.errors import ConfigError
from clickmill.schema.models import MAX_LENGTH, DenseSlot, LabelSlot, SchemaConfig, SparseSlot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABEL_NAMES = ("click", "label", "clk", "is_click", "target")


def slots_schema(
    sparse_slots: Sequence[str],
    dense_slots: Mapping[str, int],
    *,
    label_slot: str | None = None,
    padding: float = 0.0,
    sign: Literal["hash", "value"] = "value",
    hash_size: int | None = None,
) -> SchemaConfig:
    """Slots in the order in which they were named.

    The models of those systems take the first sparse slot as the label. Here it is the label where its name
    says so (`LABEL_NAMES`), or where `label_slot` names it; `label_slot` may also name a slot that is not
    listed, and the empty text means that the samples have no label. Values are signs already (`sign`), any
    number of them per sample.
    """
    label = _label(sparse_slots, label_slot)
    sparse = [name for name in sparse_slots if name != label]
    both = sorted({*sparse} & {*dense_slots})
    if both:
        raise ConfigError(f"named in both sparse_slots and dense_slots: {', '.join(both)}")
    if not sparse and not dense_slots:
        raise ConfigError("has no slots but the label; name some in `sparse_slots` or `dense_slots`")
    # A pooled slot costs memory per value, not per place, so there is no reason to cut it.
    return SchemaConfig(
        slots=(
            *((LabelSlot(name=label),) if label else ()),
            *(DenseSlot(name=name, width=width, default=padding) for name, width in dense_slots.items()),
            *(
                SparseSlot(name=name, sign=sign, max_length=MAX_LENGTH, hash_size=hash_size)
                for name in sparse
            ),
        )
    )


def _label(sparse_slots: Sequence[str], label_slot: str | None) -> str | None:
    if label_slot is not None:
        return label_slot or None
    if not sparse_slots:
        return LABEL_NAMES[0]
    first = sparse_slots[0]
    if first.lower() in LABEL_NAMES:
        return first
    raise ConfigError(
        f"cannot tell the label: the first of `sparse_slots` is `{first}`; name it with `label_slot`, "
        'or write `label_slot: ""` where the samples have none'
    )
