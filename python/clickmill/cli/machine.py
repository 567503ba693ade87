"""What `clickmill doctor` looks at: one finding for each thing, with the remedy where something is amiss."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import clickmill
from clickmill.cli.extras import EXTRAS, install_command
from clickmill.cli.output import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator

State = Literal["ok", "warn", "missing", "broken"]

MALLOC_SETTINGS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")
MIN_MEMORY_BYTES = 2 << 30
MIN_DISK_BYTES = 5 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    topic: str
    what: str
    state: State
    value: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Everything, in the order in which it is shown."""
    return [*_software(), *_core(), *_torch(), *_extras(), *_machine()]


def _software() -> Iterator[Finding]:
    yield Finding("software", "clickmill", "ok", clickmill.__version__)
    yield Finding("software", "Python", "ok", f"{platform.python_version()} ({sys.executable})")
    for name in ("numpy", "pydantic", "pyyaml", "rich", "typer"):
        version = _version(name)
        remedy = "" if version else "pip install clickmill"
        yield Finding("software", name, "ok" if version else "broken", version or "not installed", remedy)


def _core() -> Iterator[Finding]:
    rebuild = "run `make setup`, or install the package again"
    try:
        build = core_build()
    except ImportError as error:
        yield Finding("core", "extension", "broken", str(error), rebuild)
        return
    if build["version"] != clickmill.__version__:
        value = f"{build['version']}, but the Python files are {clickmill.__version__}"
        yield Finding("core", "extension", "warn", value, rebuild)
    else:
        yield Finding("core", "extension", "ok", f"{build['version']} for {build['os']}-{build['arch']}")
    is_release = build["profile"] == "release"
    remedy = "" if is_release else "build with `make setup`; a debug build is many times slower"
    yield Finding("core", "profile", "ok" if is_release else "warn", build["profile"], remedy)
    used = build["cpu_features_used"]
    yield Finding("core", "CPU features used", "ok", " ".join(used) or "none: the portable code runs")
    idle = [name for name, is_there in build["cpu_features"].items() if is_there and name not in used]
    absent = [name for name, is_there in build["cpu_features"].items() if not is_there]
    if idle:
        yield Finding("core", "there, but not used", "ok", f"{' '.join(idle)} (torch has its own choice)")
    if absent:
        yield Finding("core", "not on this CPU", "ok", " ".join(absent))


def core_build() -> dict[str, Any]:
    """How the extension was built. Raises ImportError where it cannot be loaded."""
    core = import_module("clickmill._core")
    build: dict[str, Any] = json.loads(core.build_info())
    return build


def _hides_tile_sizes() -> bool:
    try:
        return bool(import_module("clickmill._core").hides_tile_sizes())
    except ImportError:  # told elsewhere
        return False


def _torch() -> Iterator[Finding]:
    try:
        torch = import_module("torch")
    except ImportError:
        remedy = f"{install_command('torch')}; only training needs it"
        yield Finding("torch", "torch", "missing", "not installed", remedy)
        return
    yield Finding("torch", "torch", "ok", torch.__version__)
    yield Finding("torch", "CPU features used", "ok", f"{torch.backends.cpu.get_cpu_capability()} kernels")
    yield Finding("torch", "threads", "ok", f"{torch.get_num_threads()} inside an operation")
    has_onednn = torch.backends.mkldnn.is_available()
    libraries = [name for name, backend in (("MKL", "mkl"), ("oneDNN", "mkldnn"))
                 if getattr(torch.backends, backend).is_available()]  # fmt: skip
    remedy = "" if has_onednn else "a build of torch with oneDNN trains faster on CPU"
    yield Finding("torch", "libraries", "ok" if has_onednn else "warn", " ".join(libraries) or "none", remedy)
    if _hides_tile_sizes():
        value = "without AMX: this virtual machine shows it, and hides how large its tiles are"
        yield Finding("torch", "bf16", "warn", value, "`precision: fp32` is likely faster here")
        return
    is_native = torch.ops.mkldnn._is_mkldnn_bf16_supported() if has_onednn else False
    value = "in hardware" if is_native else "emulated"
    remedy = "" if is_native else "`precision: bf16` works, but fp32 is likely as fast here"
    yield Finding("torch", "bf16", "ok" if is_native else "warn", value, remedy)


def _extras() -> Iterator[Finding]:
    for module in EXTRAS:
        if module == "torch":
            continue
        version = _version(module) if _is_there(module) else None
        remedy = "" if version else install_command(module)
        yield Finding("extras", module, "ok" if version else "missing", version or "not installed", remedy)


def _machine() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("machine", "cores", "ok", f"{cores} of {os.cpu_count()} usable")
    in_all, free = memory_bytes()
    is_enough = free is None or free >= MIN_MEMORY_BYTES
    shown = (
        "unknown" if in_all is None or free is None else f"{bytes_text(free)} free of {bytes_text(in_all)}"
    )
    remedy = "" if is_enough else "close other programs, or train with a smaller batch and fewer threads"
    yield Finding("machine", "memory", "ok" if is_enough else "warn", shown, remedy)
    disk = shutil.disk_usage(Path.cwd())
    is_enough = disk.free >= MIN_DISK_BYTES
    remedy = "" if is_enough else "make room: checkpoints of large tables need it"
    shown = f"{bytes_text(disk.free)} free of {bytes_text(disk.total)} in the current folder"
    yield Finding("machine", "disk", "ok" if is_enough else "warn", shown, remedy)
    settings = [f"{name}={os.environ[name]}" for name in MALLOC_SETTINGS if name in os.environ]
    yield Finding("machine", "malloc", "ok", " ".join(settings) or "defaults of the C library")


def memory_bytes() -> tuple[int | None, int | None]:
    """Memory in all and free for new programs; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None, None
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    return sizes.get("MemTotal"), sizes.get("MemAvailable")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a module that was put aside with `sys.modules[name] = None`
        return False


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
