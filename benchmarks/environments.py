"""Virtual environments of the peers, under `.peers/<name>`, each from its own requirements file.

python benchmarks/environments.py            make all that are missing or out of date
python benchmarks/environments.py polars     make one
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "benchmarks" / "peers" / "requirements"
FOLDER = ROOT / ".peers"
# PaddlePaddle 2.6.2 has wheels for Python up to 3.12; 3.11 is what the others are compared on.
PYTHON_VERSION = "3.11"


def interpreter(name: str) -> Path:
    """Python of a peer; `clickmill` is the project's own environment."""
    if name == "clickmill":
        return Path(sys.executable)
    return FOLDER / name / "bin" / "python"


def is_current(name: str) -> bool:
    stamp = FOLDER / name / "requirements.txt"
    return stamp.exists() and stamp.read_text() == (REQUIREMENTS / f"{name}.txt").read_text()


def make(name: str, uv: str) -> None:
    requirements = REQUIREMENTS / f"{name}.txt"
    folder = FOLDER / name
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", PYTHON_VERSION, folder], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", interpreter(name), "--requirement", requirements]
    subprocess.run(install, check=True)
    # Written last: an environment without it is made again.
    shutil.copyfile(requirements, folder / "requirements.txt")


def find_uv() -> str:
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        sys.exit("error: `uv` is not installed\nhint: run `make setup`, or `pip install uv`")
    return found


def known() -> list[str]:
    return sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "names", nargs="*", help=f"peers to set up; all of {', '.join(known())} where none is given"
    )
    names = parser.parse_args().names or known()
    unknown = sorted(set(names) - set(known()))
    if unknown:
        sys.exit(f"error: unknown peer: {', '.join(unknown)}\nhint: known peers: {', '.join(known())}")
    uv = find_uv()
    for name in names:
        if is_current(name):
            print(f"{name}: up to date", file=sys.stderr)
            continue
        print(f"{name}: installing", file=sys.stderr)
        make(name, uv)


if __name__ == "__main__":
    main()
