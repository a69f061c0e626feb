"""Writing a recording: rows are collected for each stream, become messages, and exist once they are committed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ovstage.cache import drop_oldest
from ovstage.recording import format as layout
from ovstage.recording.format import INLINE, LISTS, PATHS, TOKENS, Commit, Kind, Schema
from ovstage.tables import ids_of, package

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ovstage.changes import Change, Part
    from ovstage.stage import Stage

__all__ = ["Writer"]

BATCH_ROWS = 64
BATCH_BYTES = 256 << 10
"""A message is made of so many ordinals, or bytes, whichever comes first: one costs some 500 bytes."""

MOST_SEEN = 4096
"""Of so many sets of prims it is known that they were there once."""


class Writer:
    """A recording that is being written. One thread uses it. What ``flush`` has returned for survives the process."""

    def __init__(self, folder: Path, stage: Stage, begin: float) -> None:
        self._pa = package("pyarrow", "A recording")
        package("xxhash", "A recording")
        self._folder, self._stage, self._begin = folder, stage, begin
        self._files: dict[int, FileIO] = {}
        self._ends: dict[int, int] = {}
        self._committed: list[Commit] = []
        self._rows: dict[Schema, _Rows] = {}
        self._numbers: dict[Schema, int] = {}
        self._lists: dict[bytes, int | None] = {}
        self._list_count = 0
        self._texts = {
            "path": _Texts(self, PATHS, stage._path_strings),
            "token": _Texts(self, TOKENS, stage._token_strings),
        }
        self.bytes = 0
        """Bytes that are on file."""
        self.messages = 0
        folder.mkdir()
        self._commits = FileIO(folder / layout.COMMITS, "xb")
        layout.write_manifest(folder, stage._name)
        _warm_up(self._pa)

    def add(self, change: Change, seconds: float) -> None:
        """What happened to one attribute; a resync is a keyframe of it."""
        kind = Kind.KEYFRAME if change.resync else Kind.CHANGE
        told = set()
        for part in change.parts:
            schema = _schema(change.name, part)
            told.add(schema)
            self._add(schema, kind, change, seconds, self._prims(part), *self._values(schema, part))
        if kind is Kind.KEYFRAME:  # values that there were under another schema are none any more
            for schema in [known for known in self._numbers if known.attribute == change.name and known not in told]:
                self._add(schema, kind, change, seconds, *_nothing(schema))
        lost = change.deleted
        if lost or (change.resync and not change.parts):
            schema, ids = _lost(change.name), self._texts["path"].of_texts(lost)
            self._add(schema, Kind.DELETE if lost else kind, change, seconds, ids, *_nothing(schema)[1:])

    def flush(self, reached: int, *, sync: bool = False) -> None:
        """Write all that was added: everything up to an ordinal is on file then."""
        for texts in self._texts.values():
            texts.flush()
        for schema, rows in self._rows.items():
            if rows.ordinals:
                self._message(self._number(schema), rows.batch(self._pa, schema), rows.ordinals[0])
                rows.clear()
        if sync:
            for file in self._files.values():
                os.fsync(file.fileno())
        self._commit(Commit(layout.REACHED, 0, 0, reached, 0))
        if sync:
            os.fsync(self._commits.fileno())

    def close(self) -> None:
        """Close the files. What was not flushed is lost."""
        for file in (*self._files.values(), self._commits):
            file.close()

    @property
    def full(self) -> bool:
        """Whether there is enough for a message."""
        return any(len(rows.ordinals) >= BATCH_ROWS or rows.bytes >= BATCH_BYTES for rows in self._rows.values())

    # --- steps ---

    def _add(
        self,
        schema: Schema,
        kind: Kind,
        change: Change,
        seconds: float,
        prims: npt.NDArray[np.uint32],
        values: npt.NDArray[Any],
        sizes: npt.NDArray[np.int64] | None,
    ) -> None:
        rows = self._rows.setdefault(schema, _Rows())
        self._number(schema)
        number = self._list(prims)
        rows.add(change.until, (change.since or 0) + 1, seconds - self._begin, kind, number, prims, values, sizes)

    def _prims(self, part: Part) -> npt.NDArray[np.uint32]:
        return self._texts["path"].of_listed(part._listed, part._positions)

    def _values(self, schema: Schema, part: Part) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
        """Copies: what a recording holds of a snapshot would make writers copy whole columns."""
        import numpy as np

        column = part.column
        dtype, _ = layout.stored_dtype(schema.dtype)
        lanes = ids_of(schema.attribute, schema.type_name, column.semantic)
        if lanes and column.values.dtype == np.uint64 and column.values.size % len(lanes) == 0:
            ids = column.values.reshape(-1, len(lanes))
            numbers = np.empty(ids.shape, np.uint64)
            for lane, kind in enumerate(lanes):
                numbers[:, lane] = self._texts[kind].of_ids(ids[:, lane])
            flat: npt.NDArray[Any] = numbers.reshape(-1)
        else:
            flat = np.array(column.values, copy=True, order="C").reshape(-1).view(dtype)
        return flat, None if column.offsets is None else np.diff(column.offsets)

    def _list(self, prims: npt.NDArray[np.uint32]) -> int:
        """The list's number, where the same prims were told of before."""
        if len(prims) < 2:
            return INLINE
        key = layout.digest(prims.tobytes()).to_bytes(8, "little") + len(prims).to_bytes(8, "little")
        known = self._lists.get(key, -1)
        if known == -1:
            self._lists[key] = None
            drop_oldest(self._lists, MOST_SEEN)
            return INLINE
        if known is None:
            pa = self._pa
            batch = pa.record_batch([pa.array([prims], pa.list_(pa.uint32()))], layout.names_schema(pa, LISTS))
            self._texts["path"].flush()
            self._message(LISTS, batch, 0)
            known = self._lists[key] = self._list_count
            self._list_count += 1
        return known

    def _number(self, schema: Schema) -> int:
        return self._numbers.setdefault(schema, layout.FIRST + len(self._numbers))

    def _message(self, stream: int, batch: Any, ordinal: int) -> None:
        if stream not in self._files:
            self._files[stream] = FileIO(self._folder / layout.stream_file(stream), "xb")
            self._append(stream, batch.schema.serialize(), 0)
        self._append(stream, batch.serialize(), ordinal)

    def _append(self, stream: int, message: Any, ordinal: int) -> None:
        at = self._ends.get(stream, 0)
        _write_all(self._files[stream], message)
        self._ends[stream] = at + len(message)
        self._commit(Commit(stream, at, len(message), ordinal, layout.digest(message)))
        self.bytes += len(message)
        self.messages += 1

    def _commit(self, commit: Commit) -> None:
        _write_all(self._commits, commit.packed())
        self.bytes += len(commit.packed())


