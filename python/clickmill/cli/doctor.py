"""`clickmill doctor`: what is installed, what is used, what is missing and how to get it."""

from __future__ import annotations

from dataclasses import asdict

import typer

from clickmill.cli.exits import FAILURE
from clickmill.cli.options import Json
from clickmill.cli.output import print_json, show

_MARKS = {
    "ok": "[green]ok[/]",
    "warn": "[yellow]warn[/]",
    "missing": "[yellow]missing[/]",
    "broken": "[red]broken[/]",
}


def doctor(json: Json = False) -> None:
    """Tell what is installed, which CPU features are there and used, what is missing and how to get it.

    Fails only where something is broken that everything needs; what is missing is optional.

    \b
    Example:
      clickmill doctor
      clickmill doctor --json
    """
    from clickmill.cli.machine import examine

    findings = examine()
    is_broken = any(finding.state == "broken" for finding in findings)
    if json:
        print_json({"ok": not is_broken, "findings": [asdict(finding) for finding in findings]})
    else:
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column in ("", "what", "state", "found", "remedy"):
            table.add_column(column, overflow="fold")
        topic = ""
        for finding in findings:
            if topic and finding.topic != topic:
                table.add_section()
            shown = "" if finding.topic == topic else finding.topic
            topic = finding.topic
            mark = _MARKS[finding.state]
            table.add_row(shown, finding.what, mark, escape(finding.value), escape(finding.remedy))
        show(table)
    if is_broken:
        raise typer.Exit(FAILURE)
