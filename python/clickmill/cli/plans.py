"""How a plan of a job is shown: as text, YAML or JSON, or written to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.cli.output import print_json, print_text, talk
from clickmill.errors import ConfigError
from clickmill.submit.private import write_private_folder
from clickmill.submit.yaml_text import yaml_text

if TYPE_CHECKING:
    from clickmill.submit.request import Outcome

FORMATS = ("yaml", "json")


def show_plan(outcome: Outcome, output: str, *, json: bool) -> None:
    """A plan on stdout, or in the folder that `output` names."""
    if outcome.files and outcome.words:
        talk(outcome.words)
    form = "yaml" if output.lower() == "yml" else output.lower()
    if json and form == "yaml":
        raise ConfigError("`--output yaml` and `--json` ask for two things", hint="leave one of them out")
    if output and form not in FORMATS:
        written = write_plan(outcome, Path(output))
        if json:
            print_json({**outcome.facts, "folder": output, "written": written})
        else:
            talk(f"{len(written)} {'file' if len(written) == 1 else 'files'} in `{output}`, secrets masked")
    elif json or form == "json":
        print_json(_body(outcome))
    elif outcome.objects:
        print_text("".join(outcome.files.values()).removesuffix("\n"))
    elif form == "yaml":
        print_text(yaml_text(_body(outcome)).removesuffix("\n"))
    elif outcome.files:
        print_text("\n".join(f"==> {name} <==\n{text}" for name, text in outcome.files.items()).rstrip())
    else:
        print_text(outcome.command_line)


def write_plan(outcome: Outcome, folder: Path) -> list[str]:
    """Write the files of a plan to a new folder. Raises ConfigError where it holds something already."""
    if not outcome.files:
        raise ConfigError(
            f"a job for `{outcome.facts['backend']}` is a command, not files",
            hint="leave out `--output`, or give `yaml` or `json`",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(
            f"`{folder}` is there already", hint="name a folder that is new or empty, or `yaml` or `json`"
        )
    write_private_folder(folder, outcome.files)
    return list(outcome.files)


def _body(outcome: Outcome) -> dict[str, Any]:
    if outcome.objects:  # as kubectl shows and takes several
        return {"apiVersion": "v1", "kind": "List", "items": outcome.objects}
    return {**outcome.facts, "contents": outcome.files} if outcome.files else outcome.facts