class _Rows:
    """The rows of one stream that are no message yet."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.ordinals: list[int] = []
        self._since: list[int] = []
        self._seconds: list[float] = []
        self._kinds: list[int] = []
        self._lists: list[int] = []
        self._prims: list[npt.NDArray[np.uint32]] = []
        self._counts: list[int] = []
        self._values: list[npt.NDArray[Any]] = []
        self._sizes: list[npt.NDArray[np.int64]] = []
        self.bytes = 0

    def add(
        self,
        ordinal: int,
        since: int,
        seconds: float,
        kind: Kind,
        number: int,
        prims: npt.NDArray[np.uint32],
        values: npt.NDArray[Any],
        sizes: npt.NDArray[np.int64] | None,
    ) -> None:
        self.ordinals.append(ordinal)
        self._since.append(since)
        self._seconds.append(seconds)
        self._kinds.append(kind)
        self._lists.append(number)
        self._prims.append(prims if number == INLINE else prims[:0])
        self._counts.append(len(prims))
        self._values.append(values)
        if sizes is not None:
            self._sizes.append(sizes)
        self.bytes += values.nbytes

    def batch(self, pa: Any, schema: Schema) -> Any:
        import numpy as np

        shape = layout.arrow_schema(pa, schema)
        flat = pa.array(np.concatenate(self._values))
        lanes = schema.lanes * layout.stored_dtype(schema.dtype)[1]
        rows = pa.FixedSizeListArray.from_arrays(flat, lanes) if lanes > 1 else flat
        if schema.is_array:
            rows = pa.LargeListArray.from_arrays(pa.array(_offsets(self._sizes, np.int64)), rows)
        counts = [0 if kind == Kind.DELETE else n for kind, n in zip(self._kinds, self._counts, strict=True)]
        values = pa.ListArray.from_arrays(pa.array(_offsets([counts], np.int32)), rows)
        inline = _offsets([[len(prims) for prims in self._prims]], np.int32)
        columns = [
            pa.array(self.ordinals, pa.uint64()),
            pa.array(self._since, pa.uint64()),
            pa.array(self._seconds, pa.float64()),
            pa.array(self._kinds, pa.uint8()),
            pa.array(self._lists, pa.uint32()),
            pa.ListArray.from_arrays(pa.array(inline), pa.array(np.concatenate(self._prims))),
            values,
        ]
        arrays = [column.cast(field.type) for column, field in zip(columns, shape, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=shape)


class _Texts:
    """Names of one kind by their number in the recording, which begins at 1: 0 is no name."""

    def __init__(self, writer: Writer, stream: int, lookup: Callable[[list[int]], list[str]]) -> None:
        self._writer, self._stream, self._lookup = writer, stream, lookup
        self._known: dict[str, int] = {}
        self._fresh: list[str] = []
        self._listed: dict[int, tuple[object, npt.NDArray[np.uint32]]] = {}

    def of_texts(self, texts: Sequence[str]) -> npt.NDArray[np.uint32]:
        import numpy as np

        known = self._known
        if fresh := [text for text in dict.fromkeys(texts) if text not in known]:
            known.update(zip(fresh, range(len(known) + 1, len(known) + 1 + len(fresh)), strict=True))
            self._fresh += fresh
        return np.fromiter(map(known.__getitem__, texts), np.uint32, len(texts))

    def of_ids(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
        import numpy as np

        distinct, back = np.unique(ids, return_inverse=True)
        some = distinct[distinct != 0].tolist()
        numbers = self.of_texts(self._lookup(some)) if some else np.zeros(0, np.uint32)
        return np.concatenate([np.zeros(len(distinct) - len(some), np.uint32), numbers])[back.reshape(-1)]

    def of_listed(self, listed: Any, positions: Sequence[int]) -> npt.NDArray[np.uint32]:
        """Of some paths of a list. The list's are looked up once."""
        import numpy as np

        kept = self._listed.get(id(listed))
        if kept is None:
            kept = self._listed[id(listed)] = listed, self.of_texts(listed.texts)
            drop_oldest(self._listed, 8)
        return kept[1][np.asarray(positions, np.intp)]

    def flush(self) -> None:
        if self._fresh:
            pa = self._writer._pa
            batch = pa.record_batch([pa.array(self._fresh, pa.large_string())], layout.names_schema(pa, self._stream))
            self._writer._message(self._stream, batch, 0)
            self._fresh = []


