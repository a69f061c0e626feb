"""What a stage hands out for work under way: queries, reads, maps and the rest.

Every handle is open until it is released (a map: until it is unmapped or aborted). A ``with`` block does that and waits
for it. A handle dropped while still open is released by its finaliser, followed by a ``ResourceWarning``. Handles may
be used from any thread; of two threads that release one, the second gets ``INVALID_HANDLE``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn, Self

from ovstage import guard, leak, tables
from ovstage._load import native
from ovstage.columns import Column, Columns, column
from ovstage.errors import OvstageError
from ovstage.groups import MapGroup, ReadGroup
from ovstage.guard import TIMEOUT_INFINITE
from ovstage.shown import counted, few, shown
from ovstage.values import HierarchyResult, Numbers, QueryResult

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ovstage._native import Operation
    from ovstage.stage import Stage
else:
    Operation = native.Operation

__all__ = ["Hierarchy", "Map", "Operation", "OrdinalQuery", "Query", "Read"]


class Handle(native.Handle):
    """A numbered native object, the stage it belongs to, and the operation that opens it."""

    _ended = "released"
    _ending = "release()"

    if TYPE_CHECKING:

        @property
        def _stage(self) -> Stage: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self._open or not self.handle:
            return
        try:
            self._end().wait()
        except OvstageError:
            if error is None:
                raise

    def _forgotten(self) -> None:
        """What the finaliser of a handle says that it found open, and has ended."""
        leak.warn(f"{type(self).__name__} {self.handle} was garbage-collected without {self._ending}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.handle}{shown(self._state)}>"

    def _state(self) -> str:
        if not self._open:
            return f", {self._ended}"
        if not self.handle:
            return f", refused: {self.op.error_message()}" if self.op is not None else ", refused"
        return self._described()

    def _described(self) -> str:
        """What ``repr`` says of one that is open."""
        return ""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise guard.uncopied(self)  # two objects would each release the one native handle

    def _end(self) -> Operation:
        raise NotImplementedError


class Query(Handle):
    """The prims that writes, reads and maps of a call address, in a fixed order."""

    _path_list: int | None = None  # kept alive, not owned: the caller that created the list still releases it

    def _described(self) -> str:
        attributes, prims, _ = self._stage._query_result(self, 0)
        names = few(self._stage._token_strings(attributes), len(attributes))
        return f": {counted(prims, 'prim')}, {counted(len(attributes), 'attribute')}{names}"

    def result(self, timeout: int = TIMEOUT_INFINITE) -> QueryResult:
        """What the query matched. Raises ``OvstageError``, with code ``TIMEOUT`` when it is not there in time."""
        return self._stage.fetch_query_result(self, timeout)

    def refresh(self) -> Operation:
        """Ask the filter again: from now on the query stands for the prims that meet it in the latest executed state.

        Reads, groups and maps made before keep their prims. While the prims stay the same, so does the ``prim_list`` of
        groups. A query over a path list stays what it is. A filter that cannot be served any more fails the operation
        and leaves the query as it was.
        """
        return self._stage.refresh_query(self)

    def where(self, mask: Numbers, count: int | None = None) -> Query:
        """Some prims of this query, in its order, as a query of its own: those whose truth value is true.

        ``mask`` has one truth value per prim, as in ``write_attribute``; words of 64 bits need ``count``, the number of
        prims of this query. The result stays what it is when this query is refreshed or released. It may be dropped
        without ``release()``, and costs little: what is known of a mask that recurs is kept. Raises
        ``TypeError`` and ``ValueError`` for what is no mask of this query. Example::

            done = np.array([True, False])  # of each robot: those that are done stop
            stage.write_attribute(query.where(done), "velocity", 2, np.zeros((1, 3), np.float32), is_array=False)
        """
        return self._stage._query_where(self, mask, count)

    def release(self) -> Operation:
        """Let the query go, after the operations that use it."""
        return self._stage.release_query(self)

    _end = release


class Part(Query):
    """What ``Query.where`` makes. It ends with its last user, without a warning: there is nothing to forget."""


class Read(Handle):
    """A snapshot of sealed values, fetched group by group. Groups outlive the read that they came from."""

    def fetch_next(self, timeout: int = TIMEOUT_INFINITE) -> ReadGroup | None:
        """The next group, ``None`` after the last. The caller releases it."""
        return self._stage.fetch_read_next(self, timeout)

    def groups(self, timeout: int = TIMEOUT_INFINITE) -> Iterator[ReadGroup]:
        """Every remaining group. The caller releases each."""
        while (group := self.fetch_next(timeout)) is not None:
            yield group

    def to_numpy(self, timeout: int = TIMEOUT_INFINITE) -> Columns[int]:
        """Every remaining group, as one ``Column`` per attribute in the order of the query, by the attribute's token.

        The groups are released. An attribute that no queried prim has, or for a range read none that changed, is left
        out: taking it raises a ``KeyError`` that says why. Raises ``ValueError`` where an attribute has several element
        types on different prims.
        """
        found, missing, _ = self._gather(timeout)
        return Columns(found, missing)

    def to_arrow(self, timeout: int = TIMEOUT_INFINITE, *, strings: bool = False) -> pyarrow.Table:
        """Every remaining group as one ``pyarrow.Table``: a row per prim of the query, a column per attribute.

        The first column, ``usd-path``, has the path of each prim. Values of L lanes are fixed-size lists, arrays are
        lists, a prim without a value is null. Arrow reads the memory that ``to_numpy`` would give, but for truth
        values, which it packs into bits. A prim that a range read found deleted is null, too; where there are any, a
        column of truth values called ``<attribute> deleted`` tells which.

        Values of the type ``string`` are texts. With ``strings=True`` ids of tokens and paths come as what they name,
        too, and arrays of the role ``STRING`` as text: copies. The metadata of a field has ``role``, ``dtype``,
        ``lanes`` and, where it is known, ``type``; ``Stage.write_arrow`` goes by it. Without any attribute there are no
        rows. Why an attribute is left out is told by the ``missing`` of the schema's metadata, JSON by name. The groups
        are released. Raises ``ModuleNotFoundError`` without pyarrow; ``ValueError`` for an element type that Arrow
        lacks (bfloat16, float8, complex), and as ``to_numpy``.
        """
        self._stage._begin("to_arrow")
        pa = tables.package("pyarrow", "Read.to_arrow")
        return tables.arrow(pa, self._content(timeout, strings))

    def to_pandas(self, timeout: int = TIMEOUT_INFINITE, *, strings: bool = False) -> pandas.DataFrame:
        """Every remaining group as one ``pandas.DataFrame``, a copy, with the paths of the prims as its index.

        A value of L lanes is L columns, ``position.0``, ``position.1``, ...; an array is one NumPy array. A prim
        without a value has NaN, and ``pandas.NA`` or ``None`` where the type has no NaN. Taking an attribute that is
        left out raises a ``KeyError`` that says why, as does ``frame.attrs["missing"]``. For deletions, ``strings`` and
        what is raised see ``to_arrow``; pandas takes complex values.
        """
        self._stage._begin("to_pandas")
        pd = tables.package("pandas", "Read.to_pandas")
        return tables.frame(pd, self._content(timeout, strings))

    def _content(self, timeout: int, strings: bool, paths: Sequence[str] | None = None) -> tables.Content:
        """``paths`` are those of the query where the stage does not know them all."""
        stage = self._stage
        listed = None if paths is None else tables.Listed(paths)
        found, why, prims = self._gather(timeout, lambda prim_list: listed or stage._lists.of(stage, prim_list))
        names = stage._token_strings(list(found))
        missing = dict(zip(stage._token_strings(list(why)), why.values(), strict=True))
        columns = dict(zip(names, found.values(), strict=True))
        content = tables.Content.of(columns, prims or tables.Listed(()), missing)
        return content.worded(stage._token_strings, stage._path_strings, strings=strings)

    def _gather(
        self,
        timeout: int,
        listed: Callable[[int], tables.Listed | None] | None = None,
        attributes: int | None = None,
    ) -> tuple[dict[int, Column], dict[int, str], tables.Listed | None]:
        """Columns by token, why others are missing, which is asked where there are fewer than ``attributes``, and the
        query's paths if they are asked for. The groups are released."""
        groups: dict[int, list[ReadGroup]] = {}
        try:
            fetch = self._stage.fetch_read_next
            while (group := fetch(self, timeout)) is not None:
                groups.setdefault(group.attribute, []).append(group)
            columns: dict[int, Column] = {}
            for token, parts in groups.items():
                columns[token] = column(parts, self._stage._list_count(parts[0].prim_list))
            whole = len(columns) == attributes
            missing = {} if whole else dict(self._stage._read_missing(self))
            shown = next((listed(parts[0].prim_list) for parts in groups.values()), None) if listed else None
            return columns, missing, shown
        finally:
            for parts in groups.values():
                for group in parts:
                    group.release()

    def release(self) -> Operation:
        """Let the read go. Groups already fetched stay valid."""
        return self._stage.release_read(self)

    _end = release


