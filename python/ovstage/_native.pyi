"""The compiled part of the package: what costs microseconds in Python, or must not depend on Python to be safe.

This stub is the one home of what the extension says of itself: the build makes its docstrings and signatures from it.

Calls that enqueue work answer with an ``Operation`` or a handle and do not raise for what the stage refuses: either
keeps the reason, and raises it when it is waited for. What they answer with is made before the library is called, so
that no interrupt finds a native handle without an owner. All other calls raise ``OvstageError``, those of the path
dictionary ``OvxError``. A wrong argument is a ``TypeError`` or ``ValueError``, and has changed nothing.

Every call is safe from any thread. A call that may wait releases the GIL, and answers Ctrl-C within 50 ms. Timeouts are
nanoseconds.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, SupportsIndex, TypeAlias, TypeVar, final

from ovstage.dictionary import PathList
from ovstage.dlpack import DLDataType, DLDevice, DLTensor
from ovstage.groups import ReadGroup
from ovstage.handles import Hierarchy, Map, OrdinalQuery, Query, Read
from ovstage.values import Numbers, OrdinalRange

_GroupT = TypeVar("_GroupT", bound=Group)
_Attribute: TypeAlias = str | SupportsIndex  # a name, or the token of one
_Predicate: TypeAlias = tuple[_Attribute, SupportsIndex, Iterable[str]]  # attribute, operator, values
_Filter: TypeAlias = tuple[int, Iterable[_Predicate | _Filter]]

TIMEOUT_INFINITE: Final[int]

class Stage:
    """One native instance: an empty stage with a write floor of 0. ``ovstage.Stage`` is built on it.

    After ``destroy`` every call but ``alive``, ``destroy`` and ``last_error`` raises ``OvstageError`` with the code
    ``INVALID_HANDLE`` and the text ``<method> called after Stage was destroyed``.
    """

    def __init__(self, name: str | None = None, interface: str | None = None) -> None: ...
    @property
    def alive(self) -> bool:
        """True from creation to ``destroy``."""
    @property
    def interface(self) -> str:
        """The interface level, ``"0.2"`` or ``"0.3"``: how read and map groups lay out their values."""
    def destroy(self) -> None:
        """End the stage: pending operations finish, open maps are aborted. Groups, views and exports stay valid memory.

        May be called again. A failure raises and keeps the stage, so that it can be tried again.
        """
    def _refuse_fork(self, name: str, /) -> None:
        """Raise in a forked child, as every call does: for what is done in Python, before it takes a lock there."""
    def _begin(self, name: str, /) -> None:
        """Raise in a forked child and after ``destroy``, as the call of this name: for calls made of several."""
    def last_error(self) -> str:
        """The text of this thread's last refused call; empty if the last call was not refused."""

    # --- operations
    def wait_op(self, op_id: SupportsIndex, timeout: SupportsIndex = TIMEOUT_INFINITE) -> tuple[int, list[int], int]:
        """Wait for an operation by its number: ``(code, failed op ids, lowest pending op id)``.

        Waits at most ``timeout`` nanoseconds; the code is then ``ErrorCode.TIMEOUT``. Never raises for an operation
        that failed: its number is in the list, and ``op_error`` says why. Releases nothing: ``release_op`` does.
        """
    def release_op(self, op_id: SupportsIndex) -> int:
        """Forget a finished operation by its number. Answers with an ``ErrorCode``."""
    def op_error(self, op_id: SupportsIndex, /) -> str:
        """Why an operation failed that this thread's last ``wait_op`` reported; else empty."""
    def op_status(self, op_id: SupportsIndex, /) -> int:
        """The ``ErrorCode`` that a finished operation ended with; ``TIMEOUT`` while it is pending, ``INVALID_HANDLE``
        if unknown."""

    # --- writing
    def write_attribute(
        self,
        query: Any,
        attribute: _Attribute,
        ordinal: SupportsIndex,
        tensors: Any,
        *,
        is_array: bool,
        prim_mode: SupportsIndex = 0,
        semantic: SupportsIndex = 0,
        index_map: Numbers | None = None,
        mask: Numbers | None = None,
        count: SupportsIndex | None = None,
        cuda_event: SupportsIndex | None = None,
        cuda_stream: SupportsIndex | None = None,
        transfer: bool = False,
        lanes: SupportsIndex | None = None,
        type_name: str | None = None,
    ) -> Operation:
        """Write one attribute of the prims of a query at an ordinal; prims and attribute come into being with it.

        ``tensors`` is one tensor or, in a list or tuple, several: NumPy arrays, objects with ``__dlpack__``,
        ``DLTensor`` descriptors, or what NumPy makes an array of. They are in host memory, and of an integer, float,
        complex or bool type, bfloat16 or a float8 type, which becomes the type of the column: nothing is converted.
        With ``is_array=False`` each prim has one value: one tensor with a row per prim, ``(N,)`` or ``(N, L)``, whose
        further axes fold into the L lanes of a value. With ``is_array=True`` each prim has an array of its own: a
        tensor per prim, or one that is cut into N equal rows. Units are the application's: the stage stores numbers.

        ``ordinal`` must be above the write floor of the attribute. ``prim_mode`` is a ``PrimMode``, by default create
        and update; ``semantic`` an ``AttributeSemantic``, what the numbers mean. Of all prims of the query, ``count``
        means the first so many; ``mask`` those of a truth value each; ``index_map`` gives the row in ``tensors`` of
        each. ``lanes=k`` makes tuples of the trailing axes: arrays of shape ``(n, 3)`` are 3 n numbers, with
        ``lanes=3`` they are n triples; tensors whose elements have k lanes stay as they are. ``type_name`` says what
        the values are called where they come from, such as the USD type ``color3f``; it is part of what a column is,
        like ``semantic``: another one on the same prims is refused, without one values go where the others are.

        The bytes are copied when the write runs, once, whatever their strides, and the ``Operation`` keeps the tensors
        alive until then. ``transfer=True`` gives them away instead: the caller promises not to write to their memory
        any more. A packed tensor at a multiple of 64 bytes, with the newest values of a whole fixed-size column,
        becomes the column without a copy; any other is copied. It is let go of exactly once, on a Python thread, when
        it is not needed any more. ``cuda_event`` and ``cuda_stream`` are for tensors of a GPU, and ``None`` for host
        memory.

        Raises ``TypeError`` and ``ValueError`` for wrong arguments. What the stage refuses, such as a sealed ordinal
        (``WRITE_FLOOR_VIOLATION``) or another type than the column has (``INVALID_ARGUMENT``), changes nothing, shows
        in the ``Operation`` and is raised by its ``wait()``. Example::

            values = np.zeros((2, 3), np.float32)  # a row per prim of the query
            stage.write_attribute(query, "velocity", 2, values, is_array=False).wait()
        """
    def _write(
        self,
        prims: Any,
        name: _Attribute,
        ordinal: SupportsIndex,
        values: Any,
        is_array: bool,
        prim_mode: SupportsIndex,
        semantic: SupportsIndex,
        mask: Numbers | None,
        lanes: SupportsIndex | None,
        type_name: str | None,
        /,
    ) -> Operation:
        """``write_attribute`` in the words of ``Stage.write``."""
    def write_attributes(
        self, query: Any, writes: Iterable[Any], ordinal: SupportsIndex, *, prim_mode: SupportsIndex = 0
    ) -> Operation:
        """Write several attributes of the prims of a query at one ordinal: all of them or none, in one operation.

        Each of ``writes`` is a ``WriteDesc``, which takes what ``write_attribute`` takes. It may be kept and written
        again every tick, over memory whose content changes. Wrong arguments are named by their entry, ``writes[1]
        ("mass")``. Example::

            mass = ovstage.WriteDesc("mass", np.ones(2, np.float32), is_array=False)
            speed = ovstage.WriteDesc("speed", np.zeros(2, np.float32), is_array=False)
            stage.write_attributes(query, [mass, speed], 2).wait()
        """
    def _publish(
        self,
        deletes: Iterable[tuple[Any, Iterable[_Attribute]]],
        batches: Iterable[tuple[Any, Iterable[Any]]],
        ordinal: SupportsIndex,
        /,
    ) -> Operation:
        """Delete, then write, all of it or nothing, in one operation.

        ``deletes`` are pairs of a query and attributes, an empty list for the prims; ``batches`` are pairs of a query
        and ``WriteDesc``s.
        """
    def _tell_unasked(self, call: str, ordinal: SupportsIndex | None, code: SupportsIndex, reason: str, /) -> None:
        """Count a failure that nobody asked about, log it, and warn, unless it is held back."""
    def _delete(self, query: Any, attributes: Iterable[_Attribute], ordinal: SupportsIndex, /) -> Operation:
        """Delete attributes of prims at an ordinal; with an empty list the prims."""

    # --- floors
    def advance_write_floor(
        self, ordinal: SupportsIndex, scope: SupportsIndex = 0, attributes: Iterable[_Attribute] | None = None
    ) -> Operation:
        """Seal every ordinal up to ``ordinal``: what was written there never changes again, and readers see it.

        Later writes there are refused with ``WRITE_FLOOR_VIOLATION``. Takes effect after the writes that were submitted
        before it. A floor is never lowered: a smaller ordinal changes nothing. ``scope`` is a ``Scope``: ``ALL``, the
        default, seals every attribute, whatever ``attributes`` lists; ``INCLUDE`` those that it lists, by name or
        token; ``EXCLUDE`` all others. Example::

            stage.write(["/A", "/B"], "mass", 2, np.float32([1, 2]))
            stage.advance_write_floor(2).wait()
            stage.read(["/A", "/B"], ["mass"])["mass"].values  # array([1., 2.], dtype=float32)
        """
    def get_attribute_write_floor(self, attribute: _Attribute | None = None) -> OrdinalQuery:
        """Ask up to which ordinal an attribute is sealed; without one, for the floor that all attributes have at least.

        Example::

            with stage.get_attribute_write_floor("velocity") as floor:
                print(floor.fetch())
        """
    def _floor(self, attribute: int | str, /) -> int:
        """The effective floor of an attribute, as ``get_attribute_write_floor`` answers it."""
    def _floor_moves(self, seen: int, timeout: SupportsIndex, /) -> int:
        """How often a floor may have moved, when that is another number than was seen, or the wait took too long."""
    def _wait_floor(self, ordinal: SupportsIndex, attributes: Iterable[int], timeout: SupportsIndex, /) -> None:
        """Wait for the lowest floor of attributes, or for the global one where none is listed."""
    def get_oldest_preserved_ordinal(self) -> OrdinalQuery:
        """Ask from which ordinal on ranges select exactly what changed; 0 until changes were merged.

        Older changes count for the latest change of their prim.
        """
    def fetch_ordinal(self, ordinal_query: Any, timeout: SupportsIndex = TIMEOUT_INFINITE) -> int:
        """The answer of an ordinal query, waited for at most ``timeout`` nanoseconds.

        Raises ``OvstageError``, with code ``TIMEOUT`` when it is not there in time. See ``OrdinalQuery.fetch``.
        """
    def release_ordinal_query(self, ordinal_query: Any, /) -> Operation:
        """Release an ordinal query. See ``OrdinalQuery.release``."""

    # --- queries
    def _query_path_list(self, path_list: SupportsIndex, /) -> Query:
        """A query of the prims of a path list, which it keeps."""
    def _query(
        self,
        filter: _Filter | None,
        attributes: Iterable[_Attribute] | None,
        /,
    ) -> Query:
        """A query by a filter: a pair of a match and conditions, each a filter or ``(attribute, operator, values)``.

        ``None`` matches every prim.
        """
    def _query_where(self, query: Any, mask: Numbers, count: SupportsIndex | None, /) -> Query:
        """A query of those prims of another whose truth value is true. See ``Query.where``."""
    def _refresh_query(self, query: Any, /) -> Operation:
        """Ask the filter of a query again. See ``Query.refresh``."""
    def _query_result(self, query: Any, timeout: SupportsIndex = TIMEOUT_INFINITE) -> tuple[list[int], int, int]:
        """``(attribute tokens, number of prims, path list of all)``; the native result is released already."""
    def release_query(self, query: Any, /) -> Operation:
        """Release a query, after the operations that use it. See ``Query.release``."""

    # --- reading
    def _read_since(
        self, query: Any, tokens: Iterable[int], since: list[int | None], limit: int | None, /
    ) -> tuple[Read, list[tuple[int, bool]]]:
        """A read of what changed since, of all prims for ``None``, up to ``limit`` where that is given; for each token
        until where, and whether anew."""
    def read_attributes(self, query: Any, attrs: Iterable[_Attribute], ordinal_range: OrdinalRange) -> Read:
        """Open a snapshot of sealed values, or of what changed in a range: a ``Read``, which serves groups.

        ``attrs`` are names or tokens, at least one. ``OrdinalRange.latest(n)`` serves for each prim the newest sealed
        value as of ``n``. ``OrdinalRange.between(a, b)`` serves the prims that changed in it, as of ``b``; those that
        lost the attribute come in groups with ``is_delete`` and without tensors.

        The snapshot is taken at once, of all attributes in one step, without a copy and whatever the number of prims.
        Groups lend nothing and block nothing: writers go on, and the memory of a group stays as it is. An attribute
        that no queried prim has contributes no group. A prim that was written at or below the end, but has no sealed
        value yet, fails the read with ``WRITE_FLOOR_VIOLATION``; one that changed again after the end of a range with
        ``OUT_OF_RANGE``: end the range at the write floor, or keep history.

        ``stage.read`` is the same as whole arrays, without handles to release. Example::

            with stage.read_attributes(query, ["velocity"], ovstage.OrdinalRange.latest(1)) as read:
                for group in read.groups():
                    with group:
                        velocity = group.array(0, shaped=True)  # read-only, valid for good
        """
    def fetch_read_next(self, read: Any, timeout: SupportsIndex = TIMEOUT_INFINITE) -> ReadGroup | None:
        """The next group of a read, ``None`` after the last; waits at most ``timeout`` nanoseconds.

        The caller releases it. Raises ``OvstageError``: with code ``TIMEOUT``, or for what the read failed with. See
        ``Read.fetch_next``.
        """
    def _read_one(self, query: Any, token: int, ordinal: SupportsIndex, /) -> ReadGroup | None:
        """The first group of a latest read of one attribute, ``None`` where there is none or the read is refused."""
    def _read_missing(self, read: Any, /) -> list[tuple[int, str]]:
        """Of which attributes an open read serves nothing, and why: pairs of a token and a text."""
    def release_read(self, read: Any, /) -> Operation:
        """Release a read. Groups that were fetched stay valid. See ``Read.release``."""
    def release_group(self, group: object, /) -> None:
        """Release a group of a read; a second release raises ``INVALID_HANDLE``. Answers at once.

        Arrays and exports made from it stay valid memory. Takes a ``ReadGroup``, the 120 bytes of its C structure, or
        an object that has them as ``raw``. A failure leaves the group open.
        """

    # --- mapping
    def _map(
        self,
        query: Any,
        attribute: _Attribute,
        ordinal: SupportsIndex,
        prim_mode: SupportsIndex,
        dtype: tuple[int, int, int] | None,
        semantic: SupportsIndex,
        element_sizes: Iterable[SupportsIndex] | None,
        initial: SupportsIndex,
        group_rows: SupportsIndex,
        /,
    ) -> Map:
        """Open a map. See ``Stage.map_attribute``.

        ``dtype`` is ``(code, bits, lanes)``, ``None`` takes the column's; ``initial`` is 0 current, 1 zero, 2 discard;
        ``group_rows`` is 0 for one group.
        """
    def _fetch_map(self, mapping: Any, timeout: SupportsIndex, cls: type[_GroupT], /) -> _GroupT | None:
        """The next writable group of a map as a ``cls``, ``None`` after the last."""
    def _unmap_group(
        self, mapping: Any, group: object, stream: SupportsIndex, event: SupportsIndex, commit: SupportsIndex, /
    ) -> Operation:
        """Commit one group. ``commit`` is 0 adopt, 1 auto.

        A ``Group`` ends with it, unless the call is refused. Also takes the 88 bytes of its C structure.
        """
    def _unmap(self, mapping: Any, stream: SupportsIndex, event: SupportsIndex, commit: SupportsIndex, /) -> Operation:
        """Commit what is not committed yet, and end the map with every group that was fetched from it."""
    def _abort(self, mapping: Any, /) -> None:
        """End a map without committing the rest."""

    # --- scenes
    def _clone(self, source: str, targets: Iterable[str], ordinal: SupportsIndex, /) -> Operation:
        """Copy a prim and all below it. See ``Stage.clone_async``."""
    def _get_hierarchy(self, path_list: SupportsIndex, ordinal: SupportsIndex, relation: SupportsIndex, /) -> Hierarchy:
        """Ask for the relatives of prims. See ``Stage.get_hierarchy_async``."""
    def _fetch_hierarchy(self, hierarchy: Any, /) -> tuple[int, list[tuple[int, tuple[str, ...]]]]:
        """The answer: the ordinal, and for each prim a status and the paths of its relatives."""
    def release_hierarchy(self, hierarchy: Any, /) -> Operation:
        """Release a question about relatives. See ``Hierarchy.release``."""
    def _prototype_roots(self) -> list[int]:
        """The path handles of all prototypes."""
    def _prototype_root(self, instance_root: SupportsIndex, /) -> int:
        """The path handle of the prototype of an instance."""
    def _instance_roots(self, prototype_root: SupportsIndex, /) -> list[int]:
        """The path handles of the instances of a prototype."""
    def _hierarchy_models(self) -> list[tuple[int, str, str]]:
        """The ways to compute world transforms: id, name and description of each."""
    def _compute_hierarchy(
        self, input_ordinal: SupportsIndex, output_ordinal: SupportsIndex, model: SupportsIndex, /
    ) -> Operation:
        """Compute world transforms. See ``Stage.compute_hierarchy_async``."""

    # --- path dictionary
    def _intern_tokens(self, strings: Iterable[str], /) -> list[int]:
        """The token of each text, new where there was none."""
    def _try_name(self, name: str, where: str, trials: list[object], /) -> int:
        """The token of a name. A new one goes again with the list ``trials``, which is appended what keeps it."""
    def _token_strings(self, tokens: Iterable[SupportsIndex], /) -> list[str]:
        """The text of each token."""
    def _intern_paths(self, strings: Iterable[str], /) -> list[int]:
        """The path handle of each text, new where there was none."""
    def _path_strings(self, paths: Iterable[SupportsIndex], /) -> list[str]:
        """The text of each path handle."""
    def _compact(self) -> int:
        """Drop the paths that nothing names. See ``PathDictionary.compact``."""
    def _list_from_paths(
        self, paths: Iterable[SupportsIndex], cls: type[PathList], attributes: dict[str, Any], /
    ) -> PathList:
        """A new path list, as a ``cls`` with these attributes and its owner.

        The attribute ``_references`` is noted in ``_path_list_refs``.
        """
    def _list_from_strings(self, paths: Iterable[str], cls: type[PathList], attributes: dict[str, Any], /) -> PathList:
        """As ``_list_from_paths``, for paths as text."""
    def _list_of_known(self, paths: Iterable[str], cls: type[PathList], attributes: dict[str, Any], /) -> PathList:
        """As ``_list_from_strings``, for paths that are only asked for: none is made."""
    def _list_add(self, path_list: SupportsIndex, tokens: list[None], /) -> None:
        """Add a reference to a path list, and a token for it to ``tokens``."""
    def _list_release(self, path_list: SupportsIndex, /) -> None:
        """Release one reference of a path list."""
    def _list_give_back(self, path_list: SupportsIndex, references: Any, tokens: list[None], /) -> bool:
        """Take a token and release its reference; False if there is no token.

        Forgets ``references`` in which nothing is left.
        """
    def _list_count(self, path_list: SupportsIndex, /) -> int:
        """The number of paths in a list."""
    def _list_paths(self, path_list: SupportsIndex, /) -> list[int]:
        """The path handles in a list."""

    # --- attributes and counters
    def _attributes(self) -> list[tuple[int, int, tuple[int, int, int], int, bool, int, int, int, int]]:
        """What the stage holds, by name and type.

        For each ``(token, type token or 0, (code, bits, lanes), semantic, is_array, prims, write floor, newest ordinal,
        bytes)``.
        """
    def counters(self) -> dict[str, int]:
        """What is alive and what was done, by name. Each ``live_`` number is 0 once everything was given back.

        ``bytes_`` are bytes: of columns, kept in the pool, copied by writes. Example::

            stage.counters()["live_reads"]  # 0
        """
    def _guard_reads(self) -> None:
        """From now on the process ends where sealed values are written to. See ``StageConfig``."""
    def _keep_history(self, ordinals: SupportsIndex, /) -> None:
        """Keep values readable as of this many sealed ordinals. See ``StageConfig``."""

