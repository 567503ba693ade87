"""`clickmill models`: what is built in."""

from __future__ import annotations

from clickmill.cli.options import Json
from clickmill.cli.output import print_json, print_table


def models(json: Json = False) -> None:
    """List the built-in models.

    \b
    Example:
      clickmill models
      clickmill train -m dnn
    """
    from clickmill.config.builtin import BUILTIN_MODELS

    if json:
        print_json([{"name": name, "what": what} for name, what in BUILTIN_MODELS.items()])
    else:
        print_table(("model", "what it is"), BUILTIN_MODELS.items())
