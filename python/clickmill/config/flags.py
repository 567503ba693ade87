"""Knobs of the communicator as environment variables, as the seeds have always set them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from clickmill.config.cluster import Communicator, communicator_key
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIXES = ("FLAGS_communicator_", "FLAGS_rpc_")


def with_flags(communicator: Communicator, variables: Mapping[str, str]) -> Communicator:
    """The knobs with what `FLAGS_communicator_...` and `FLAGS_rpc_...` say in their place.

    Variables of that kind that are no knobs here are passed over: jobs set more of them than any one engine
    knows. ConfigError names the variable whose value is not allowed.
    """
    names = {
        communicator_key(name): name
        for name in sorted(variables)
        if name.startswith(_PREFIXES) and communicator_key(name) in Communicator.model_fields
    }
    if not names:
        return communicator
    said = {key: variables[name] for key, name in names.items()}
    try:
        return Communicator.model_validate({**communicator.model_dump(), **said})
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise ConfigError(
            f"the environment variable `{names[key]}` is `{said[key]}`: {first['msg']}",
            hint=f"set it to what `communicator.{key}` may be, or unset it",
        ) from error