@final
class Operation:
    """One enqueued call: accepted, with ``status`` 0, or refused, with the reason in ``error_message()``.

    It need not be waited for: it goes on when the object is dropped, and what it reads is kept until it is done. A
    failure that nobody asked about is logged, counted and told in an ``OvstageWarning``. ``await operation`` does what
    ``wait()`` does, without holding up the event loop. Safe from any thread.
    """

    def __init__(self, stage: Stage, status: SupportsIndex, op_id: SupportsIndex, keepalive: object = None) -> None: ...
    @property
    def status(self) -> int:
        """The answer of the call: 0, or the ``ErrorCode`` of the refusal."""
    @property
    def op_id(self) -> int:
        """The stage's number for the operation, 0 if it was refused.

        Once it was read, dropping the object does not release the operation: ``wait()`` or ``release_op`` does.
        """
    @property
    def ok(self) -> bool:
        """True if the call was accepted."""
    def error_message(self) -> str:
        """Why the operation was refused or failed; empty if it was not."""
    def wait(self, timeout: SupportsIndex = TIMEOUT_INFINITE) -> None:
        """Wait until the operation is done, and raise ``OvstageError`` if it failed or was refused.

        Waits at most ``timeout`` nanoseconds, then raises with the code ``TIMEOUT`` and consumes nothing: wait again. A
        wait that ended consumes the operation: another one raises ``INVALID_HANDLE``. A refused operation raises its
        reason every time. Releases the GIL; Ctrl-C is answered within 50 ms. Example::

            operation = stage.write(["/A"], "mass", 2, np.float32([1]))
            operation.wait(timeout=1_000_000_000)
        """
    def done(self) -> bool:
        """True if ``wait()`` would not wait. Consumes nothing."""
    def __await__(self) -> Generator[Any]: ...

