"""`clickmill pod-files`: what the pod runs that `clickmill job fetch` reads from."""

from __future__ import annotations

import json as json_module
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from clickmill.cli.options import Json
from clickmill.cli.roles import TokenFile


def pod_files(
    folder: Annotated[Path, typer.Option("--folder", help="Folder to give out.")],
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 0,
    idle: Annotated[
        float,
        typer.Option("--idle", metavar="SECONDS", min=1.0, help="End when nobody has asked for so long."),
    ] = 300.0,
    token_file: TokenFile = "",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine without a token.")
    ] = False,
    json: Json = False,
) -> None:
    """Give the files of a folder out over HTTP, read-only, to those who have the token.

    \b
    Example:
      clickmill pod-files --folder runs/train --port 8080
    """
    server = import_module("clickmill.jobs.files.server")
    token = import_module("clickmill.ps.wire").read_token(token_file)
    with server.FileServer(folder, (host, port), token=token, is_insecure=insecure) as files:
        address = f"{files.server_address[0]}:{files.server_address[1]}"
        line = {"role": "reader", "address": address, "folder": str(folder)}
        sys.stdout.write((json_module.dumps(line) if json else f"gives out `{folder}` on {address}") + "\n")
        sys.stdout.flush()
        files.serve_until_idle(idle)