def _warm_up(pa: Any) -> None:
    """A message that goes nowhere. The first one of a process takes half a second, in which Arrow imports pandas where
    that is there: not while ordinals go by.
    """
    rows, schema = _Rows(), _lost("")
    rows.add(0, 0, 0.0, Kind.CHANGE, INLINE, *_nothing(schema))
    layout.digest(rows.batch(pa, schema).serialize())


def _schema(name: str, part: Part) -> Schema:
    column = part.column
    lanes = column.values.shape[1] if column.values.ndim > 1 else 1
    array = column.offsets is not None
    return Schema(name, str(column.values.dtype), lanes, array, int(column.semantic), column.type_name)


def _lost(name: str) -> Schema:
    """The stream of an attribute's deletes, which has no values."""
    return Schema(name, "uint8", 1, False, 0, "")


def _nothing(schema: Schema) -> tuple[npt.NDArray[np.uint32], npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """A row without prims."""
    import numpy as np

    return (
        np.zeros(0, np.uint32),
        np.zeros(0, layout.stored_dtype(schema.dtype)[0]),
        (np.zeros(0, np.int64) if schema.is_array else None),
    )


def _offsets(counts: Sequence[Any], dtype: Any) -> npt.NDArray[Any]:
    import numpy as np

    joined = np.concatenate([np.asarray(each, np.int64) for each in counts]) if counts else np.zeros(0, np.int64)
    return np.concatenate([[0], np.cumsum(joined)]).astype(dtype)


def _write_all(file: FileIO, content: Any) -> None:
    """An unbuffered file may take less than it is given."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