class Handle:
    """Base of ``Query``, ``Read``, ``Map`` and the others: a numbered native object, and the operation that opens it.

    A subclass says in ``_ended`` how one that has ended is called, and in ``_forgotten`` what its finaliser says of one
    that was still open.
    """

    def __init__(self, stage: Stage, handle: SupportsIndex, op: Operation | None) -> None: ...
    @property
    def handle(self) -> int:
        """The stage's number for it; 0 if it was refused."""
    @property
    def op(self) -> Operation | None:
        """The ``Operation`` that opens it; ``None`` where it was open at once."""
    @property
    def _stage(self) -> Stage:
        """The stage that it belongs to."""
    @property
    def _open(self) -> bool:
        """Whether nothing has begun to end it."""
    def wait(self, timeout: SupportsIndex = TIMEOUT_INFINITE) -> None:
        """Wait until it is open, at most ``timeout`` nanoseconds. Raises ``OvstageError`` if opening it failed.

        Optional: what uses the handle waits by itself.
        """
    def __int__(self) -> int: ...

class ImplicitQuery:
    """A query of a path list, which ends with its last user and does not keep the stage alive. It is a number."""

    def __init__(self, stage: Stage, path_list: SupportsIndex) -> None: ...
    @property
    def handle(self) -> int:
        """The stage's number for it."""
    def of(self, stage: object, /) -> bool:
        """Whether it is a query of this stage."""
    def __index__(self) -> int: ...

