"""Reading a recording: which ordinals it has, the stage as it was at one of them, and its values as tables."""

from __future__ import annotations

import bisect
import mmap
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ovstage import guard
from ovstage.enums import AttributeSemantic
from ovstage.errors import ErrorCode, OvstageError
from ovstage.recording import format as layout
from ovstage.recording.format import INLINE, LISTS, PATHS, TOKENS, Commit, Kind, Schema, unreadable
from ovstage.selection import select
from ovstage.shown import counted
from ovstage.tables import ids_of, package
from ovstage.values import OrdinalRange, StageConfig, WriteDesc

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow

    from ovstage.handles import Query
    from ovstage.stage import Stage

__all__ = ["Recording"]


class Recording:
    """What ``stage.record`` or ``stage.save`` has written, as of now: ``Recording("run.ovr")``.

    It may be opened while it is still being written, and has what was on file then. Threads may share it. Raises
    ``OvstageError`` for a folder that is no recording, or one of a newer format. Needs pyarrow and xxhash: the extra
    ``record``. Example::

        run = ovstage.Recording("run.ovr")
        stage = run.at(run.ordinals[-1])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._pa = package("pyarrow", "A recording")
        self.path = Path(path)
        """The folder."""
        self.name: str = layout.read_manifest(self.path)["stage"]
        """The name of the stage that was recorded."""
        try:
            found, self._left = layout.commits(self.path)
        except OSError as error:
            raise unreadable(self.path, f"{layout.COMMITS}: {error.strerror}") from error
        reached = [at for at, commit in enumerate(found) if commit.stream == layout.REACHED]
        self._unfinished = found[reached[-1] + 1 :] if reached else found
        found = found[: reached[-1] + 1] if reached else []
        self.reached = max((found[at].ordinal for at in reached), default=0)
        """Everything up to this ordinal is on file; attributes that were sealed by themselves may be ahead of it."""
        messages = layout.whole_messages(found)
        self._names = {stream: messages.get(stream, []) for stream in (PATHS, TOKENS, LISTS)}
        streams = [_Stream(self, number, of) for number, of in sorted(messages.items()) if number >= layout.FIRST]
        self._streams: dict[str, list[_Stream]] = {}
        for stream in streams:
            self._streams.setdefault(stream.schema.attribute, []).append(stream)

    @property
    def damage(self) -> str:
        """What of the files cannot be used, in words; empty where that is nothing."""
        said = []
        if self._unfinished:
            said.append(f"{counted(len(self._unfinished), 'message')} that no flush ended")
        if self._left:
            said.append(f"{self._left} bytes of {layout.COMMITS} behind the last whole one")
        return " and ".join(said)

    @property
    def attributes(self) -> list[str]:
        """The names of the attributes, sorted."""
        return sorted(self._streams)

    @cached_property
    def last(self) -> int:
        """The highest ordinal that ``at`` takes."""
        return max([self.reached, *(stream.last for streams in self._streams.values() for stream in streams)])

    @cached_property
    def ordinals(self) -> list[int]:
        """The ordinals at which anything changed, ascending: those that ``at`` gives exactly."""
        found = {row.ordinal for streams in self._streams.values() for stream in streams for row in stream.rows()}
        return sorted(found)

    def at(self, ordinal: int, into: Stage | None = None, *, config: StageConfig | None = None) -> Stage:
        """The stage as it was at an ordinal: a new one, which is the caller's to destroy, or ``into`` one.

        All values are written at ``ordinal``, which is then the write floor. Of an ordinal between two that were
        recorded it is the lower one's. ``config`` is that of the new stage. Roles, types, texts and relationships come
        back; units and scenes are not part of a stage's values. Raises ``OvstageError`` with ``OUT_OF_RANGE`` for an
        ordinal outside of the recording, and what ``write`` raises for ``into`` a stage that has sealed it.
        """
        from ovstage.stage import Stage

        ordinal = guard.ordinal(ordinal, "ordinal")
        if not self._begin <= ordinal <= self.last:
            raise OvstageError(
                ErrorCode.OUT_OF_RANGE, f"ordinal {ordinal} is not in {self!r}, which has {self._begin} to {self.last}"
            )
        state = [self._state(name, ordinal) for name in self._streams]
        stage = Stage(self.name, config) if into is None else into
        try:
            gone = self._gone(stage, state) if into is not None else {}
            self._write(stage, ordinal, [part for parts in state for part in parts], gone)
            stage.advance_write_floor(ordinal).wait()
        except BaseException:
            if into is None:
                stage.destroy()
            raise
        return stage

    def replay(
        self, stage: Stage, start: int | None = None, stop: int | None = None, *, speed: float | None = None
    ) -> Iterator[int]:
        """Bring a stage to ``start``, then through every recorded ordinal up to ``stop``: a generator of ordinals.

        Each ordinal is sealed when it is given. ``speed`` 1.0 waits as long as it took, 2.0 half as long; without it
        nothing waits. Example::

            for ordinal in run.replay(stage):
                print(ordinal, stage.read(paths, ["position"]))
        """
        inside = [n for n in self.ordinals if n >= (start or 0) and n <= (self.last if stop is None else stop)]
        if not inside:
            return
        self.at(inside[0], stage)
        yield inside[0]
        began, at = time.monotonic(), self._seconds(inside[0])
        for ordinal in inside[1:]:
            if speed:
                time.sleep(max(0.0, (self._seconds(ordinal) - at) / speed - (time.monotonic() - began)))
            self._apply(stage, ordinal)
            yield ordinal

    def table(self, attribute: str, start: int | None = None, stop: int | None = None) -> pyarrow.Table:
        """What was recorded of an attribute: a row for each ordinal with ``prims`` and their ``value``.

        The columns are ``ordinal``, ``since`` (the first of the ordinals that are joined in it), ``seconds`` since the
        recording began, ``kind`` (``change``, ``keyframe`` or ``delete``), ``prims`` as paths and ``value``, a list
        with an entry for each prim. Refused where the attribute had values of several types.
        """
        streams = [stream for stream in self._of(attribute) if stream.has_values]
        if len(streams) != 1:
            types = ", ".join(f"{each.schema.dtype}x{each.schema.lanes}" for each in streams) or "none"
            raise ValueError(f"attribute {attribute!r} has values of {len(streams)} types in the recording ({types})")
        return streams[0].table(start, stop)

    def trajectory(
        self, attribute: str, start: int | None = None, stop: int | None = None
    ) -> tuple[npt.NDArray[np.uint64], list[str], npt.NDArray[Any]]:
        """Ordinals ``(T,)``, paths ``(N,)`` and values ``(T, N)`` or ``(T, N, lanes)`` of fixed values.

        Each step is the whole attribute as it was then. Refused where its prims are not the same all the time.
        """
        import numpy as np

        times, prims, values = [], None, []
        for ordinal, parts in self._steps(attribute, start, stop):
            if len(parts) != 1 or parts[0].sizes is not None:
                raise ValueError(f"attribute {attribute!r} has no single array of fixed values at ordinal {ordinal}")
            if prims is not None and not np.array_equal(prims, parts[0].prims):
                raise ValueError(f"the prims of attribute {attribute!r} change at ordinal {ordinal}: take table()")
            prims = parts[0].prims
            times.append(ordinal)
            values.append(self._shaped(parts[0]))
        if prims is None:
            return np.zeros(0, np.uint64), [], np.zeros((0, 0))
        return np.array(times, np.uint64), self._paths_of(prims), np.stack(values)

    def to_parquet(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write a Parquet file for each attribute and type, as ``table`` shows it, and return their paths."""
        parquet = package("pyarrow.parquet", "Recording.to_parquet", "pyarrow")
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        made = []
        for streams in self._streams.values():
            for stream in streams:
                name = "".join(c if c.isalnum() or c in "-_." else "_" for c in stream.schema.attribute)
                made.append(target / f"{name}.{stream.number}.parquet")
                parquet.write_table(stream.table(None, None), made[-1])
        return made

    def __repr__(self) -> str:
        span = f"ordinals {self._begin} to {self.last}" if self._streams else "empty"
        return f"<Recording {str(self.path)!r} of {self.name!r}: {span}, {counted(len(self._streams), 'attribute')}>"

    def _content(self) -> Iterator[tuple[str, str, int, int, int]]:
        """Of each stream: attribute, type, rows, keyframes, bytes."""
        for name in self.attributes:
            for stream in self._streams[name]:
                schema = stream.schema
                kind = (
                    schema.type_name or schema.dtype + f"x{schema.lanes}" * (schema.lanes > 1) + "[]" * schema.is_array
                )
                yield name, kind, *stream.counted()

    # --- states ---

    @cached_property
    def _begin(self) -> int:
        return min((stream.first for streams in self._streams.values() for stream in streams), default=0)

    def _of(self, attribute: str) -> list[_Stream]:
        guard.string(attribute, "attribute")
        if attribute not in self._streams:
            raise KeyError(f"{attribute!r} was not recorded; there are {', '.join(self.attributes) or 'none'}")
        return self._streams[attribute]

    def _state(self, attribute: str, ordinal: int) -> list[_Part]:
        """All values of an attribute as of an ordinal."""
        streams = self._streams[attribute]
        base = max((stream.keyframe(ordinal) for stream in streams), default=0)
        return _composed([(stream.schema, row) for stream in streams for row in stream.rows(base, ordinal)], base)

    def _steps(self, attribute: str, start: int | None, stop: int | None) -> Iterator[tuple[int, list[_Part]]]:
        ordinals = {row.ordinal for stream in self._of(attribute) for row in stream.rows(start or 0, stop)}
        for ordinal in sorted(ordinals):
            yield ordinal, self._state(attribute, ordinal)

    def _seconds(self, ordinal: int) -> float:
        found = (row.seconds for streams in self._streams.values() for s in streams for row in s.rows(ordinal, ordinal))
        return max(found, default=0.0)

    def _apply(self, stage: Stage, ordinal: int) -> None:
        """What changed at an ordinal."""
        parts, gone = [], {}
        for name, streams in self._streams.items():
            rows = [(stream.schema, row) for stream in streams for row in stream.rows(ordinal, ordinal)]
            if any(row.kind == Kind.KEYFRAME for _, row in rows):
                state = self._state(name, ordinal)
                gone.update(self._gone(stage, [state], name))
                parts += state
            else:
                changed = [(schema, row) for schema, row in rows if row.kind == Kind.CHANGE]
                parts += [_Part(schema, row.prims, row.values, row.sizes) for schema, row in changed]
                lost = [row.prims for _, row in rows if row.kind == Kind.DELETE]
                if lost:
                    gone[name] = self._paths_of(lost[0])
        self._write(stage, ordinal, parts, gone)
        stage.advance_write_floor(ordinal).wait()

    def _gone(self, stage: Stage, state: Sequence[Sequence[_Part]], name: str | None = None) -> dict[str, list[str]]:
        """Of each attribute the prims that have it in a stage and not in a state."""
        kept: dict[str, set[str]] = {}
        for parts in state:
            for part in parts:
                kept.setdefault(part.schema.attribute, set()).update(self._paths_of(part.prims))
        there = {attribute.name for attribute in stage.attributes()}
        gone = {}
        with stage.query() as every:
            for each in sorted(there if name is None else there & {name}):
                if lost := _holders(stage, every, each) - kept.get(each, set()):
                    gone[each] = sorted(lost)
        return gone

    def _write(self, stage: Stage, ordinal: int, parts: Sequence[_Part], gone: dict[str, list[str]]) -> None:
        for name, paths in gone.items():
            stage.delete(paths, [name], ordinal).wait()
        for part in parts:  # a prim may have had a value of another type
            if len(self._streams[part.schema.attribute]) > 1 and len(part.prims):
                stage.delete(self._paths_of(part.prims), [part.schema.attribute], ordinal).wait()
        together: dict[bytes, list[_Part]] = {}
        for part in parts:
            if len(part.prims):
                together.setdefault(part.prims.tobytes(), []).append(part)
        for same in together.values():
            batches: list[list[_Part]] = []
            for part in same:  # a batch takes an attribute once
                fit = (b for b in batches if all(o.schema.attribute != part.schema.attribute for o in b))
                batch = next(fit, None)
                if batch is None:
                    batches.append(batch := [])
                batch.append(part)
            chosen = select(stage, self._paths_of(same[0].prims))
            for batch in batches:
                stage.write_attributes(chosen, [self._desc(stage, part) for part in batch], ordinal).wait()

    def _desc(self, stage: Stage, part: _Part) -> WriteDesc:
        from ovstage.dlpack import element_dtype, make_dltensor

        schema, values = part.schema, part.values
        kinds = ids_of(schema.attribute, schema.type_name, AttributeSemantic(schema.role))
        if kinds and schema.dtype == "uint64" and len(values) % len(kinds) == 0:
            values = self._interned(stage, values.reshape(-1, len(kinds)), kinds).reshape(-1)
        else:
            values = values.view(layout.element_type(schema.dtype))
        dtype = element_dtype(values.dtype)
        dtype.lanes = schema.lanes
        tensors: Any
        if part.sizes is None:
            tensors = make_dltensor(values, dtype=dtype, shape=[len(part.prims)])
        else:
            import numpy as np

            cut = np.split(values, schema.lanes * np.cumsum(part.sizes)[:-1])
            tensors = [make_dltensor(v, dtype=dtype, shape=[n]) for v, n in zip(cut, part.sizes.tolist(), strict=True)]
        return WriteDesc(
            schema.attribute,
            tensors,
            is_array=schema.is_array,
            semantic=AttributeSemantic(schema.role),
            type_name=schema.type_name or None,
        )

    def _interned(self, stage: Stage, ids: npt.NDArray[Any], kinds: Sequence[str]) -> npt.NDArray[np.uint64]:
        import numpy as np

        made = np.zeros(ids.shape, np.uint64)
        for lane, kind in enumerate(kinds):
            distinct, back = np.unique(ids[:, lane], return_inverse=True)
            texts = self._paths if kind == "path" else self._tokens
            some = [texts[number - 1] for number in distinct[distinct != 0].tolist()]
            intern = stage._intern_paths if kind == "path" else stage._intern_tokens
            known = np.array([0] * (len(distinct) - len(some)) + (intern(some) if some else []), np.uint64)
            made[:, lane] = known[back.reshape(-1)]
        return made

    def _shaped(self, part: _Part) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = part.values.view(layout.element_type(part.schema.dtype))
        return values if part.schema.lanes == 1 else values.reshape(-1, part.schema.lanes)

    # --- names ---

    @cached_property
    def _paths(self) -> list[str]:
        return self._texts(PATHS)

    @cached_property
    def _tokens(self) -> list[str]:
        return self._texts(TOKENS)

    def _texts(self, stream: int) -> list[str]:
        return [text for batch in self._batches(stream) for text in batch["text"].to_pylist()]

    @cached_property
    def _lists(self) -> list[npt.NDArray[np.uint32]]:
        return [batch["prims"].flatten().to_numpy() for batch in self._batches(LISTS)]  # a message each

    def _batches(self, stream: int) -> Iterator[Any]:
        if found := self._names[stream]:
            file = _File(self, stream, found)
            yield from map(file.batch, range(len(file.commits)))

    def _paths_of(self, prims: npt.NDArray[np.uint32]) -> list[str]:
        paths = self._paths
        return [paths[number - 1] for number in prims.tolist()]


