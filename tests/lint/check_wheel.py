"""Checks a built wheel: its name, its files, its metadata, and what the two libraries inside export and need.

    python tests/lint/check_wheel.py dist/ovstage_go-*.whl

Prints one sentence for each fault and exits with 1 if there is any.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

PLACES = re.compile(
    r"""ovstage/(?:
        (?:\w+/)*\w+\.pyi?            # the package
      | py\.typed
      | libovstage\.so | _native\.abi3\.so
      | include/(?:\w+/)*\w+\.h       # what C programs need
      | lib/cmake/ovstage/[\w-]+\.cmake | lib/pkgconfig/ovstage\.pc
    ) | ovstage_go-[\w.]+\.dist-info/(?:METADATA|WHEEL|RECORD|licenses/(?:LICENSE|NOTICE))""",
    re.VERBOSE,
)
EXPORTS = {
    "libovstage.so": re.compile(r"ov(?:stage|align)_\w+"),
    "_native.abi3.so": re.compile(r"PyInit__native"),
}
NEEDED = {
    "libovstage.so": {"libc.so.6", "libpthread.so.0", "libdl.so.2", "libresolv.so.2"},
    "_native.abi3.so": {"libc.so.6", "libpthread.so.0", "libdl.so.2"},
}
LOADERS = re.compile(r"ld-linux[\w-]*\.so\.\d+")


def faults(path: str) -> Iterator[str]:
    name = path.rsplit("/", 1)[-1]
    if "-cp311-abi3-" not in name or not re.search(r"linux_\w+\.whl$", name):
        yield f"{name}: the tag should be cp311-abi3-<linux platform>"
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        for stray in (name for name in names if not PLACES.fullmatch(name)):
            yield f"{stray}: does not belong into the wheel"
        for required in ("ovstage/__init__.py", "ovstage/py.typed", "ovstage/include/ovstage/ovstage.h"):
            if required not in names:
                yield f"{required}: missing from the wheel"
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        for requirement in Parser().parsestr(wheel.read(metadata).decode()).get_all("Requires-Dist", []):
            if "extra ==" not in requirement:
                yield f"Requires-Dist: {requirement}: the package itself must need nothing"
        for library in EXPORTS:
            if f"ovstage/{library}" not in names:
                yield f"ovstage/{library}: missing from the wheel"
            else:
                yield from library_faults(library, ELFFile(io.BytesIO(wheel.read(f"ovstage/{library}"))))


def library_faults(library: str, elf: ELFFile) -> Iterator[str]:
    table, dynamics = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".dynamic")
    if not isinstance(table, SymbolTableSection) or not isinstance(dynamics, DynamicSection):
        yield f"{library}: is no shared library"
        return
    symbols = list(table.iter_symbols())
    exported = {symbol.name for symbol in symbols if symbol.name and symbol["st_shndx"] != "SHN_UNDEF"}
    undefined = {symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF"}
    if not exported:
        yield f"{library}: exports nothing"
    for symbol in sorted(exported):
        if not EXPORTS[library].fullmatch(symbol):
            yield f"{library}: exports {symbol}, which is not part of its interface"
    if library == "libovstage.so":
        for symbol in sorted(name for name in undefined if name.startswith(("Py", "_Py"))):
            yield f"{library}: needs {symbol} of Python, and must load in a C program without Python"

    dynamic: dict[str, list[str]] = {}
    for tag in dynamics.iter_tags():
        for attribute in ("needed", "soname", "rpath", "runpath"):
            if hasattr(tag, attribute):
                dynamic.setdefault(attribute, []).append(getattr(tag, attribute))
    for needed in dynamic.get("needed", []):
        if needed not in NEEDED[library] and not LOADERS.fullmatch(needed):
            yield f"{library}: needs {needed}, which is not on every Linux"
    if library == "libovstage.so" and dynamic.get("soname") != [library]:
        yield f"{library}: its SONAME should be {library}, not {dynamic.get('soname')}"
    if library == "_native.abi3.so":
        for symbol in sorted(name for name in undefined if name.startswith(("ovstage_", "ovalign_"))):
            yield f"{library}: needs {symbol} at its load, and must open the library with the first stage only"
        if "libc.so.6" not in dynamic.get("needed", []):
            yield f"{library}: names no libc.so.6, without which auditwheel refuses it"


def main(paths: list[str]) -> int:
    if not paths:
        print("check_wheel: name the wheels to check")
        return 2
    found = [fault for path in paths for fault in faults(path)]
    print("\n".join(found) or f"{len(paths)} checked: name, files, metadata and libraries are as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