class Group:
    """Base of ``ReadGroup``, from the 120 bytes of its C structure, and ``MapGroup``, from 88.

    Numbers stay readable after the release. Whatever leads to memory raises ``INVALID_HANDLE`` then.
    """

    def __init__(self, raw: Any, stage: Stage | None = None) -> None: ...
    @property
    def stage(self) -> Stage | None:
        """The stage that it was fetched from, or ``None``."""
    @property
    def released(self) -> bool:
        """True once the group was released or committed, or its map ended."""
    @property
    def prim_list(self) -> int:
        """Handle of the path list of which ``prim_index`` gives positions. Borrowed from the group."""
    @property
    def prim_offset(self) -> int:
        """Position of the first prim, where there is no prim index map."""
    @property
    def prim_count(self) -> int:
        """The number of prims."""
    @property
    def has_prim_index_map(self) -> bool:
        """True if the prims are no contiguous part of the list."""
    @property
    def tensor_count(self) -> int:
        """The number of tensors: 1, or in an array column one per row; 0 for a deletion."""
    @property
    def data_count(self) -> int:
        """The number of values: ``prim_count``, or 0 for a deletion."""
    @property
    def has_data_index_map(self) -> bool:
        """True if the value of prim k is not simply row k."""
    @property
    def attribute_write_floor_ordinal(self) -> int:
        """The write floor of the attribute when the group was made."""
    @property
    def layout_generation(self) -> int:
        """Rises exactly when prims join or leave the column."""
    @property
    def _type_token(self) -> int:
        """Token of the name of the values' type; 0 where it has none."""
    # read groups only (AttributeError on a map group)
    @property
    def attribute(self) -> int:
        """Token of the attribute. Of read groups alone, like those below."""
    @property
    def ordinal(self) -> int:
        """No later change is contained."""
    @property
    def is_delete(self) -> bool:
        """True if these prims lost the attribute."""
    @property
    def is_array(self) -> bool:
        """True if each prim has an array: one tensor a row."""
    @property
    def semantic(self) -> int:
        """What the numbers mean, an ``AttributeSemantic``."""
    def prim_index(self, local: SupportsIndex) -> int:
        """Position in the path list of the prim at ``local``, from 0 to ``prim_count - 1``. ``prim_indices()`` gives
        all."""
    def data_row_index(self, local: SupportsIndex) -> int:
        """Row of the value of the prim at ``local``, from 0 to ``data_count - 1``. ``data_rows()`` gives all."""
    def dlpack(
        self,
        index: SupportsIndex,
        *,
        readonly: bool | None = None,
        shape: Iterable[SupportsIndex] | None = None,
        private: bool = False,
    ) -> ManagedDLTensor:
        """Tensor ``index`` for DLPack consumers, without a copy.

        Read-only by default for a read group, writable for a map group. PyTorch and Warp write through what is
        read-only, which changes the values of every reader: ``private=True`` gives each consumer a writable copy of its
        own; not for a map group. Lanes are one trailing axis, ``(N, 16)`` for matrices; ``shape`` gives the same
        elements other axes, of which one may be -1. What a consumer makes of it holds the bytes for itself, and stays
        valid after group, map and stage have ended.

        Raises ``IndexError`` out of range, ``ValueError`` for a shape of another size, ``INVALID_HANDLE`` after the
        release. Example::

            with stage.read_attributes(query, ["velocity"], ovstage.OrdinalRange.latest(1)) as read:
                with read.fetch_next() as group:
                    velocity = np.from_dlpack(group.dlpack(0))
            velocity.shape  # (2, 3)
        """
    def _raw(self) -> bytes:
        """The C structure: 120 bytes of a read group, 88 of a map group."""
    def _tensor_address(self, index: SupportsIndex, /) -> int:
        """Address of the ``DLTensor`` at ``index``, valid while the group is open or a ``_hold`` of it lives."""
    def _hold(self, index: SupportsIndex, /) -> object:
        """An object that keeps the descriptors and the bytes of tensor ``index`` alive."""
    def _buffer(self, index: SupportsIndex, readonly: bool, /) -> Buffer:
        """Tensor ``index`` as a flat buffer of base elements, which keeps its bytes alive.

        bfloat16 and float8 come as unsigned integers: see ``Buffer.extension``. Raises ``ValueError`` for other types
        that no struct code names, ``NotImplementedError`` where the tensor is not in host memory.
        """
    def _prim_index_buffer(self) -> Buffer | None:
        """The prim index map as a read-only buffer of uint32; ``None`` where the prims are a range."""
    def _data_index_buffer(self) -> Buffer | None:
        """The data index map as a read-only buffer of uint32; ``None`` where value k is row k."""
    def _arrow_schema(self, name: str, /) -> object:
        """A capsule with the ``ArrowSchema`` of the values, under a name."""
    def _arrow_array(self) -> object:
        """A capsule with the ``ArrowArray`` of the values, one entry a prim."""
    def _pack(self, rows: Iterable[SupportsIndex] | None, /) -> tuple[Any, bytes]:
        """The elements of these tensors, ``None`` for all, one behind the other, and the number of each as int64.

        A view where they lie like that, else a copy.
        """
    def _claim_release(self) -> None:
        """Mark as released without giving anything back; ``INVALID_HANDLE`` if it is already."""
    def _unclaim_release(self) -> None:
        """Undo ``_claim_release``."""

