"""The frame: the command tree, logging, and what happens when a command fails."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import clickmill
from clickmill.cli import (
    cluster,
    cluster_check,
    configs,
    data,
    doctor,
    job,
    models,
    pod,
    pod_files,
    roles,
    runs,
    schemas,
    ssh_cluster,
    submit,
)
from clickmill.cli.exits import (
    FAILURE,
    INTERRUPTED,
    MEANINGS,
    MEMORY_HINT,
    USAGE,
    exit_code,
    memory_words,
    system_failure,
    tell,
    tell_usage,
)
from clickmill.cli.logs import start_logging
from clickmill.cli.options import QUIET_HELP, VERBOSE_HELP, Json, Wants, talk_options
from clickmill.cli.output import print_json, print_text
from clickmill.errors import ClickmillError, Terminated

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items())


UsageError: Any = typer.BadParameter.__base__
"""What a wrong argument raises; the only way to it that does not depend on where typer keeps click."""


class Frame(TyperGroup):
    """Turns our errors into words and exit codes, whatever command they come from."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in _commands(self):
            known = {parameter.opts[0] for parameter in command.params}
            command.params.extend(each for each in talk_options() if each.opts[0] not in known)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        Wants.start(json=False, is_verbose=False, is_quiet=False)
        words = sys.argv[1:] if args is None else list(args)
        if "--json" not in words:
            return super().main(words, *rest, **options)
        try:
            sys.exit(super().main(words, *rest, **{**options, "standalone_mode": False}))
        except UsageError as error:
            command = error.ctx.command_path if error.ctx else "clickmill"
            tell_usage(error.format_message(), command)
            sys.exit(USAGE)

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
            tell(system_failure(error), as_json=Wants.json)
            sys.exit(FAILURE)
        except (MemoryError, RuntimeError) as error:
            words = memory_words(error)
            if words is None:
                raise
            tell(ClickmillError(words, hint=MEMORY_HINT), as_json=Wants.json)
            sys.exit(FAILURE)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


def _commands(group: TyperGroup) -> Iterator[Any]:
    for command in group.commands.values():
        yield command
        if isinstance(command, TyperGroup):
            yield from _commands(command)


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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help=VERBOSE_HELP)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=QUIET_HELP)] = False,
    json: Json = False,
) -> None:
    """Click logs in, fresh predictions out.

    \b
    Example:
      clickmill data synth log.tsv --rows 100000
      clickmill train -m config.yaml
    """
    start_logging()
    Wants.start(json=json, is_verbose=verbose, is_quiet=quiet)


runs.register(app)
roles.register(app)
app.command("ssh-cluster", context_settings=ssh_cluster.SETTINGS)(ssh_cluster.ssh_cluster)
app.command("submit")(submit.submit)
app.command("pod")(pod.pod)
app.command("pod-files")(pod_files.pod_files)
app.command("doctor")(doctor.doctor)
app.command("models")(models.models)
app.add_typer(cluster.ps_app, name="ps")
cluster.cluster_app.command("check")(cluster_check.check)
app.add_typer(cluster.cluster_app, name="cluster")
app.add_typer(job.app, name="job")
app.add_typer(data.app, name="data")
app.add_typer(configs.app, name="config")
app.add_typer(schemas.app, name="schema")


def _terminate(number: int, _frame: FrameType | None) -> None:
    """Leave as after an error: files are closed and threads joined, then the code of the signal is told."""
    raise Terminated(128 + number)


def main() -> None:
    """Entry point of the `clickmill` command."""
    signal.signal(signal.SIGTERM, _terminate)
    app(prog_name="clickmill")