class OrdinalQuery(Handle):
    """A question whose answer is an ordinal."""

    def fetch(self, timeout: int = TIMEOUT_INFINITE) -> int:
        """The ordinal."""
        return self._stage.fetch_ordinal(self, timeout)

    def release(self) -> Operation:
        """Let the question go."""
        return self._stage.release_ordinal_query(self)

    _end = release


class Hierarchy(Handle):
    """A question about the relatives of prims."""

    def result(self) -> HierarchyResult:
        """The answer; ``wait()`` first."""
        return self._stage.fetch_hierarchy_result(self)

    def release(self) -> Operation:
        """Let the question go."""
        return self._stage.release_hierarchy(self)

    _end = release


class Map(Handle):
    """Writable buffers for the values of one attribute at one ordinal, fetched group by group.

    Leaving its ``with`` block commits every group; leaving it by an exception, ``abort()`` and dropping the map write
    nothing of what is not committed yet. The groups' accessors end with their commit. Arrays made from them stay valid
    memory for good, detached from the stage: a later write through one changes nothing that was committed.

    ``commit`` chooses how a buffer that fills a whole column becomes the column's storage. ``"auto"`` hands it over as
    it is when no array or export of it is alive, and moves its memory pages out from under those that are. ``"adopt"``
    always hands it over as it is: the caller promises not to write through what is left.
    """

    _ended = "unmapped"
    _ending = "unmap()"
    _about = ""  # what repr says that it maps

    def _described(self) -> str:
        return self._about

    def fetch_next(self, timeout: int = TIMEOUT_INFINITE) -> MapGroup | None:
        """The next group to fill, ``None`` after the last."""
        return self._stage.fetch_map_next(self, timeout)

    def groups(self, timeout: int = TIMEOUT_INFINITE) -> Iterator[MapGroup]:
        """Every remaining group."""
        while (group := self.fetch_next(timeout)) is not None:
            yield group

    def unmap_group(
        self, group: MapGroup, cuda_event: int | None = None, cuda_stream: int | None = None, *, commit: str = "auto"
    ) -> Operation:
        """Commit one group while the others are still being filled."""
        return self._stage.unmap_group(self, group, cuda_event, cuda_stream, commit=commit)

    def unmap(
        self, cuda_event: int | None = None, cuda_stream: int | None = None, *, commit: str = "auto"
    ) -> Operation:
        """Commit what is not committed yet, fetched or not, and end the map.

        ``cuda_event`` is waited for before the values are taken; it belongs to GPU buffers only.
        """
        return self._stage.unmap_attribute(self, cuda_event, cuda_stream, commit=commit)

    def abort(self) -> None:
        """End the map without writing what is not committed yet. A second call does nothing."""
        if self._ended != "aborted":
            self._stage._abort(self)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self._open:
            return
        if error is None:
            self.unmap().wait()
            return
        try:
            self.abort()
        except OvstageError:
            return  # the body's exception says more than that nothing was left to abort

    def _end(self) -> Operation:
        return self.unmap()
