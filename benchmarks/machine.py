"""Facts about the machine and the checkout that a result is worth nothing without."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from environments import ROOT


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def commit() -> str:
    """Commit of the checkout, marked where files differ from it."""
    found = git("rev-parse", "--short=12", "HEAD")
    return f"{found} with local changes" if git("status", "--porcelain", "--untracked-files=no") else found


def git(*arguments: str) -> str:
    result = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def facts() -> dict[str, str]:
    load = os.getloadavg()
    return {
        "processor": processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_gib():.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": commit(),
        "load before": f"{load[0]:.2f} (1 minute), {load[1]:.2f} (5 minutes)",
    }


def require_release_build() -> dict[str, str]:
    """Build facts of the core; a debug build ends the benchmark."""
    from clickmill import _core

    build: dict[str, str] = json.loads(_core.build_info())
    if build["profile"] != "release":
        sys.exit("error: the core is a debug build, its figures would mean nothing\nhint: run `make setup`")
    return build
