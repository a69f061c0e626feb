"""The folder that a recording is: its files, their records, and what is read of them before Arrow sees a byte.

::

    run.ovr/
      manifest.json   version of the format and of the library, name of the stage; written beside and renamed
      paths.arrows    paths of prims, in the order of their ids, which begin at 1
      tokens.arrows   texts behind the ids of tokens, likewise
      lists.arrows    lists of prims that came again, as ids of paths
      4.arrows ...    a stream of Arrow IPC for each attribute and schema: a row for each ordinal
      commits         48 bytes for each message of a stream: where it is, and its digest

A stream is written first and its commit behind it. What no commit names does not exist, and no message is given to
Arrow before its digest was found right: Arrow itself finds next to no damage.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from ovstage.errors import ErrorCode, OvstageError
from ovstage.tables import package

__all__ = ["COMMITS", "FIRST", "INLINE", "LISTS", "PATHS", "TOKENS", "VERSION", "Commit", "Kind", "Schema"]

VERSION = 1
"""Of the format. A reader takes its own version and, where there is one, the version before it."""

COMMITS = "commits"
MANIFEST = "manifest.json"

PATHS, TOKENS, LISTS = 1, 2, 3
"""The streams of names."""

FIRST = 4
"""The first stream of values."""

REACHED = 0xFFFFFFFF
"""In place of a stream, in a commit without a message: everything up to its ordinal is on file."""

INLINE = 0xFFFFFFFF
"""In place of a list: the prims are in the row."""

_RECORD = struct.Struct("<IIQQQQQ")
_SEED = 0x4F565201


class Kind(IntEnum):
    """What a row of a stream is."""

    CHANGE = 0
    """Values that changed at its ordinal, or since the one before where several were joined."""
    KEYFRAME = 1
    """All values as of its ordinal. A prim that none of an attribute's keyframes of an ordinal has, has no value."""
    DELETE = 2
    """Prims that lost the attribute."""


@dataclass(frozen=True)
class Schema:
    """What the values of a stream are. ``dtype`` is NumPy's name of it, or that of ml_dtypes."""

    attribute: str
    dtype: str
    lanes: int
    is_array: bool
    role: int
    type_name: str

    def metadata(self) -> dict[str, str]:
        """For the field of the values."""
        return {
            "attribute": self.attribute,
            "dtype": self.dtype,
            "lanes": str(self.lanes),
            "array": str(int(self.is_array)),
            "role": str(self.role),
            "type": self.type_name,
        }

    @classmethod
    def of(cls, said: dict[bytes, bytes]) -> Schema:
        """From the field's metadata."""
        text = {key.decode(): value.decode() for key, value in said.items()}
        return cls(
            text["attribute"],
            text["dtype"],
            int(text["lanes"]),
            text["array"] == "1",
            int(text["role"]),
            text["type"],
        )


@dataclass(frozen=True)
class Commit:
    """A message of a stream that is whole on file."""

    stream: int
    offset: int
    length: int
    ordinal: int
    """The lowest of its rows; the highest that is on file, of a commit without a message."""
    digest: int

    def packed(self) -> bytes:
        """As it is on file."""
        head = struct.pack("<IIQQQQ", _SEED, self.stream, self.offset, self.length, self.ordinal, self.digest)
        return head + digest(head).to_bytes(8, "little")


def digest(content: Any) -> int:
    """XXH3 of some bytes, 64 bits."""
    return int(package("xxhash", "A recording").xxh3_64_intdigest(content))


def commits(folder: Path) -> tuple[list[Commit], int]:
    """The commits of a recording up to the first that is damaged, and how many bytes lie behind."""
    content = (folder / COMMITS).read_bytes()
    found = []
    for at in range(0, len(content) - _RECORD.size + 1, _RECORD.size):
        seed, stream, offset, length, ordinal, told, own = _RECORD.unpack_from(content, at)
        if seed != _SEED or own != digest(content[at : at + _RECORD.size - 8]):
            break
        found.append(Commit(stream, offset, length, ordinal, told))
    return found, len(content) - len(found) * _RECORD.size


def write_manifest(folder: Path, name: str) -> None:
    """Say what the folder is."""
    from ovstage._version import __version__

    beside = folder / f"{MANIFEST}.partial"
    beside.write_text(json.dumps({"format": VERSION, "library": __version__, "stage": name}) + "\n")
    beside.replace(folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the folder says that it is; refused where it is no recording, or one that cannot be read."""
    try:
        said = json.loads((folder / MANIFEST).read_bytes())
        version, name = said["format"], said["stage"]
        if not isinstance(version, int) or not isinstance(name, str):
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError):
        raise unreadable(folder, f"it is no recording: {MANIFEST} is missing or no manifest") from None
    if version > VERSION:
        raise unreadable(folder, f"its format is version {version}, this library reads up to {VERSION}: use a newer")
    return dict(said)


def unreadable(folder: str | os.PathLike[str], why: str) -> OvstageError:
    """A recording that cannot be read, in a sentence."""
    return OvstageError(ErrorCode.INVALID_ARGUMENT, f"cannot read {os.fspath(folder)!r}: {why}")


def stream_file(stream: int) -> str:
    """The name of a stream's file."""
    return {PATHS: "paths.arrows", TOKENS: "tokens.arrows", LISTS: "lists.arrows"}.get(stream, f"{stream}.arrows")


def arrow_schema(pa: Any, schema: Schema) -> Any:
    """The schema of a stream of values."""
    element = pa.from_numpy_dtype(stored_dtype(schema.dtype)[0])
    lanes = schema.lanes * stored_dtype(schema.dtype)[1]
    value = element if lanes == 1 else pa.list_(element, lanes)
    if schema.is_array:
        value = pa.large_list(value)
    return pa.schema(
        [
            pa.field("ordinal", pa.uint64()),
            pa.field("since", pa.uint64()),
            pa.field("seconds", pa.float64()),
            pa.field("kind", pa.uint8()),
            pa.field("list", pa.uint32()),
            pa.field("prims", pa.list_(pa.uint32())),
            pa.field("value", pa.list_(value), metadata=schema.metadata()),
        ]
    )


def names_schema(pa: Any, stream: int) -> Any:
    """The schema of a stream of names."""
    return pa.schema([("prims", pa.list_(pa.uint32()))] if stream == LISTS else [("text", pa.large_string())])


def stored_dtype(name: str) -> tuple[Any, int]:
    """As what elements of a type are on file: Arrow has no complex numbers, no bfloat16 and no float8, and packs bools.

    NumPy's type, and how many of it make an element.
    """
    import numpy as np

    if name == "bool":
        return np.dtype("u1"), 1
    if name.startswith("complex"):
        return np.dtype(f"f{int(name.removeprefix('complex')) // 16}"), 2
    if name.startswith("bfloat"):
        return np.dtype("u2"), 1
    if name.startswith("float8"):
        return np.dtype("u1"), 1
    return np.dtype(name), 1


def element_type(name: str) -> Any:
    """NumPy's type of that name, with the help of ml_dtypes where NumPy has none."""
    import numpy as np

    from ovstage.dlpack import extension_dtype

    return extension_dtype(name) if name.startswith(("bfloat", "float8")) else np.dtype(name)


def whole_messages(found: Sequence[Commit]) -> dict[int, list[Commit]]:
    """The messages of each stream, in the order of the file."""
    streams: dict[int, list[Commit]] = {}
    for commit in found:
        if commit.stream != REACHED:
            streams.setdefault(commit.stream, []).append(commit)
    return streams
