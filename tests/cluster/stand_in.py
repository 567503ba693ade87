"""Stand-ins for `clickmill pserver` and `clickmill trainer`: they speak as those do, and train nothing.

A folder in the variable STAND_IN steers them and shows what they did:

    <role>.<pid>      exists while the process lives: its arguments as JSON
    ended             a line for each that was asked to end: its role
    hold              trainers go on only when this file is gone
    words             how many lines trainers say when they go on
    fail              JSON {"exit": code, "error": {...}}: what trainers end with, each time
    deaf              those of this role do not end when they are asked to
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["STAND_IN"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    commands = parser.add_subparsers(dest="role", required=True)
    pserver = commands.add_parser("pserver")
    for name, default in {
        "--host": "127.0.0.1",
        "--port": "0",
        "--index": "0",
        "--memory-budget": "",
    }.items():
        pserver.add_argument(name, default=default)
    pserver.add_argument("--snapshots", required=True)
    trainer = commands.add_parser("trainer")
    trainer.add_argument("-m", dest="model", required=True)
    trainer.add_argument("--set", action="append", default=[])
    trainer.add_argument("--name")
    for each in (pserver, trainer):
        each.add_argument("--coordinator")
        each.add_argument("--token-file")
        each.add_argument("--metrics-port", default="0")
        each.add_argument("--json", action="store_true")
        each.add_argument("--insecure", action="store_true")
    arguments, extra = parser.parse_known_args()
    role = arguments.role
    mark = FOLDER / f"{role}.{os.getpid()}"
    signal.signal(signal.SIGTERM, lambda *_: end(role, mark))
    temporary = FOLDER / f".{mark.name}"
    shown = {**vars(arguments), "extra": extra, "cwd": str(Path.cwd()), "environ": places()}
    temporary.write_text(json.dumps(shown))
    temporary.rename(mark)
    try:
        serve(arguments) if role == "pserver" else train(arguments)
    finally:
        mark.unlink(missing_ok=True)


def places() -> dict[str, str]:
    return {name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_PORT") if name in os.environ}


def end(role: str, mark: Path) -> None:
    with (FOLDER / "ended").open("a") as file:
        file.write(f"{role}\n")
    if (FOLDER / "deaf").exists() and (FOLDER / "deaf").read_text() == role:
        return
    mark.unlink(missing_ok=True)
    os._exit(143)


def token(arguments: argparse.Namespace) -> str:
    if arguments.token_file:
        return Path(arguments.token_file).read_text().strip()
    return os.environ.get("CLICKMILL_TOKEN", "none")


def call(arguments: argparse.Namespace, *words: str) -> socket.socket:
    host, _, port = arguments.coordinator.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(" ".join([token(arguments), *words]).encode() + b"\n")
    if connection.recv(1) != b"y":
        sys.exit("error: the token is not right")
    return connection


def serve(arguments: argparse.Namespace) -> None:
    """Ends when as many trainers are done as the first of them said that there are."""
    listener = socket.create_server((arguments.host, int(arguments.port)), reuse_port=False)
    address = "{}:{}".format(*listener.getsockname()[:2])
    ready = {"role": "pserver", "index": int(arguments.index), "address": address, "metrics": "127.0.0.1:1"}
    coordinator = call(arguments, "pserver") if int(arguments.index) > 0 else None
    print(json.dumps(ready), flush=True)
    print(f"listening at {address}", file=sys.stderr, flush=True)
    if coordinator is not None:
        with contextlib.suppress(ConnectionError):
            coordinator.settimeout(None)
            coordinator.recv(1)  # until the coordinator has gone
        return
    over = threading.Event()
    done: list[str] = []

    def answer(connection: socket.socket) -> None:
        told, _, words = connection.makefile().readline().strip().partition(" ")
        if told != token(arguments):
            connection.sendall(b"n")
            return
        connection.sendall(b"y")
        if words.startswith("done"):
            done.append(words)
            if len(done) == int(words.split()[1]):
                over.set()
        else:
            connection.recv(1)

    def listen() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    over.wait()


def train(arguments: argparse.Namespace) -> None:
    number = next(
        (each.partition("=")[2] for each in reversed(arguments.set) if ".worker_num=" in each), None
    )
    if number is None:
        number = str(json.loads((FOLDER / "workers").read_text()))
    print(f"training {arguments.model}", file=sys.stderr, flush=True)
    progress = {"pass": 0, "passes": 1, "samples": 10, "bytes": 5, "total_bytes": 10, "words": "loss 0.5"}
    print(json.dumps({"progress": progress}), flush=True)
    while (FOLDER / "hold").exists():
        time.sleep(0.005)
    if (FOLDER / "words").exists():
        for index in range(int((FOLDER / "words").read_text())):
            print(f"line {index} {'.' * 100}", file=sys.stderr, flush=True)
    if (FOLDER / "fail").exists():
        fail(json.loads((FOLDER / "fail").read_text()))
    if arguments.coordinator:
        call(arguments, "done", number)
    print(json.dumps([{"run": arguments.model, "workers": int(number)}]))


def fail(how: dict[str, Any]) -> None:
    print(json.dumps({"error": how["error"], "exit_code": how["exit"]}), file=sys.stderr)
    sys.exit(how["exit"])


if __name__ == "__main__":
    main()