@dataclass(frozen=True)
class _Row:
    """A row of a stream: what happened at one ordinal."""

    ordinal: int
    since: int
    seconds: float
    kind: Kind
    prims: npt.NDArray[np.uint32]
    values: npt.NDArray[Any]
    """Flat, as stored."""
    sizes: npt.NDArray[np.int64] | None
    """Of arrays, how many elements each has."""


@dataclass(frozen=True)
class _Part:
    """Values of one type, in the order of ascending path numbers."""

    schema: Schema
    prims: npt.NDArray[np.uint32]
    values: npt.NDArray[Any]
    sizes: npt.NDArray[np.int64] | None


class _File:
    """The messages of one stream, each judged by its digest before Arrow sees it."""

    def __init__(self, recording: Recording, stream: int, found: Sequence[Commit]) -> None:
        self._pa, self._path, self._name = recording._pa, recording.path, layout.stream_file(stream)
        self._head, *self.commits = found

    @cached_property
    def _content(self) -> memoryview:
        try:
            with open(self._path / self._name, "rb") as file:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise unreadable(self._path, f"{self._name}: {error}") from error

    def _message(self, commit: Commit) -> Any:
        message = self._content[commit.offset : commit.offset + commit.length]
        if len(message) < commit.length or layout.digest(message) != commit.digest:
            raise unreadable(
                self._path,
                f"{self._name} is damaged: the {commit.length} bytes at {commit.offset} are not what was written",
            )
        return self._pa.py_buffer(message)

    @cached_property
    def schema(self) -> Any:
        """Arrow's."""
        return self._pa.ipc.read_schema(self._message(self._head))

    def batch(self, at: int) -> Any:
        """A record batch over the file's own memory."""
        return self._pa.ipc.read_record_batch(self._message(self.commits[at]), self.schema)


