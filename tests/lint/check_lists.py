"""Holds the lists of files and of locks to what there is.

    python tests/lint/check_lists.py

A list that a reader steers by names every file, and nothing that is gone; docs/architecture.md names every room and
every file with a lock. A function of Go that C calls has the name of its slot. A limit that several languages say is
the same number in each.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LISTS = [  # the list, the folder, the files that it names
    ("capi_export/main.go", "capi_export", r".+\.[ch]|.+\.go"),
    ("capi_export/ring.h", "capi_export", r"(?!note|absent|scene|interface).+\.c"),  # those share nothing
    ("python/native/native.h", "python/native", r".+\.c"),
    ("tests/c/client.c", "tests/c", r".+\.c"),
]
NOT_LISTED = {"capi_export/main.go"}
LOCK = re.compile(r"\bpthread_mutex_t \w+|\bsync\.(RW)?Mutex\b|\bthreading\.R?Lock\(\)")
NO_SLOT = {  # called for other reasons than a slot of their name
    "CloseDictionary": "the end of the last instance",
    "FloorReached": "wait_floor, each time a floor has moved",
    "ForgetOp": "release_op, where an operation has failed",
    "OpFailure": "wait_op and op_status, where one has failed",
    "Publish": "publish and publish_typed",
    "QueryCondition": "the extension's query; the slot of that name has its own",
}
LIMITS = {  # by what they limit: where the number is said
    "axes of a tensor": [
        ("capi_export/include/ovstage/ovstage_go.h", r"#define OVSTAGE_GO_MOST_AXES (\d+)"),
        ("gocore/tensor/view.go", r"const maxAxes = (\d+)"),
        ("python/ovstage/dlpack.py", r"_MOST_AXES = (\d+)"),
    ],
    "lanes of a value": [
        ("capi_export/include/ovstage/ovstage_go.h", r"#define OVSTAGE_GO_MOST_LANES (\d+)"),
        ("gocore/tensor/dtype.go", r"const MaxLanes = (\d+)"),
        ("python/ovstage/dlpack.py", r"_MOST_LANES = (\d+)"),
    ],
}


def listed(page: str, folder: str, pattern: str) -> list[str]:
    text = (ROOT / page).read_text()
    names = {path.name for path in (ROOT / folder).iterdir() if re.fullmatch(pattern, path.name)}
    missing = [
        name
        for name in sorted(names)
        if f"{folder}/{name}" not in NOT_LISTED and not re.search(rf"(?<![\w.]){re.escape(name)}\b", text)
    ]
    return [f"{page}: {name} is missing in the list of files" for name in missing]


def rooms(text: str) -> list[str]:
    folders = [*(ROOT / "gocore").iterdir(), *(ROOT / "python/ovstage").iterdir()]
    names = [path.name for path in folders if path.is_dir() and not path.name.startswith((".", "_"))]
    missing = [name for name in sorted(names) if not re.search(rf"^ +{name}/ ", text, re.MULTILINE)]
    return [f"docs/architecture.md: the room {name} is missing" for name in missing]


def locks(text: str) -> list[str]:
    section = text.partition("\n## Locks\n")[2].partition("\n## ")[0]
    faults = []
    for folder in ("capi_export", "gocore", "python/native", "python/ovstage"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in {".c", ".go", ".py"} or path.name.endswith("_test.go"):
                continue
            if LOCK.search(path.read_text()) and path.name not in section:
                faults.append(f"docs/architecture.md: Locks does not name {path.relative_to(ROOT)}, which has one")
    return faults


def slots() -> list[str]:
    sources = [*(ROOT / "capi_export").glob("*.c"), *(ROOT / "capi_export/include").rglob("*.h")]
    known = set(re.findall(r"\b[a-z][a-z0-9_]+\b", "\n".join(path.read_text() for path in sources)))
    faults = []
    for path in sorted((ROOT / "capi_export").glob("*.go")):
        for name in re.findall(r"^//export ovgo(\w+)", path.read_text(), re.MULTILINE):
            slot = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
            if name not in NO_SLOT and not {slot, f"ovstage_{slot}"} & known:
                faults.append(f"{path.relative_to(ROOT)}: ovgo{name} has the name of no slot: {slot}")
    return faults


def limits() -> list[str]:
    faults = []
    for what, pages in LIMITS.items():
        said = {page: re.findall(pattern, (ROOT / page).read_text()) for page, pattern in pages}
        if len({tuple(numbers) for numbers in said.values()}) != 1 or [] in said.values():
            faults.append(f"the most {what}: " + ", ".join(f"{page} says {numbers}" for page, numbers in said.items()))
    return faults


def main() -> int:
    architecture = (ROOT / "docs/architecture.md").read_text()
    faults = [fault for each in LISTS for fault in listed(*each)]
    faults += [*rooms(architecture), *locks(architecture), *slots(), *limits()]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