@final
class Buffer:
    """Bytes of a column through the buffer protocol. A read-only one never gives a writable view."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    @property
    def address(self) -> int:
        """Address of the first element."""
    @property
    def readonly(self) -> bool:
        """True where no writable view is given."""
    @property
    def format(self) -> str:
        """The struct code of an element."""
    @property
    def extension(self) -> str | None:
        """Name of the element type where ``format`` only stands in for it (bfloat16, float8 types), else ``None``."""
    @property
    def lanes(self) -> int:
        """How many elements make a row."""

class ManagedDLTensor:
    """A tensor for DLPack consumers: ``numpy.from_dlpack(tensor)``, and likewise in Warp, PyTorch, JAX and CuPy.

    Groups make them; built by the caller, it is over a ``DLTensor``. ``manager_ctx`` is kept alive as long as a
    consumer has the tensor, and given to ``deleter_callback`` afterwards, once, on a Python thread.
    """

    __dlpack_c_exchange_api__: Final[object]
    def __init__(
        self,
        dl_tensor: DLTensor,
        manager_ctx: object,
        deleter_callback: Callable[[Any], object] | None = None,
        readonly: bool = True,
    ) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents as the descriptor has them: lanes are no axis here."""
    @property
    def ndim(self) -> int:
        """The number of axes, lanes not counted."""
    @property
    def dtype(self) -> DLDataType:
        """The type of an element, with its lanes."""
    @property
    def data(self) -> int | None:
        """Address of the data, or ``None``."""
    @property
    def device(self) -> DLDevice:
        """The device that the data is on."""
    @property
    def raw_dltensor(self) -> DLTensor:
        """The ``DLTensor``: a copy, which keeps the memory alive."""
    @property
    def readonly(self) -> bool:
        """True where consumers are told not to write."""
    def numpy(self) -> Any:
        """The tensor as ``numpy.from_dlpack`` sees it, without a copy."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule with the tensor: a versioned one where ``max_version`` is ``(1, 0)`` or more, else an old one.

        ``copy=True`` exports a writable copy. ``dl_device`` may name the tensor's own device, or the CPU, for which
        memory is copied if need be; anything else raises ``BufferError``. ``stream`` is ignored: order on a stream is
        the caller's.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """The device type and number, as DLPack has them."""

@final
class ImportedTensor:
    """Owner of a consumed capsule: calls the producer's deleter once, when it is dropped."""

