"""Libraries that the build of the image makes smaller do what they did."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = ("gcc", "readelf", "nm")
SCRIPT = Path(__file__).parents[3] / "deploy/docker/without_cuda.py"

pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS), reason=f"needs {', '.join(TOOLS)}"
)

LIBRARY = """
#include <stdio.h>
int cudaGetDeviceCount(void);
int cuFree(void);
__attribute__((section(".nv_fatbin"))) const char kernels[1 << 20] = {1, 2, 3};
static __thread int own = 7;
static const char *words[] = {"before", "behind"};
static int made;
__attribute__((constructor)) static void make(void) { made = 40; }
int answer(void) { return made + own - 5; }
int devices(void) { return cudaGetDeviceCount() + cuFree(); }
const char *word(int place) { return words[place]; }
"""
RUNTIME = "int cudaGetDeviceCount(void) { return 0; }"
DRIVER = "int cuFree(void) { return 0; }"
USE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.word.restype = ctypes.c_char_p
print(library.answer(), library.devices(), library.word(0).decode(), library.word(1).decode())
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("without_cuda", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def gcc(folder: Path, name: str, source: str, *options: str) -> Path:
    (folder / f"{name}.c").write_text(source)
    library = folder / name
    command = (
        "gcc",
        "-shared",
        "-fPIC",
        "-g",
        f"-Wl,-soname,{name}",
        "-o",
        str(library),
        str(folder / f"{name}.c"),
    )
    subprocess.run([*command, *options], check=True)
    return library


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library on two others: one whose symbols have versions, and one whose symbols have none."""
    (tmp_path / "versions").write_text("libcudart.so.13 { global: cudaGetDeviceCount; };\n")
    runtime = gcc(tmp_path, "libcudart.so.13", RUNTIME, f"-Wl,--version-script={tmp_path}/versions")
    driver = gcc(tmp_path, "libcufake.so.1", DRIVER)
    here = r"-Wl,-rpath,$ORIGIN"
    return gcc(tmp_path, "libtorch_fake.so", LIBRARY, str(runtime), str(driver), here)


def use(library: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", USE, str(library)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_what_is_left_of_a_library_does_what_it_did(script: ModuleType, library: Path):
    before, size = use(library), library.stat().st_size
    script.shrink(library)
    assert use(library) == before == "42 0 before behind"
    assert library.stat().st_size < size - (1 << 20)
    script.shrink(library)  # there is nothing left to take away
    assert use(library) == before


def test_libraries_that_are_gone_say_that_there_is_no_device(
    script: ModuleType, library: Path, tmp_path: Path
):
    for name in ("libcudart.so.13", "libcufake.so.1"):
        (tmp_path / name).unlink()
    stubs = script.find_stubs([library])
    assert [stub.name for stub in stubs] == ["libcudart.so.13", "libcufake.so.1"]
    for stub in stubs:
        stub.write(tmp_path)
    script.shrink(library)
    assert use(library) == f"42 {2 * script.NO_DEVICE} before behind"


def test_a_build_without_cuda_is_left_alone(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    torch = tmp_path / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "lib/libtorch_cpu.so").write_bytes(b"as it was")
    (torch / "include").mkdir()
    (torch / "version.py").write_text("cuda: Optional[str] = None\n")
    script.main(tmp_path)
    assert (torch / "lib/libtorch_cpu.so").read_bytes() == b"as it was"
    assert not (torch / "include").exists()
    assert "without CUDA already" in capsys.readouterr().out
