"""What all sections of a configuration share: the frozen base and the number types.

YAML numbers arrive as numbers or as text (`"0.001"`), so the number types read both; `true` is no number.
The text under a field becomes its description, from which the reference page is written.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from clickmill._limits import MAX_SEED, MAX_WHOLE_NUMBER


class Section(BaseModel):
    """Base of every section: unknown keys are errors, values do not change after loading."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        coerce_numbers_to_str=True,
        validate_default=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    @model_validator(mode="before")
    @classmethod
    def _read_hyphens_as_underscores(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {cls.canonical_key(key): item for key, item in value.items()}

    @classmethod
    def canonical_key(cls, key: Any) -> Any:
        """The key under which one is known that may be written in several ways; others as they are.

        A section that reads more spellings overrides this, so that what is wrong is told with the key that
        was written.
        """
        known = known_keys(cls)
        if isinstance(key, str) and key not in known and key.replace("-", "_") in known:
            return key.replace("-", "_")  # `save-checkpoint-path`: both spellings are found in the wild
        return key


def known_keys(section: type[BaseModel]) -> tuple[str, ...]:
    """Keys of a section as they are written in YAML."""
    return tuple(field.alias or name for name, field in section.model_fields.items())


def _refuse_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


def _one_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, str | int | float) and not isinstance(value, bool) else value


def _words(value: Any) -> Any:
    return (
        tuple(str(value).split()) if isinstance(value, str | int) and not isinstance(value, bool) else value
    )


def _fit_float32(value: float) -> float:
    if value and not FLOAT32_TINY <= abs(value) <= FLOAT32_MAX:
        size = "large" if abs(value) > FLOAT32_MAX else "small"
        raise ValueError(
            f"is too {size} for a 32-bit float, which the core computes with: `{value:g}`; "
            f"give a size from 1.2e-38 to 3.4e38"
        )
    return value


FLOAT32_MAX = 3.4028234663852886e38
FLOAT32_TINY = 1.1754943508222875e-38
"""The smallest with all its digits."""

_Number = BeforeValidator(_refuse_bool)
_Float32 = AfterValidator(_fit_float32)

Integer = Annotated[int, _Number]
"""To be given limits of its own."""
Count = Annotated[int, _Number, Field(ge=0, le=MAX_WHOLE_NUMBER)]
PositiveCount = Annotated[int, _Number, Field(ge=1, le=MAX_WHOLE_NUMBER)]
Seed = Annotated[int, _Number, Field(ge=0, le=MAX_SEED)]
Interval = Annotated[int, _Number, Field(ge=-1, le=MAX_WHOLE_NUMBER)]
"""Every so many; -1 or 0: never."""
Number = Annotated[float, _Number]
NonNegativeNumber = Annotated[float, _Number, Field(ge=0.0)]
PositiveNumber = Annotated[float, _Number, Field(gt=0.0)]
NonNegativeFloat32 = Annotated[NonNegativeNumber, _Float32]
PositiveFloat32 = Annotated[PositiveNumber, _Float32]
Fraction = Annotated[float, _Number, Field(ge=0.0, le=1.0)]

OneOrMany = BeforeValidator(_one_or_many)
"""Reads one of something as a list of it."""
Texts = Annotated[tuple[str, ...], OneOrMany]
"""One text or a list of them."""
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""Words in one text, separated by spaces, or a list of them."""
