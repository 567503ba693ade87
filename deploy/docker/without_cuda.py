"""Takes CUDA out of an installed torch, for images that train on CPUs.

    python3 without_cuda.py SITE_PACKAGES

Where a registry has CUDA builds of torch alone, most of what they bring is for cards: kernels in the
libraries of torch, and libraries of the maker of the cards, which torch names and cannot be loaded without.

- The libraries of torch keep what is mapped into memory to run, without the kernels for cards and without
  tables for debuggers and linkers. Code and data stay where they were.
- The libraries that they name and that are not there become libraries of some kilobytes, with the functions
  that torch asks for. Each answers "there is no device", which torch understands.

A build of torch without CUDA is left as it is. Needs gcc and binutils: run it in a stage that is not kept.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ONLY_WITH_CARDS = ("libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so")
"""Loaded when they are first needed."""
ONLY_FOR_BUILDERS = ("include", "test", "share", "bin/protoc*", "bin/test_*")
OF_CARDS = ("cu", "nccl", "nv")
"""How functions of those libraries begin; some of the libraries have no versions to know them by."""
KERNELS = ".nv_fatbin"
NO_DEVICE = 100
"""`cudaErrorNoDevice`; for other libraries, too, anything but 0 is an error."""

LOAD = 1
ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Segment:
    """A program header: a part of the file that is mapped, or a mark within one."""

    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    num_file_bytes: int
    num_bytes: int
    alignment: int

    def parts(self, dropped: range) -> list[Segment]:
        """Without the whole pages of `dropped`, a range of the file."""
        page = max(self.alignment, 4096)
        first, last = -(-dropped.start // page) * page, dropped.stop // page * page
        if self.kind != LOAD or first >= last or not self.offset <= first < self.offset + self.num_file_bytes:
            return [self]
        behind = last - self.offset
        return [
            self._moved(0, first - self.offset, first - self.offset),
            self._moved(behind, self.num_file_bytes - behind, self.num_bytes - behind),
        ]

    def _moved(self, by: int, num_file_bytes: int, num_bytes: int) -> Segment:
        start = (self.offset + by, self.address + by, self.physical + by)
        return Segment(self.kind, self.flags, *start, num_file_bytes, num_bytes, self.alignment)

    def pack(self, offset: int) -> bytes:
        sizes = (self.num_file_bytes, self.num_bytes, self.alignment)
        return PROGRAM_HEADER.pack(self.kind, self.flags, offset, self.address, self.physical, *sizes)


def shrink(library: Path) -> None:
    """Leave of a library what is mapped when it runs, kernels for cards excepted."""
    data = library.read_bytes()
    header = list(ELF_HEADER.unpack_from(data))
    if header[0][:6] != b"\x7fELF\x02\x01":
        raise SystemExit(f"{library}: only 64-bit little-endian libraries are understood")
    first, size, count = header[5], header[9], header[10]
    found = [Segment(*PROGRAM_HEADER.unpack_from(data, first + size * number)) for number in range(count)]
    segments = [part for segment in found for part in segment.parts(kernels(library))]
    out = bytearray(ELF_HEADER.size)
    places: dict[Segment, int] = {}
    for segment in sorted((each for each in segments if each.kind == LOAD), key=lambda each: each.offset):
        page = max(segment.alignment, 4096)
        if places:  # the first begins with the header
            out.extend(bytes((segment.offset - len(out)) % page))
        else:
            out.clear()
        places[segment] = len(out)
        out += data[segment.offset : segment.offset + segment.num_file_bytes]
    out.extend(bytes(-len(out) % 8))
    header[5], header[10] = len(out), len(segments)
    header[6], header[11:] = 0, [0, 0, 0]  # the table of sections: for linkers and debuggers
    for segment in segments:
        out += segment.pack(new_place(segment, places))
    ELF_HEADER.pack_into(out, 0, *header)
    beside = library.with_name(library.name + ".new")
    beside.write_bytes(out)
    beside.chmod(library.stat().st_mode)
    beside.replace(library)


def new_place(segment: Segment, places: dict[Segment, int]) -> int:
    """Where in the new file a segment lies: a mark moves with what it marks."""
    for load, place in places.items():
        if load.offset <= segment.offset < load.offset + max(load.num_file_bytes, 1):
            return place + segment.offset - load.offset
    return 0


def kernels(library: Path) -> range:
    found = re.search(
        rf"{re.escape(KERNELS)}\s+PROGBITS\s+\S+\s+(\S+)\s+(\S+)", run("readelf", "-SW", str(library))
    )
    start = int(found[1], 16) if found else 0
    return range(start, start + (int(found[2], 16) if found else 0))


@dataclass
class Stub:
    """A library in place of one that is not there."""

    name: str
    symbols: dict[str, str] = field(default_factory=dict)
    """Version that is asked for, by symbol; empty for none."""

    def write(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            source, versions = Path(temporary, "stub.c"), Path(temporary, "versions")
            source.write_text("".join(definition(*each) for each in enumerate(sorted(self.symbols))))
            nodes = sorted({version for version in self.symbols.values() if version})
            versions.write_text("".join(self._node(node) for node in nodes))
            script = [f"-Wl,--version-script={versions}"] if nodes else []
            options = ["-shared", "-fPIC", "-Os", "-s", "-nostdlib", f"-Wl,-soname,{self.name}", *script]
            run("gcc", *options, "-o", str(folder / self.name), str(source))

    def _node(self, node: str) -> str:
        names = " ".join(f"{symbol};" for symbol, version in self.symbols.items() if version == node)
        return f"{node} {{ global: {names} }};\n"


def definition(number: int, symbol: str) -> str:
    """C for a function of any name."""
    return f'int s{number}(void) __asm__("{symbol}"); int s{number}(void) {{ return {NO_DEVICE}; }}\n'


def needed(library: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", str(library)))


def wanted(library: Path) -> dict[str, str]:
    """Version by name of the symbols that others must have; empty for none."""
    found = {}
    for line in run("nm", "-D", "--with-symbol-versions", "--undefined-only", str(library)).splitlines():
        kind, name = line.split()[-2:]
        if kind not in {"w", "v"}:  # those may be missing
            name, _, version = name.replace("@@", "@").partition("@")
            found[name] = version
    return found


def version_owners(library: Path) -> dict[str, str]:
    """Of which library each version of a symbol is that this one wants."""
    owners, owner = {}, ""
    for line in run("readelf", "-VW", str(library)).partition(".gnu.version_r")[2].splitlines():
        if found := re.search(r"File: (\S+)", line):
            owner = found[1]
        elif found := re.search(r"Name: (\S+)", line):
            owners[found[1]] = owner
    return owners


def find_stubs(kept: list[Path]) -> list[Stub]:
    """The libraries that those to keep name and nobody has, with what is wanted of them."""
    known = run("/sbin/ldconfig", "-p")
    here = {library.name for library in kept}
    names = {name for library in kept for name in needed(library)}
    stubs = {name: Stub(name) for name in sorted(names) if name not in here and f"\t{name} " not in known}
    rest = {}
    for library in kept:
        owners = version_owners(library)
        for name, version in wanted(library).items():
            if owners.get(version) in stubs:
                stubs[owners[version]].symbols[name] = version
            elif not version and name.startswith(OF_CARDS):
                rest[name] = ""
    # Who has them does not matter, as long as one of those that are loaded does.
    next(stub for stub in stubs.values() if not stub.symbols).symbols |= rest
    return list(stubs.values())


def main(site_packages: Path) -> None:
    torch = site_packages / "torch"
    for pattern in ONLY_FOR_BUILDERS:
        for path in torch.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if re.search(r"^cuda.*= None$", (torch / "version.py").read_text(), re.MULTILINE):
        print("torch is a build without CUDA already")
        return
    folder = torch / "lib"
    for name in ONLY_WITH_CARDS:
        (folder / name).unlink(missing_ok=True)
    kept = sorted(folder.glob("*.so*"))
    stubs = find_stubs(kept)
    for library in kept:
        before = library.stat().st_size
        shrink(library)
        print(f"{library.name}: {before >> 10} KiB before, {library.stat().st_size >> 10} KiB now")
    for stub in stubs:
        stub.write(folder)
        print(f"{stub.name}: {len(stub.symbols)} functions that say that there is no device")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