class _Stream:
    """The rows of one attribute and schema."""

    def __init__(self, recording: Recording, number: int, found: Sequence[Commit]) -> None:
        self._recording, self.number = recording, number
        self._file = _File(recording, number, found)
        self._firsts = [commit.ordinal for commit in self._file.commits]
        self._kinds: dict[int, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}

    @cached_property
    def schema(self) -> Schema:
        """What its values are."""
        return Schema.of(self._file.schema.field("value").metadata)

    @property
    def first(self) -> int:
        """The lowest ordinal of a row."""
        return self._firsts[0]

    @property
    def last(self) -> int:
        """The highest ordinal of a row."""
        return int(self._ordinals(len(self._firsts) - 1)[0].max())

    @cached_property
    def has_values(self) -> bool:
        """Whether any row has a value: the deletes of an attribute may have a stream of their own."""
        return any(len(self._file.batch(at)["value"].flatten()) for at in range(len(self._firsts)))

    def counted(self) -> tuple[int, int, int]:
        """Rows, keyframes and bytes."""
        kinds = [self._ordinals(at)[1] for at in range(len(self._firsts))]
        size = sum(commit.length for commit in self._file.commits)
        return sum(map(len, kinds)), sum(int((each == Kind.KEYFRAME).sum()) for each in kinds), size

    def keyframe(self, ordinal: int) -> int:
        """The ordinal of the newest keyframe up to an ordinal; 0 without one."""
        for at in range(bisect.bisect_right(self._firsts, ordinal) - 1, -1, -1):
            ordinals, kinds = self._ordinals(at)
            found = ordinals[(kinds == Kind.KEYFRAME) & (ordinals <= ordinal)]
            if len(found):
                return int(found[-1])
        return 0

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[_Row]:
        """The rows from an ordinal to another, both included."""
        end = self._recording.last if stop is None else stop
        from_ = max(0, bisect.bisect_left(self._firsts, start) - 1)
        for at in range(from_, bisect.bisect_right(self._firsts, end)):
            ordinals, _ = self._ordinals(at)
            inside = ((ordinals >= start) & (ordinals <= end)).nonzero()[0]
            if len(inside):
                batch = self._file.batch(at)
                for k in inside.tolist():
                    yield self._row(batch, k)

    def table(self, start: int | None, stop: int | None) -> pyarrow.Table:
        """See ``Recording.table``."""
        pa, recording = self._recording._pa, self._recording
        lo, hi = start or 0, recording.last if stop is None else stop
        schema = self._file.schema.set(3, pa.field("kind", pa.string())).remove(4)
        schema = schema.set(4, pa.field("prims", pa.list_(pa.string())))
        batches = []
        for at in range(len(self._firsts)):
            ordinals, kinds = self._ordinals(at)
            inside = (ordinals >= lo) & (ordinals <= hi)
            if inside.any():
                batch = self._file.batch(at)
                prims = [recording._paths_of(self._row(batch, k).prims) for k in range(batch.num_rows)]
                words = [Kind(kind).name.lower() for kind in kinds.tolist()]
                columns = [*batch.columns[:3], pa.array(words), pa.array(prims, pa.list_(pa.string())), batch["value"]]
                batches.append(pa.RecordBatch.from_arrays(columns, schema=schema).filter(pa.array(inside)))
        return pa.Table.from_batches(batches, schema=schema)

    def _ordinals(self, at: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        known = self._kinds.get(at)
        if known is None:
            batch = self._file.batch(at)
            known = self._kinds[at] = batch["ordinal"].to_numpy().copy(), batch["kind"].to_numpy().copy()
        return known

    def _row(self, batch: Any, k: int) -> _Row:
        import numpy as np

        number = batch["list"][k].as_py()
        prims = batch["prims"][k].values.to_numpy() if number == INLINE else self._recording._lists[number]
        values, sizes = batch["value"][k].values, None
        if self.schema.is_array:
            sizes = np.diff(values.offsets.to_numpy()).astype(np.int64)
            values = values.flatten()
        if self._recording._pa.types.is_fixed_size_list(values.type):
            values = values.flatten()
        ordinal, since, seconds = (batch[name][k].as_py() for name in ("ordinal", "since", "seconds"))
        return _Row(ordinal, since, seconds, Kind(batch["kind"][k].as_py()), prims, values.to_numpy(), sizes)


def _holders(stage: Stage, query: Query, attribute: str) -> set[str]:
    """The paths of the prims that have an attribute, as far as it is sealed."""
    found: set[str] = set()
    sealed = OrdinalRange.latest(stage._sealed(stage._intern_tokens([attribute])))
    with stage.read_attributes(query, [attribute], sealed) as read:
        for group in read.groups():
            with group:
                paths = stage._lists.of(stage, group.prim_list).texts
                found.update(paths[at] for at in group.prim_indices().tolist())
    return found


def _composed(told: list[tuple[Schema, _Row]], base: int) -> list[_Part]:
    """What rows leave: later ones hide earlier ones, prim by prim. ``base`` is the keyframe's ordinal."""
    import numpy as np

    told = [(s, row) for s, row in told if row.ordinal > base or not base or row.kind == Kind.KEYFRAME]
    told = sorted((each for each in told if len(each[1].prims)), key=lambda each: each[1].ordinal)
    if not told:
        return []
    prims = np.concatenate([row.prims for _, row in told])
    counts = [len(row.prims) for _, row in told]
    _, last = np.unique(prims[::-1], return_index=True)
    newest = np.sort(len(prims) - 1 - last)  # in the order of the rows
    begins = np.concatenate([[0], np.cumsum(counts)])
    kept: dict[Schema, list[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]]] = {}
    for at, (schema, row) in enumerate(told):
        if row.kind != Kind.DELETE:
            chosen = newest[np.searchsorted(newest, begins[at]) : np.searchsorted(newest, begins[at + 1])] - begins[at]
            kept.setdefault(schema, []).append(_gathered(row, chosen))
    parts = []
    for schema, pieces in kept.items():
        joined = np.concatenate([piece[0] for piece in pieces])
        values = np.concatenate([piece[1] for piece in pieces])
        sizes = np.concatenate([piece[2] for piece in pieces]) if schema.is_array else None
        order = np.argsort(joined, kind="stable")
        row = _Row(0, 0, 0.0, Kind.CHANGE, joined, values, sizes)
        if len(joined):
            parts.append(_Part(schema, *_gathered(row, order)))
    return parts


def _gathered(
    row: _Row, chosen: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """Some of the prims of a row, with their values."""
    import numpy as np

    if len(chosen) == len(row.prims) and np.array_equal(chosen, np.arange(len(chosen))):
        return row.prims, row.values, row.sizes
    if row.sizes is None:
        rows = row.values.reshape(len(row.prims), -1)
        return row.prims[chosen], rows[chosen].reshape(-1), None
    width = len(row.values) // max(1, int(row.sizes.sum()))
    begins = np.concatenate([[0], np.cumsum(row.sizes)])
    sizes = row.sizes[chosen]
    ends = np.cumsum(sizes)
    elements = np.arange(int(sizes.sum())) + np.repeat(begins[chosen] - (ends - sizes), sizes)
    return row.prims[chosen], row.values.reshape(-1, max(1, width))[elements].reshape(-1), sizes
