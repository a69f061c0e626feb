"""The stage: an in-process table whose rows are prims, whose columns are attributes, and whose clock is the caller's.

Calls enqueue work and return at once with an ``Operation`` or a handle; waiting for it reports what went wrong. Every
write carries an ordinal that the application chooses; the write floor seals ordinals; reads serve sealed values. All
calls are safe from any thread, and blocking ones release the GIL.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from ovstage import guard, intake, tables
from ovstage._load import native
from ovstage.awaiting import elsewhere
from ovstage.changes import Changes
from ovstage.columns import Columns, MissingColumn, column, missing_text
from ovstage.description import Description
from ovstage.dictionary import PathList, References, minted
from ovstage.dlpack import DLDataType, element_name
from ovstage.enums import AttributeSemantic, HierarchyComputationModel, HierarchyRelation, PrimMode
from ovstage.errors import OvstageError
from ovstage.groups import MapGroup
from ovstage.guard import TIMEOUT_INFINITE
from ovstage.handles import Hierarchy, Map, Operation, Query, Read
from ovstage.selection import Asked, Implicit, Prims, Selections, select
from ovstage.shown import counted, few, shown
from ovstage.tables import PRIM as PATH
from ovstage.tables import Lists
from ovstage.tree import Tree, grown
from ovstage.values import (
    Attribute,
    Filter,
    HierarchyComputationModelDesc,
    HierarchyItem,
    HierarchyResult,
    OrdinalRange,
    QueryResult,
    StageConfig,
    WriteDesc,
)

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ovstage.recording import Recorder

__all__ = ["Stage"]

_COMMIT = ("adopt", "auto")
_INITIAL = ("current", "zero", "discard")


class Stage(native.Stage):
    """One stage. ``name`` is for diagnostics; ``config`` holds settings that live with the process.

    Handle arguments (``query``, ``read``, ``mapping``, ``ordinal_query``) take the object or its number. ``attribute``
    and the entries of lists of attributes are names or their tokens.

    A wrong argument is a ``TypeError`` or ``ValueError`` of the call. What the stage itself refuses shows in the
    ``status`` of the returned operation, or of the returned handle's ``op``, and is raised by waiting for it; the
    ``fetch_`` calls and ``query_from_path_list`` raise ``OvstageError`` themselves. After ``destroy()`` every call
    raises ``OvstageError`` with code ``INVALID_HANDLE``.

    Writes, reads and floors come from the extension, which takes their arguments straight to the library. Payloads of
    writes are NumPy arrays, DLPack producers or ``DLTensor``s; a list means one tensor per data row of an array column.
    Fixed-size columns take one row per prim, ``(N, 3)`` or ``(N,)`` with three lanes. The returned ``Operation`` keeps
    the payload alive until it is done. With ``transfer=True`` the payload's own memory may become the column: the
    caller promises not to write to it any more.
    """

    _configured = False
    _scene: object | None = None
    """What population knows of the USD scene in it. Nothing else looks into it; it ends with the stage."""
    _leaving = staticmethod(sys.is_finalizing)  # kept here, since finalisers may run when modules are empty
    _process_now = staticmethod(os.getpid)

    def __init__(self, name: str | None = None, config: StageConfig | None = None) -> None:
        if "_path_list_refs" in self.__dict__:
            raise RuntimeError("a Stage cannot be initialised twice")
        if isinstance(name, StageConfig):
            raise TypeError(f"name must be a str or None, got {name!r}; write Stage(config=StageConfig(...))")
        if name is not None and "\0" in guard.string(name, "name"):
            raise ValueError(f"name must not contain NUL, got {name!r}")
        if config is not None and not isinstance(config, StageConfig):
            raise TypeError(f"config must be a StageConfig or None, got {config!r}")
        interface: str | None = None
        history = 0
        if config is not None:
            history = guard.uint64(config.history_ordinals, "history_ordinals")
            if not isinstance(config.guard_reads, bool):
                raise TypeError(f"guard_reads must be True or False, got {config.guard_reads!r}")
            interface = config.interface
            native.initialize(config.hierarchy_model())
            self._configured = True
        try:
            super().__init__(name, interface)
        except BaseException:
            self._forget_config()
            raise
        self._path_list_refs: dict[int, References] = {}
        self._selections = Selections()
        self._lists = Lists()
        self._name = name or ""
        self._history = history
        self._process = os.getpid()
        if config is not None:
            self._keep_history(history)
            if config.guard_reads:
                _show_faults()
                self._guard_reads()

    @staticmethod
    def get_version() -> tuple[int, int, int]:
        """The interface level of the native library, as ``library_version()`` tells it."""
        return native.library_version()

    def destroy(self) -> None:
        """Close the stage: pending operations finish, open maps are aborted, everything else stays valid memory. A USD
        scene in it is dropped, and its files are closed.

        May be called again. A failure raises and keeps the stage, so that it can be tried again.
        """
        try:
            super().destroy()
        finally:  # Ctrl-C may end the wait for the log, when the stage has gone
            if not self.alive:
                self._scene = None
                self._forget_config()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"<Stage{shown(self._described)}>"

    def _described(self) -> str:
        name = f" {self._name!r}" if self._name else ""
        if not self.alive:
            return f"{name}, destroyed"
        with self.query() as query, self.get_attribute_write_floor() as floor:
            attributes, prims, _ = self._query_result(query)
            return (
                f"{name}: {counted(prims, 'prim')}, {counted(len(attributes), 'attribute')}, sealed up to "
                f"{floor.fetch()}{few(self._token_strings(attributes), len(attributes))}"
            )

    def __del__(self) -> None:
        try:
            self.destroy()
        except OvstageError:
            return

    @property
    def _usable(self) -> bool:
        """Whether finalisers can give things back: not after destroy, in a forked process, or at interpreter exit."""
        return self.alive and not self._leaving() and self._process == self._process_now()

    def _forget_config(self) -> None:
        if self._configured:
            self._configured = False
            native.shutdown()

    # --- the short form ---

    def write(
        self,
        prims: Prims,
        name: str | int,
        ordinal: int,
        values: Any,
        *,
        is_array: bool = False,
        prim_mode: PrimMode | int = PrimMode.UPSERT,
        semantic: AttributeSemantic | int = AttributeSemantic.NONE,
        mask: Any = None,
        lanes: int | None = None,
        type_name: str | None = None,
    ) -> Operation:
        """Write one attribute of some prims at an ordinal: ``write_attribute`` without anything to make before it.

        ``prims`` are paths, ``["/A", "/B"]``, or a query or path list. ``values`` has a row for each of them, in that
        order, in the units that the application gives the attribute: shape ``(N,)`` or ``(N, L)``; a list of N arrays
        where ``is_array=True`` gives each prim one of its own. Prims and attribute come into being with the write.
        ``ordinal`` must be above the write floor of the attribute. ``type_name`` says what the values are called where
        they come from, such as the USD type ``color3f`` or ``string``; tables and export go by it. Of the types
        ``string`` and ``token`` a list or an array of ``values`` may hold texts, of ``string[]`` and ``token[]`` lists
        of texts. The other options are those of ``write_attribute``.

        Raises ``TypeError`` and ``ValueError`` for wrong arguments; what the stage refuses, such as a sealed ordinal,
        shows in the ``Operation`` and is raised by its ``wait()``. Example::

            stage.write(["/A", "/B"], "velocity", 2, np.zeros((2, 3), np.float32)).wait()
        """
        self._begin("write")
        chosen = select(self, prims)
        values = intake.listed(values) if type_name in intake.NAMES else values
        if type_name in intake.NAMES and type(values) in (list, tuple):
            values = intake.interned(self, values, "values")
            is_array, semantic = is_array or type_name.endswith("[]"), semantic or intake.NAMES[type_name]
        return self._write(chosen, name, ordinal, values, is_array, prim_mode, semantic, mask, lanes, type_name)

    def map(
        self,
        prims: Prims,
        name: str | int,
        ordinal: int,
        *,
        prim_mode: PrimMode | int = PrimMode.UPSERT,
        dtype: DLDataType | None = None,
        semantic: AttributeSemantic | int = AttributeSemantic.NONE,
        element_sizes: Sequence[int] | None = None,
        initial: str = "current",
        group_rows: int | None = None,
    ) -> Map:
        """Borrow the memory of an attribute of some prims and write into it: ``map_attribute`` for paths too.

        Leaving the ``with`` block commits at ``ordinal``, leaving it by an exception writes nothing. Example::

            with stage.map(["/A", "/B"], "velocity", 2) as mapping:
                mapping.fetch_next().array(0, shaped=True)[:, 2] -= 9.81
        """
        self._begin("map")
        guard.attribute(name, "name")
        chosen = select(self, prims)
        return self.map_attribute(
            chosen,
            name,
            ordinal,
            prim_mode=prim_mode,
            dtype=dtype,
            semantic=semantic,
            element_sizes=element_sizes,
            initial=initial,
            group_rows=group_rows,
        )

    def delete(self, prims: Prims, attrs: Sequence[str | int], ordinal: int) -> Operation:
        """Delete attributes of some prims at an ordinal, with an empty list the prims: ``delete_attributes`` for paths.

        Example::

            stage.delete(["/A"], ["velocity"], 3).wait()
        """
        self._begin("delete")
        attrs = guard.attributes(attrs, "attrs")
        chosen = select(self, prims, asked=True)
        return self.delete_attributes(chosen, attrs, ordinal)

    def get(self, prim: str, name: str | int, ordinal: int | OrdinalRange | None = None) -> Any:
        """The value of one attribute of one prim: a NumPy scalar, its ``(L,)`` lanes, or the elements of its array.

        Of the type ``string`` it is the text.

        It is sealed, and as of ``ordinal`` as ``read`` has it; a view that stays as it is. To get many prims takes one
        ``read``, not many of these. Raises ``KeyError`` where the prim has no sealed value of the attribute. Example::

            stage.get("/A", "velocity")        # array([0., 0., 0.], dtype=float32)
        """
        self._begin("get")
        guard.attribute(name, "name")
        column = self.read([guard.string(prim, "prim")], [name], ordinal)[name]
        if not column.valid[0]:
            raise MissingColumn(missing_text(name, {name: "deleted within the range"}, ()))
        if tables.are_texts(column):
            texts = self._token_strings(column.values.ravel().tolist())
            return texts[0] if column.offsets is None else texts
        return column.values[0] if column.offsets is None else column.row(0)

    def attributes(self) -> list[Attribute]:
        """What the stage holds, by name: an ``Attribute`` for each name and type, with how many prims have a value.

        Sealed or not. ``usd-path`` and what else follows from paths can be read, and is not listed. Example::

            for attribute in stage.attributes():
                print(attribute.name, attribute.type_name, attribute.dtype, attribute.prim_count)
        """
        rows = [row for row in self._attributes() if row[5]]
        tokens = list({token for name, kind, *_ in rows for token in (name, kind)})
        texts = dict(zip(tokens, self._token_strings(tokens), strict=True))
        found = [
            Attribute(
                texts[name],
                texts[kind],
                AttributeSemantic(role),
                element_name(*dtype[:2]),
                dtype[2],
                is_array,
                prims,
                floor,
                newest,
                size,
            )
            for name, kind, dtype, role, is_array, prims, floor, newest, size in rows
        ]
        return sorted(found, key=lambda attribute: (attribute.name, attribute.type_name))

    def prims(self, filter: Filter | None = None) -> PathList:
        """The prims that exist now, sealed or not, in the order of their creation; with a filter, those that meet it.

        A ``PathList``: ``len``, iteration and ``[k]`` give paths, and every call that takes prims takes it. It stays as
        it is while prims come and go, and needs no ``release()``. Example::

            for path in stage.prims():
                print(path, stage.get(path, "mass"))
        """
        self._begin("prims")
        with self.query(filter) as query:
            query.wait()
            with self._read_whole(query, self._intern_tokens((PATH,)), 0) as read:
                read.wait()
                with contextlib.ExitStack() as fetched:
                    groups = [fetched.enter_context(group) for group in read.groups()]
                    paths = [path for group in groups for path in group.array(0).tolist()]
        return minted(self, self._list_from_paths, paths, implicit=True)

    def describe(self) -> Description:
        """What the stage holds, sealed or not, as a table of its attributes. Example::

        print(stage.describe())
        """
        self._begin("describe")
        with self.query() as query, self.get_attribute_write_floor() as floor:
            return Description(self._name, floor.fetch(), self._query_result(query)[1], self.attributes())

    def tree(self, prims: str = "*", attributes: str = "*", ordinal: int | None = None) -> Tree:
        """What the stage holds, sealed, as a tree of prims with their properties and values.

        ``prims`` and ``attributes`` are globs over whole paths and names, such as ``"/World/*"``. ``ordinal`` is the
        newest change to contain; by default each attribute is shown as far as it is sealed. Needs NumPy. Example::

            print(stage.tree("/World/Robot*", "physics:*"))
            stage.tree()["/World"].properties["physics:mass"].value
        """
        self._begin("tree")
        guard.string(prims, "prims")
        guard.string(attributes, "attributes")
        if ordinal is not None:
            ordinal = guard.uint64(ordinal, "ordinal")
        with self.query() as query, contextlib.ExitStack() as fetched:
            query.wait()
            groups = [
                fetched.enter_context(group)
                for end, tokens in self._floors().items()
                for group in fetched.enter_context(
                    self.read_attributes(query, tokens, OrdinalRange.latest(end if ordinal is None else ordinal))
                ).groups()
            ]
            return grown(self, groups, prims, attributes)

    def wait_floor(
        self,
        ordinal: int,
        attribute: str | int | None = None,
        *,
        attributes: Sequence[str | int] | None = None,
        timeout: int = TIMEOUT_INFINITE,
    ) -> None:
        """Wait until all up to ``ordinal`` is sealed: of one attribute, of several, or by the global write floor.

        Of several it is the lowest floor that counts; one that the stage does not know yet has the global floor. The
        wait takes no lock and no time of the interpreter, and ends with Ctrl-C. ``timeout`` is in nanoseconds. Raises
        ``OvstageError``: ``TIMEOUT``, whose text says where the floors are and which attributes are ahead of the global
        one, and ``INVALID_HANDLE`` when the stage is destroyed meanwhile. Example::

            # the thread that writes
            stage.advance_write_floor(120)
            # the thread that reads
            stage.wait_floor(120, "velocity")
        """
        self._begin("wait_floor")
        trials: list[object] = []
        self._wait_floor(ordinal, self._floor_tokens(attribute, attributes, trials), timeout)

    async def await_floor(
        self,
        ordinal: int,
        attribute: str | int | None = None,
        *,
        attributes: Sequence[str | int] | None = None,
        timeout: int = TIMEOUT_INFINITE,
    ) -> None:
        """``wait_floor`` for asyncio, on a thread of the loop's executor: the loop goes on. May be cancelled. Example::

        await stage.await_floor(120, "velocity")
        """
        trials: list[object] = []
        tokens = self._floor_tokens(attribute, attributes, trials)
        await elsewhere(lambda part: self._wait_floor(ordinal, tokens, part), guard.timeout(timeout))

    def changes(
        self,
        attributes: Sequence[str | int] | None = None,
        query: Prims | None = None,
        since: int | Mapping[str, int] | None = None,
    ) -> Changes:
        """Follow what is sealed: ``for item in stage.changes()`` waits for changes and gives them. ``async for`` works.

        ``attributes`` are those to follow, by default all, those that come later too. ``query`` are the prims to be
        told of: paths, a path list or a query; by default all, and an item then costs what changed in it. ``since`` is
        an ordinal up to which the consumer knows everything, or one by name, such as ``item.positions``. Without it the
        first item is a resync: all values.

        Each ``Item`` maps the names of attributes to a ``Change``: ``prims`` with their ``values``, ``deleted`` prims,
        and between which ordinals. What one call sealed comes in one item. A consumer that is slow gets joined items;
        one that falls behind what the stage keeps gets a ``resync`` of that attribute. Example::

            changes = stage.changes(["velocity"])
            if item := changes.poll():           # or: for item in changes, which waits for the next
                for change in item.values():
                    print(item.ordinal, change.prims, change.values, change.deleted)
        """
        self._begin("changes")
        return Changes(self, attributes, None if query is None else select(self, query), since)

    # --- recordings ---

    def record(
        self,
        path: str | os.PathLike[str],
        attributes: Sequence[str | int] | None = None,
        query: Prims | None = None,
        every: int = 1,
    ) -> Recorder:
        """Write what is sealed from now on into the folder ``path``, which is made: a ``Recorder``, for ``with``.

        ``attributes`` and ``query`` choose as those of ``changes`` do. A thread follows the stage and never holds up a
        writer: ordinals that it comes too late for are joined in the row of a later one. With ``every=10`` it joins
        about ten of them. Needs the extra ``record``. ``ovstage.Recording`` reads it, at any time. Example::

            with stage.record("run.ovr") as recorder:
                stage.write(["/A"], "mass", 9, np.float32([3])).wait()
                stage.advance_write_floor(9).wait()
            print(recorder.stats)
        """
        from ovstage.recording import recorder

        self._begin("record")
        return recorder.start(self, path, attributes, query, every)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is sealed now into the folder ``path``, in one step and safely on disk: a recording of one state.

        A recording that is there is replaced, when the new one is whole. Needs the extra ``record``. Example::

            stage.save("checkpoint.ovr")
            stage = ovstage.Stage.load("checkpoint.ovr")
        """
        from ovstage.recording import recorder

        self._begin("save")
        recorder.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], config: StageConfig | None = None) -> Stage:
        """A new stage with what ``save`` wrote, or with the last state of a recording; ``config`` is the stage's own.

        Values, roles, types, texts and relationships are as they were. All are at the ordinal up to which the stage
        was sealed, and so is the write floor; generations of layouts begin anew.
        """
        from ovstage.recording import Recording

        recording = Recording(path)
        return recording.at(recording.last, config=config)

    def _floor_tokens(
        self, attribute: str | int | None, attributes: Sequence[str | int] | None, trials: list[object]
    ) -> list[int]:
        if attributes is None:
            return [] if attribute is None else [self._token(attribute, "attribute", trials)]
        if attribute is not None:
            raise TypeError("attribute and attributes are both given: name one attribute, or list several")
        _, tokens = self._tokens(attributes, trials, "attributes")
        if not tokens:
            raise ValueError("attributes must not be empty: list some, or leave it out for the global write floor")
        return tokens

    def _floors(self) -> dict[int, list[int]]:
        """The attributes that there are, by the ordinal up to which they are sealed."""
        found: dict[int, dict[int, None]] = {}
        for row in self._attributes():
            found.setdefault(row[6], {})[row[0]] = None
        return {floor: list(tokens) for floor, tokens in found.items()}

    # --- queries ---

    def query(self, filter: Filter | None = None, attrs: Sequence[int | str] | None = None) -> Query:
        """Select the prims that satisfy a filter, ``None`` for all of them, as of the latest executed state.

        They are listed in the order of their creation, and stay listed until ``Query.refresh``. ``attrs`` limits which
        attributes the result reports. A filter that cannot be served shows in ``query.op``. Release it when done, with
        ``with`` or ``release()``. Example::

            with stage.query(ovstage.Filter([ovstage.Predicate("mass", ovstage.FilterOp.HAS)])) as bodies:
                bodies.result().total_prim_count  # 4
        """
        if filter is not None and not isinstance(filter, Filter):
            raise TypeError(f"filter must be a Filter or None, got {filter!r}; write Filter([...])")
        return self._query(filter.condition() if filter is not None else None, attrs)

    def query_from_path_list(self, path_list: int) -> Query:
        """Select the prims of a path list, in its order, whether they exist yet or not. Answers at once.

        The query keeps the list. Raises ``OvstageError`` for a list that the stage does not know. Example::

            robots = PathDictionary(stage).create_path_list_from_strings(["/Robot1", "/Robot2"])
            with stage.query_from_path_list(robots) as query:
                stage.write_attribute(query, "mass", 2, np.float32([3, 4]), is_array=False)
            robots.release()
        """
        return self._query_path_list(path_list)

    def fetch_query_result(self, query: Query | int, timeout: int = TIMEOUT_INFINITE) -> QueryResult:
        """What a query matched."""
        return QueryResult(*self._query_result(query, timeout))

    def refresh_query(self, query: Query | int) -> Operation:
        """Ask the filter of a query again; see ``Query.refresh``."""
        return self._refresh_query(query)

    # --- reads ---

    def read(
        self, prims: Prims, attrs: Sequence[int | str], ordinal: int | OrdinalRange | None = None
    ) -> Columns[int | str]:
        """Read whole attributes in one call: a ``Column`` in the order of the prims for each, by its name or token.

        ``prims`` are paths, ``["/A", "/B"]``, or a query or path list. ``ordinal`` is the newest change to contain, or
        an ``OrdinalRange``; by default the newest ordinal up to which all of the attributes are sealed. An attribute
        of which nothing is found is left out: taking it raises a ``KeyError`` that says why. Raises what
        ``read_attributes`` and ``Read.to_numpy`` raise. Example::

            velocity = stage.read(["/A", "/B"], ["velocity"])["velocity"].values    # shape (2, 3)
        """
        self._begin("read")
        trials: list[object] = []
        asked, tokens = self._tokens(attrs, trials)
        chosen = select(self, prims, asked=True)
        if len(tokens) == 1 and type(chosen) is not Asked and not isinstance(ordinal, OrdinalRange):
            group = self._read_one(chosen, tokens[0], self._floor(tokens[0]) if ordinal is None else ordinal)
            if group is not None:
                try:
                    if group.prim_count == self._list_count(group.prim_list):  # no other has any prims
                        return Columns({asked[0]: column((group,), group.prim_count)}, {})
                finally:
                    group.release()
        with self._read_whole(chosen, tokens, ordinal) as read:
            read.wait()
            columns, missing, _ = read._gather(TIMEOUT_INFINITE, attributes=len(set(tokens)))
        if type(chosen) is Asked and chosen.outdated(self):
            return self.read(chosen.paths, asked, ordinal)
        found, why = {}, {}
        for name, token in zip(asked, tokens, strict=True):
            if token in columns:
                found[name] = columns[token]
            elif token in missing:
                why[name] = missing[token]
        return Columns(found, why)

    def read_arrow(
        self,
        prims: Prims,
        attrs: Sequence[int | str],
        ordinal: int | OrdinalRange | None = None,
        *,
        strings: bool = False,
    ) -> pyarrow.Table:
        """``read`` as a ``pyarrow.Table``: see ``Read.to_arrow``."""
        self._begin("read_arrow")
        package = tables.package("pyarrow", "Stage.read_arrow")
        return tables.arrow(package, self._content(prims, attrs, ordinal, strings))

    def read_pandas(
        self,
        prims: Prims,
        attrs: Sequence[int | str],
        ordinal: int | OrdinalRange | None = None,
        *,
        strings: bool = False,
    ) -> pandas.DataFrame:
        """``read`` as a ``pandas.DataFrame``: see ``Read.to_pandas``."""
        self._begin("read_pandas")
        package = tables.package("pandas", "Stage.read_pandas")
        return tables.frame(package, self._content(prims, attrs, ordinal, strings))

    def _content(
        self, prims: Prims, attrs: Sequence[int | str], ordinal: int | OrdinalRange | None, strings: bool
    ) -> tables.Content:
        """What a table of ``read`` shows. Paths that were never made are only asked for."""
        trials: list[object] = []
        asked, tokens = self._tokens(attrs, trials)
        chosen = select(self, prims, asked=True)
        with self._read_whole(chosen, tokens, ordinal) as read:
            read.wait()
            content = read._content(TIMEOUT_INFINITE, strings, chosen.paths if type(chosen) is Asked else None)
        if type(chosen) is Asked and chosen.outdated(self):
            return self._content(chosen.paths, asked, ordinal, strings)
        return content

    def tables(self, ordinal: int | None = None) -> dict[Attribute, pyarrow.Table]:
        """The whole stage, sealed: a ``pyarrow.Table`` for each attribute and type, with a row per prim that has it.

        ``ordinal`` is as ``read`` has it. The prims of a table are in the order of their creation, in the column
        ``usd-path``; ``Read.to_arrow`` says how values lie. Each can be written into a stage by ``write_arrow``. Raises
        what ``read_arrow`` raises. Example::

            import pyarrow.feather

            for attribute, table in stage.tables().items():
                pyarrow.feather.write_feather(table, f"{attribute.name}.arrow")
        """
        self._begin("tables")
        pa = tables.package("pyarrow", "Stage.tables")
        with self.query() as query, contextlib.ExitStack() as fetched:
            query.wait()
            tokens = list(dict.fromkeys(row[0] for row in self._attributes()))
            if not tokens:
                return {}
            with self._read_whole(query, tokens, ordinal) as read:
                read.wait()
                return tables.whole(pa, self, [fetched.enter_context(group) for group in read.groups()])

    def write_arrow(self, table: pyarrow.Table, ordinal: int, *, prims: Prims | None = None) -> Operation:
        """Write a table at an ordinal, all of it or nothing: what ``read_arrow`` and ``tables`` gave, or one like it.

        Each column is an attribute; the column ``usd-path`` has the prims, unless ``prims`` names them. The metadata of
        a field says what Arrow's type does not: ``role``, the name of an ``AttributeSemantic``, and ``type``. Texts
        become ids as these ask for. A null writes nothing; rows that ``<attribute> deleted`` marks lose the attribute.
        Raises ``ValueError`` and ``TypeError`` for what no column can hold, with the name of the column. Example::

            other.write_arrow(stage.read_arrow(stage.prims(), ["velocity"]), 1).wait()
        """
        self._begin("write_arrow")
        intake.check(table)
        paths = intake.paths(table) if prims is None else list(self._listed(prims))
        if len(paths) != table.num_rows:
            raise ValueError(f"table has {table.num_rows} rows, but there are {len(paths)} prims: pass one per row")
        chosen: dict[bytes, Implicit] = {}

        def over(rows: Any) -> Implicit:
            found = chosen.get(rows.tobytes())
            if found is None:
                found = chosen[rows.tobytes()] = self._selections.of_paths(
                    self, tuple(paths[row] for row in rows.tolist())
                )
            return found

        found = list(intake.parts(self, table))
        deletes = [(over(part.lost), [part.name]) for part in found if len(part.lost)]
        batches: dict[int, tuple[Implicit, list[WriteDesc]]] = {}
        for part in found:
            if part.write is not None:
                query = over(part.rows)
                batches.setdefault(query.handle, (query, []))[1].append(part.write)
        return self._publish(deletes, list(batches.values()), ordinal)

    def _listed(self, prims: Prims) -> Sequence[str]:
        """The paths that prims are given by."""
        if isinstance(prims, PathList):
            return list(prims)
        if isinstance(prims, (Query, SupportsIndex)):
            raise TypeError(f"prims must be paths or a PathList where a table is written, got {prims!r}")
        return list(prims)

    def _read_whole(
        self, query: Query | Implicit | int, tokens: Sequence[int], ordinal: int | OrdinalRange | None
    ) -> Read:
        if not isinstance(ordinal, OrdinalRange):
            ordinal = OrdinalRange(self._sealed(tokens) if ordinal is None else guard.uint64(ordinal, "ordinal"))
        return self.read_attributes(query, tokens, ordinal)

    def _tokens(
        self, attrs: Sequence[int | str], trials: list[object], name: str = "attrs"
    ) -> tuple[Sequence[int | str], list[int]]:
        """The attributes as given, and the token of each. A name that is new gets a token on trial, which ends with the
        list ``trials``: keep the list until the read is done."""
        asked = guard.entries(attrs, name, "a list of attributes")
        return asked, [self._token(item, f"{name}[{at}]", trials) for at, item in enumerate(asked)]

    def _token(self, attribute: int | str, name: str, trials: list[object]) -> int:
        if isinstance(attribute, str):
            return self._try_name(guard.string(attribute, name), name, trials)
        return guard.uint64(guard.integer(attribute, name, "an int (a token) or a str (a name)"), name)

    def _sealed(self, attributes: Sequence[int]) -> int:
        """The newest ordinal up to which all of the attributes are sealed."""
        if len(attributes) == 1:
            return self._floor(attributes[0])
        return min(map(self._floor, attributes), default=0)

    # --- deletes and clones ---

    def delete_attributes(
        self, query: Query | Implicit | int, attributes: Sequence[int | str], ordinal: int
    ) -> Operation:
        """Delete attributes of the queried prims, or the prims themselves with an empty list.

        A prim without such an attribute is left alone. A prim whose last attribute goes is gone. What is deleted
        may be written again, with another type too; range reads report the prims in groups with ``is_delete``.
        """
        return self._delete(query, attributes, ordinal)

    def clone(self, source_path: str, target_paths: Sequence[str], ordinal: int) -> None:
        """Copy a prim and everything below it to each target, and wait for it: see ``clone_async``."""
        self.clone_async(source_path, target_paths, ordinal).wait()

    def clone_async(self, source_path: str, target_paths: Sequence[str], ordinal: int) -> Operation:
        """Copy a prim and everything below it to each target: all of it, or nothing.

        Values are those as of ``ordinal``, sealed or not, and are changes at it. Targets of relationships and
        connections that lie in the source lead into the copy, others stay. World transforms are copied like all else:
        compute them afterwards. A prim is moved by a clone and a delete of the source at one ordinal.

        Targets are paths where nothing is: a prim at or below one that "already exists" fails the operation, like a
        source that holds nothing and an ordinal that is sealed. Targets that are listed twice, or lie inside the source
        or each other, are refused at once.
        """
        return self._clone(source_path, target_paths, ordinal)

    # --- maps ---

    def map_attribute(
        self,
        query: Query | Implicit | int,
        attribute: int | str,
        ordinal: int,
        *,
        prim_mode: PrimMode | int = PrimMode.UPSERT,
        dtype: DLDataType | None = None,
        semantic: AttributeSemantic | int = 0,
        element_sizes: Sequence[int] | None = None,
        initial: str = "current",
        group_rows: int | None = None,
    ) -> Map:
        """Borrow buffers to write one attribute into directly.

        ``dtype`` is needed to create a column and otherwise confirms it; ``element_sizes``, for array columns, gives
        the number of elements of each queried prim. ``initial`` says what the buffers start with: ``"current"`` the
        value of each prim (zeros where it has none), ``"zero"``, or ``"discard"``, unspecified, for callers that fill
        everything: such a map of a whole column costs no copy at any size. Several maps may be open; what they write
        applies in the order of their commits.

        There is one group, of all prims in the order of the query, unless ``group_rows`` asks for groups of that many
        prims, the last of fewer, that can be committed one by one while others are being filled. ``PrimMode.UPDATE``
        maps the prims that exist now and leaves the others out; ``PrimMode.INSERT`` is refused when any exists.

        What the stage refuses shows in ``Map.op`` and is raised by the first call that uses the map. Leaving the
        ``with`` block commits, and raises ``OvstageError`` with the code ``WRITE_FLOOR_VIOLATION`` where the ordinal
        was sealed meanwhile. Example::

            with stage.map_attribute(query, "velocity", 2) as mapping:
                for group in mapping.groups():
                    group.array(0, shaped=True)[:, 2] -= 9.81 / 60  # (N, 3), the memory of the column
        """
        if dtype is not None and not isinstance(dtype, DLDataType):
            raise TypeError(
                f"dtype must be a DLDataType or None, got {dtype!r}; numpy_to_dldatatype(dtype, lanes) makes one"
            )
        row = (dtype.code, dtype.bits, dtype.lanes) if dtype is not None else None
        start = guard.choice(initial, _INITIAL, "initial")
        split = 0 if group_rows is None else guard.uint64(group_rows, "group_rows")
        if split == 0 and group_rows is not None:
            raise ValueError("group_rows must be at least 1, got 0; leave it out for one group of all prims")
        made = self._map(query, attribute, ordinal, prim_mode, row, semantic, element_sizes, start, split)
        made._about = f" of {attribute!r} at ordinal {ordinal}"
        return made

    def fetch_map_next(self, mapping: Map | int, timeout: int = TIMEOUT_INFINITE) -> MapGroup | None:
        """The next group of a map to fill, ``None`` after the last."""
        return self._fetch_map(mapping, timeout, MapGroup)

    def unmap_group(
        self,
        mapping: Map | int,
        group: MapGroup,
        cuda_event: int | None = None,
        cuda_stream: int | None = None,
        *,
        commit: str = "auto",
    ) -> Operation:
        """Commit one group of a map; see ``Map`` for ``commit``."""
        sync = _sync(cuda_stream, cuda_event)
        how = guard.choice(commit, _COMMIT, "commit")
        return self._unmap_group(mapping, group, *sync, how)

    def unmap_attribute(
        self,
        mapping: Map | int,
        cuda_event: int | None = None,
        cuda_stream: int | None = None,
        *,
        commit: str = "auto",
    ) -> Operation:
        """Commit the remaining groups of a map and end it; see ``Map`` for ``commit``."""
        how = guard.choice(commit, _COMMIT, "commit")
        return self._unmap(mapping, *_sync(cuda_stream, cuda_event), how)

    # --- operations ---

    def wait_op_raw(self, op_id: int, timeout: int = TIMEOUT_INFINITE) -> int:
        """The code of ``wait_op`` alone."""
        return self.wait_op(op_id, timeout)[0]

    # --- hierarchy ---

    def get_hierarchy_computation_models(self) -> list[HierarchyComputationModelDesc]:
        """The ways to compute world transforms, by id. Those of a GPU fail where CUDA is not loaded."""
        return [HierarchyComputationModelDesc(*model) for model in self._hierarchy_models()]

    def compute_hierarchy(
        self,
        input_ordinal: int,
        output_ordinal: int,
        model: HierarchyComputationModel | int = HierarchyComputationModel.DEFAULT_CPU,
    ) -> None:
        """Compute world transforms from local ones, and wait for it: see ``compute_hierarchy_async``."""
        self.compute_hierarchy_async(input_ordinal, output_ordinal, model).wait()

    def compute_hierarchy_async(
        self,
        input_ordinal: int,
        output_ordinal: int,
        model: HierarchyComputationModel | int = HierarchyComputationModel.DEFAULT_CPU,
    ) -> Operation:
        """Compute world transforms from local ones: ``world = local @ world of the nearest ancestor that has one``.

        Every prim with an ``omni:xform`` as of ``input_ordinal`` gets an ``omni:fabric:worldMatrix`` at
        ``output_ordinal``, both 16 float64, row-major, for row vectors. Where ``omni:resetXformStack`` is true, or no
        ancestor has a transform, the world transform is the local one. Only what moved is written, so that ranges
        report it; rows are added where a prim had none.

        At a sealed ordinal, where no other write may go, this makes a new version of the state: write the local
        transforms at n, seal n, compute ``(n, n)``. At an ordinal that is not sealed yet it is a write like any other,
        of local transforms that need not be sealed either: compute ``(n, n)``, then seal n, and no reader ever sees
        the ones without the others.
        """
        return self._compute_hierarchy(input_ordinal, output_ordinal, model)

    def get_hierarchy(self, path_list: int, ordinal: int, relation: HierarchyRelation | int) -> HierarchyResult:
        """The relatives of each prim of a path list, waited for."""
        with self.get_hierarchy_async(path_list, ordinal, relation) as hierarchy:
            hierarchy.wait()
            return hierarchy.result()

    def get_hierarchy_async(self, path_list: int, ordinal: int, relation: HierarchyRelation | int) -> Hierarchy:
        """Ask for the relatives of each prim of a path list, as they are now, sealed or not.

        A parent is a prim, and never ``/``; siblings are the others below the same path. ``ordinal`` comes back in the
        result; what is no prim has an item with the status ``NOT_FOUND``.
        """
        return self._get_hierarchy(path_list, ordinal, relation)

    def fetch_hierarchy_result(self, hierarchy: Hierarchy | int) -> HierarchyResult:
        """The answer of a hierarchy query. It stays as it was when the question was asked."""
        ordinal, items = self._fetch_hierarchy(hierarchy)
        return HierarchyResult(ordinal, [HierarchyItem(*item) for item in items])


def _show_faults() -> None:
    """Switch on Python's stacks for a fault, unless they are, or there is no file to write them to."""
    if not faulthandler.is_enabled() and sys.__stderr__ is not None:
        with contextlib.suppress(OSError, ValueError):
            faulthandler.enable(file=sys.__stderr__)


def _sync(cuda_stream: int | None, cuda_event: int | None) -> tuple[int, int]:
    return 0 if cuda_stream is None else cuda_stream, 0 if cuda_event is None else cuda_event
