"""The frame: the command tree, logging, and what happens when a command fails."""

from __future__ import annotations

import logging
import signal
import sys
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import clickmill
from clickmill.cli import configs, data, doctor, models, runs, schemas
from clickmill.cli.exits import FAILURE, INTERRUPTED, MEANINGS, exit_code, tell
from clickmill.cli.options import Json, Wants
from clickmill.cli.output import print_json, print_text
from clickmill.errors import ClickmillError

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items())


class Frame(TyperGroup):
    """Turns our errors into words and exit codes, whatever command they come from."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ClickmillError as error:
            tell(error, as_json=Wants.json)
            sys.exit(exit_code(error))
        except BrokenPipeError:
            # The reader of our output has gone (`| head`); nothing may be written any more, not even at exit.
            sys.stdout = None
            sys.exit(FAILURE)
        except OSError as error:
            place = f"`{error.filename}`: " if error.filename else ""
            tell(ClickmillError(f"{place}{error.strerror or error}"), as_json=Wants.json)
            sys.exit(FAILURE)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


class _Words(logging.Formatter):
    """`warning: ...` for what deserves it, the bare line for the rest."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return f"{record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text


app = typer.Typer(
    cls=Frame,
    name="clickmill",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        if "--json" in sys.argv:
            print_json({"version": clickmill.__version__})
        else:
            print_text(f"clickmill {clickmill.__version__}")
        raise typer.Exit


@app.callback()
def frame(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also tell what is of use when debugging.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Tell warnings and errors only.")] = False,
    json: Json = False,
) -> None:
    """Click logs in, fresh predictions out.

    \b
    Example:
      clickmill data synth log.tsv --rows 100000
      clickmill train -m config.yaml
    """
    Wants.json = json
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Words("%(message)s"))
    logger = logging.getLogger("clickmill")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


runs.register(app)
app.command("doctor")(doctor.doctor)
app.command("models")(models.models)
app.add_typer(data.app, name="data")
app.add_typer(configs.app, name="config")
app.add_typer(schemas.app, name="schema")


def _terminate(number: int, _frame: FrameType | None) -> None:
    """Leave as after an error: files are closed and threads joined, then the code of the signal is told."""
    sys.exit(128 + number)


def main() -> None:
    """Entry point of the `clickmill` command."""
    signal.signal(signal.SIGTERM, _terminate)
    app(prog_name="clickmill")