def consume_dlpack(
    obj: object, stream: object = None
) -> tuple[tuple[int, int, int, int, int, int, tuple[int, ...], tuple[int, ...] | None, int, int], ImportedTensor]:
    """Take ``obj`` through ``__dlpack__``.

    ``((data, device type, device id, code, bits, lanes, shape, strides or None, byte offset, flags), owner)``. Refused
    before the capsule is consumed: lanes outside 1 to 255 and axes that cannot be read (``ValueError``), another device
    than ``__dlpack_device__`` names (``BufferError``). A foreign major version is consumed, given back unread and
    refused with ``BufferError``.
    """

def initialize(hierarchy_model: SupportsIndex | None = None) -> None:
    """Take a reference of the process state, with a default hierarchy model where one is given."""

def shutdown() -> None:
    """Release a reference that ``initialize`` took."""

def library_version() -> tuple[int, int, int]:
    """The interface level of the library: ``(major, minor, patch)``. Read from its file; nothing is started."""

def process_counters() -> dict[str, int]:
    """What is alive in the process and what was done, by name: ``Stage.counters`` over all stages."""

def trim_memory() -> None:
    """Give memory that is pooled for reuse back to the operating system."""

def set_log_callback(
    callback: Callable[[int, float, str], object] | None,
    severity: SupportsIndex = 0,
    channel_filter: str | None = None,
) -> None:
    """Deliver messages to ``callback(severity, timestamp, message)``, one at a time on a thread of the library.

    ``None`` ends it, after the messages that are under way. Messages below ``severity``, a ``LogSeverity``, are
    dropped; ``channel_filter`` has rules such as ``"ovstage=info"``. ``timestamp`` is in seconds. There is one callback
    in the process: another takes its place. An exception that it raises is printed.
    """

def flush_log(timeout: SupportsIndex = TIMEOUT_INFINITE) -> bool:
    """Wait until the messages so far are delivered, at most ``timeout`` nanoseconds; False when the time is up."""

def _end_log() -> None:
    """Take the log callback away at exit: the library must not call into an interpreter that is going away."""

def _mark_forked() -> None:
    """Note that this process is a forked child. Called by ``os.register_at_fork``."""
