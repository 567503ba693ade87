"""`clickmill ps` and `clickmill cluster`: look at a cluster that runs, and tell it what to do."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from clickmill.cli.options import Json
from clickmill.cli.output import console, print_json, stdout, talk
from clickmill.cli.roles import TokenFile, checked_address, tls_files

if TYPE_CHECKING:
    from clickmill.ps.admin import Admin, Message

ps_app = typer.Typer(
    no_args_is_help=True,
    help="Look at the parameter servers of a run.\n\n\b\nExample:\n"
    "  clickmill ps status --coordinator 127.0.0.1:30240",
)
cluster_app = typer.Typer(
    no_args_is_help=True,
    help="Tell a cluster what to do while it trains, or what a Kubernetes one lacks.\n\n\b\nExample:\n"
    "  clickmill cluster check -b backend.yaml\n"
    "  clickmill cluster scale --pservers 4 --coordinator 127.0.0.1:30240",
)

Address = Annotated[
    str, typer.Option("--coordinator", metavar="HOST:PORT", help="Address of the first server.")
]
Certificate = Annotated[
    str, typer.Option("--tls-certificate", metavar="FILE", help="Certificate of this process.")
]
Key = Annotated[str, typer.Option("--tls-key", metavar="FILE", help="Its private key.")]
Authority = Annotated[
    str,
    typer.Option("--tls-authority", metavar="FILE", help="Certificate that those of others are signed by."),
]
ServerName = Annotated[
    str, typer.Option("--tls-server-name", metavar="NAME", help="Name in the certificates of the servers.")
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Come back when it has been done, or at once.")]

_REFRESH_S = 1.0


def _admin(coordinator: str, token_file: str, tls: tuple[str, str, str, str]) -> Admin:
    wire = import_module("clickmill.ps.wire")
    admin: Admin = import_module("clickmill.ps.admin").Admin(
        checked_address(coordinator), token=wire.read_token(token_file), tls=tls_files(*tls)
    )
    return admin


@ps_app.command("status")
def status(
    coordinator: Address,
    token_file: TokenFile = "",
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    tls_authority: Authority = "",
    tls_server_name: ServerName = "clickmill",
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every second, until Ctrl-C.")] = False,
    json: Json = False,
) -> None:
    """Show servers, their memory and speed, trainers and where their time goes, fences and snapshots.

    \b
    Example:
      clickmill ps status --coordinator 127.0.0.1:30240
      clickmill ps status --coordinator 127.0.0.1:30240 --watch
    """
    admin = _admin(coordinator, token_file, (tls_certificate, tls_key, tls_authority, tls_server_name))
    if watch:
        _watch(admin, json=json)
    else:
        _show(admin.status(), json=json)


def _show(status: Message, *, json: bool) -> None:
    if json:
        print_json(status)
        return
    page = import_module("clickmill.cli.status").status_page(status)
    with stdout():
        console().print(page)


def _watch(admin: Admin, *, json: bool) -> None:
    if json:
        while True:
            print_json(admin.status())
            time.sleep(_REFRESH_S)
    status_page = import_module("clickmill.cli.status").status_page
    with import_module("rich.live").Live(console=console(), auto_refresh=False, screen=False) as live:
        while True:
            live.update(status_page(admin.status()), refresh=True)
            time.sleep(_REFRESH_S)


@cluster_app.command("scale")
def scale(
    coordinator: Address,
    pservers: Annotated[
        int, typer.Option("--pservers", min=1, max=1024, help="How many servers there shall be.")
    ],
    token_file: TokenFile = "",
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    tls_authority: Authority = "",
    tls_server_name: ServerName = "clickmill",
    wait: Wait = True,
    json: Json = False,
) -> None:
    """Move the buckets to another number of servers while training goes on.

    More servers than there are must be started first, without an index: they wait as spares. Those that are
    no longer needed end by themselves. While servers are missing, the number that the cluster has now takes
    the wish back.

    \b
    Example:
      clickmill cluster scale --pservers 4 --coordinator 127.0.0.1:30240
    """
    admin = _admin(coordinator, token_file, (tls_certificate, tls_key, tls_authority, tls_server_name))
    _show(admin.scale(pservers, talk, is_waiting=wait), json=json)


@cluster_app.command("snapshot")
def snapshot(
    coordinator: Address,
    token_file: TokenFile = "",
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    tls_authority: Authority = "",
    tls_server_name: ServerName = "clickmill",
    wait: Wait = True,
    json: Json = False,
) -> None:
    """Take a snapshot at the next batch boundary.

    \b
    Example:
      clickmill cluster snapshot --coordinator 127.0.0.1:30240
    """
    admin = _admin(coordinator, token_file, (tls_certificate, tls_key, tls_authority, tls_server_name))
    _show(admin.snapshot(talk, is_waiting=wait), json=json)


@cluster_app.command("stop")
def stop(
    coordinator: Address,
    token_file: TokenFile = "",
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    tls_authority: Authority = "",
    tls_server_name: ServerName = "clickmill",
    wait: Wait = True,
    json: Json = False,
) -> None:
    """Take a snapshot and end the run; started again, it goes on from there.

    \b
    Example:
      clickmill cluster stop --coordinator 127.0.0.1:30240
    """
    admin = _admin(coordinator, token_file, (tls_certificate, tls_key, tls_authority, tls_server_name))
    _show(admin.stop(talk, is_waiting=wait), json=json)
