"""Assigning tables: a model asks for tables, the slots that name none of their own get them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from clickmill.errors import ConfigError
from clickmill.schema.models import SchemaConfig, SparseSlot, TableSpec, UniformInit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clickmill.config.tables import TableOverrides


class TableRequest(Protocol):
    """What a model says of a table that it needs."""

    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...


def assign_tables(
    schema: SchemaConfig,
    requests: Sequence[TableRequest],
    *,
    overrides: Mapping[str, TableOverrides] | None = None,
    seed: int = 0,
) -> SchemaConfig:
    """`schema` with the tables of `requests`; sparse slots without tables get all of them.

    A table that the schema defines itself stays as it is. A request may have `slots` (names) and `init`: then
    only those slots get it, and its rows start so. Raises ConfigError for an override of a table that nobody
    asks for, and for a slot that does not exist.
    """
    overrides = overrides or {}
    specs = {table.name: table for table in schema.tables}
    for request in requests:
        if request.name not in specs:
            specs[request.name] = _spec(request, overrides.get(request.name), seed)
    _check_overrides(overrides, specs)
    slots = tuple(
        _with_tables(slot, requests, overrides) if isinstance(slot, SparseSlot) else slot
        for slot in schema.slots
    )
    _check_slots(schema, requests)
    return schema.model_copy(update={"slots": slots, "tables": tuple(specs.values())})


def _spec(request: TableRequest, override: TableOverrides | None, seed: int) -> TableSpec:
    init = getattr(request, "init", None) or UniformInit()
    dim, own_seed = request.dim, seed
    if override is not None:
        init = override.init or init
        dim = override.dim or dim
        own_seed = seed if override.seed is None else override.seed
    return TableSpec(name=request.name, dim=dim, seed=own_seed, init=init)


def _with_tables(
    slot: SparseSlot, requests: Sequence[TableRequest], overrides: Mapping[str, TableOverrides]
) -> SparseSlot:
    tables = slot.tables or tuple(request.name for request in requests if _wants(request, slot.name))
    sizes = {overrides[name].hash_size for name in tables if name in overrides and overrides[name].hash_size}
    if len(sizes) > 1:
        raise ConfigError(
            f"slot `{slot.name}` is in tables of different hash_size: {sorted(filter(None, sizes))}"
        )
    hash_size = sizes.pop() if sizes else slot.hash_size
    return slot.model_copy(update={"tables": tables, "hash_size": hash_size})


def _wants(request: TableRequest, slot: str) -> bool:
    slots: Iterable[str] | None = getattr(request, "slots", None)
    return not slots or slot in slots


def _check_slots(schema: SchemaConfig, requests: Sequence[TableRequest]) -> None:
    known = [slot.name for slot in schema.sparse]
    for request in requests:
        for name in getattr(request, "slots", None) or ():
            if name not in known:
                raise ConfigError(
                    f"table `{request.name}` is for slot `{name}`, which is no sparse slot; "
                    f"known: {', '.join(known)}"
                )


def _check_overrides(overrides: Mapping[str, TableOverrides], specs: Mapping[str, TableSpec]) -> None:
    for name in overrides:
        if name not in specs:
            raise ConfigError(
                f"`hyper_parameters.tables` names table `{name}`, which neither model nor schema has; "
                f"known: {', '.join(specs)}"
            )
