"""Stands in for the CUDA libraries that PyTorch's wheel links to, so that its host half can be imported without them.

    python tests/interop/torch_stubs.py FOLDER
    LD_LIBRARY_PATH=FOLDER python -c 'import torch'

The wheel of the index needs a dozen CUDA libraries of a gigabyte in all, none of which its host half calls. For each
that is not on this machine a library of its name is made, in which every function that PyTorch looks for answers 1, an
error everywhere. Needs `readelf` and a C compiler.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path


def main(folder: str) -> None:
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        sys.exit("torch is not installed: pip install --no-deps torch")
    libraries = sorted((Path(spec.origin).parent / "lib").glob("*.so*"))
    missing = set().union(*map(needed, libraries)) - {library.name for library in libraries} - installed()
    wanted: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in missing}
    common = next(name for name in missing if name.startswith("libcudart"))  # all load it, so all find what is in it
    for library in libraries:
        for symbol, version, owner in undefined(library):
            if owner in wanted:
                wanted[owner][version].add(symbol)
            elif not version and re.match("cu|nccl|nv", symbol):
                wanted[common][""].add(symbol)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    for name, versions in wanted.items():
        make(out, name, versions)
    print(f"{len(wanted)} libraries in {out}")


def lines(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def needed(library: Path) -> set[str]:
    """Names of the libraries that the loader would look for."""
    return {
        found[1] for line in lines("readelf", "-d", str(library)) if (found := re.search(r"NEEDED.*\[(.+)\]", line))
    }


def installed() -> set[str]:
    """Names that the loader finds by itself."""
    return {line.split()[0] for line in lines("/sbin/ldconfig", "-p") if "=>" in line}


def undefined(library: Path) -> Iterator[tuple[str, str, str]]:
    """Symbols that a library expects of others: name, version if it has one, and then the file that is to have it."""
    owner, owners = "", {}
    for line in lines("readelf", "-W", "-V", str(library)):
        if file := re.search(r"File: (\S+)", line):
            owner = file[1]
        elif name := re.search(r"Name: (\S+) +Flags", line):
            owners[name[1]] = owner
    for line in lines("readelf", "-W", "--dyn-syms", str(library)):
        if symbol := re.search(r" GLOBAL +\w+ +UND (\w+)(?:@(\S+))?", line):
            yield symbol[1], symbol[2] or "", owners.get(symbol[2], "")


def make(folder: Path, name: str, versions: dict[str, set[str]]) -> None:
    """A library of that name with these symbols, each under its version."""
    symbols = sorted({symbol for group in versions.values() for symbol in group})
    source, script = folder / f"{name}.c", folder / f"{name}.map"
    source.write_text("\n".join(map(answer, symbols)) or "int empty;")
    nodes = [f"{version} {{ global: {'; '.join(sorted(group))}; }};" for version, group in versions.items() if version]
    script.write_text("\n".join(nodes))
    versioned = [f"-Wl,--version-script={script}"] if nodes else []
    cc = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{name}", *versioned]
    subprocess.run([*cc, *flags, str(source), "-o", str(folder / name)], check=True)


def answer(symbol: str) -> str:
    """The function in C: an error, or the words for one."""
    if re.search("Error(String|Name)$|^ncclGetLastError$", symbol):
        return f'const char *{symbol}(void) {{ return "there is no such library here"; }}'
    return f"int {symbol}(void) {{ return 1; }}"


if __name__ == "__main__":
    main(*sys.argv[1:])
