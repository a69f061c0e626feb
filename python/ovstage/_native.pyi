"""The compiled part of the package: what costs microseconds in Python, or must not depend on Python to be safe.

Enqueue methods return an ``Operation`` or a handle and do not raise for a refusal: either keeps the reason. What they
return is made before the library is called, so that no interrupt finds a native handle without an owner. Everything
else raises ``ovstage.errors.OvstageError``, the path dictionary methods ``ovstage.errors.OvxError``. Blocking calls
release the GIL and answer Ctrl-C within 50 ms.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, SupportsIndex, TypeAlias, TypeVar, final

from ovstage.dictionary import PathList
from ovstage.dlpack import DLDataType, DLDevice, DLTensor
from ovstage.groups import ReadGroup
from ovstage.handles import Hierarchy, Map, OrdinalQuery, Query, Read
from ovstage.values import Numbers, OrdinalRange

_GroupT = TypeVar("_GroupT", bound=Group)
_OwnerT = TypeVar("_OwnerT")
_Attribute: TypeAlias = str | SupportsIndex  # a name, or the token of one
_Predicate: TypeAlias = tuple[_Attribute, SupportsIndex, Iterable[str]]  # attribute, operator, values
_Filter: TypeAlias = tuple[int, Iterable[_Predicate | _Filter]]

TIMEOUT_INFINITE: Final[int]

class Stage:
    """One native instance. Every method but the constructor, ``alive``, ``destroy`` and ``last_error`` raises
    INVALID_HANDLE with the text ``<method> called after Stage was destroyed`` once it is destroyed."""

    def __init__(self, name: str | None = None) -> None: ...
    @property
    def alive(self) -> bool:
        """True from creation to destroy()."""
    def destroy(self) -> None:
        """Idempotent. A failure raises and keeps the instance, so that it can be tried again."""
    def _refuse_fork(self, name: str, /) -> None:
        """Raises in a forked child, as every call does; for what takes locks of Python, which comes after it."""
    def last_error(self) -> str:
        """The text of the last refused call on this thread."""

    # --- operations
    def wait_op(self, op_id: SupportsIndex, timeout: SupportsIndex = TIMEOUT_INFINITE) -> tuple[int, list[int], int]:
        """``(code, failed op ids, lowest pending op id)``; never raises for a failed operation and releases nothing."""
    def release_op(self, op_id: SupportsIndex) -> int:
        """Forget a finished operation; the status."""
    def op_error(self, op_id: SupportsIndex, /) -> str:
        """Why an operation failed that this thread's last wait_op reported; else empty."""
    def op_status(self, op_id: SupportsIndex, /) -> int:
        """The status a finished operation ended with; INVALID_HANDLE if it is not known."""

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
        """Write one attribute of the query's prims at an ordinal; an Operation.

        tensors is one tensor, or a list or tuple of several: NumPy arrays, objects with __dlpack__, DLTensors, or what
        NumPy makes an array of. Their bytes are copied when the write runs, whatever their strides.

        is_array says whether a prim has one value or an array of them. An array column takes one tensor per prim, or a
        single one that is cut into equal rows. index_map gives the source row of each target, mask a bit for each
        target to write, count the number of targets. lanes=k makes tuples of the trailing axes of each tensor, which
        array columns need said: their rows of shape (n, 3) are 3 n numbers, with lanes=3 they are n triples.

        transfer=True gives the tensors away: the caller promises not to write to their memory any more. A packed one at
        an address that is a multiple of 64, with the newest values of a whole fixed-size column, becomes the column
        without a copy; any other is copied. Either way it is let go of once, on a Python thread, when it is not needed
        any more.

        type_name says what the values are called where they come from, such as the USD type 'color3f' or 'string'. It
        is part of what a column is, like semantic: another one on the same prims is refused, none goes where the others
        are.
        """
    def write_attributes(
        self, query: Any, writes: Iterable[Any], ordinal: SupportsIndex, *, prim_mode: SupportsIndex = 0
    ) -> Operation:
        """Write several attributes, each described by a WriteDesc, at one ordinal, all or none; one Operation."""
    def _publish(
        self,
        deletes: Iterable[tuple[Any, Iterable[_Attribute]]],
        batches: Iterable[tuple[Any, Iterable[Any]]],
        ordinal: SupportsIndex,
        /,
    ) -> Operation:
        """Delete, then write, all of it or nothing; one Operation. deletes are pairs of a query and attributes, none
        for the prims, batches are pairs of a query and WriteDescs."""
    def _tell_unasked(self, call: str, ordinal: SupportsIndex | None, code: SupportsIndex, reason: str, /) -> None:
        """Count a failure that nobody asked about, log it, and warn, unless it is held back."""
    def _delete(self, query: Any, attributes: Iterable[_Attribute], ordinal: SupportsIndex, /) -> Operation:
        """An Operation."""

    # --- floors
    def advance_write_floor(
        self, ordinal: SupportsIndex, scope: SupportsIndex = 0, attributes: Iterable[_Attribute] | None = None
    ) -> Operation:
        """Seal everything at or below `ordinal`, after the writes that reach it. Never lowers a floor.

        `attributes` belongs to the scopes INCLUDE (these only) and EXCLUDE (all but these); ALL seals every attribute,
        whatever it lists.
        """
    def get_attribute_write_floor(self, attribute: _Attribute | None = None) -> OrdinalQuery:
        """Ask for the floor of an attribute, or for the global one."""
    def get_oldest_preserved_ordinal(self) -> OrdinalQuery:
        """Ask for the oldest ordinal from which ranges select exactly what changed; 0 until changes were merged."""
    def fetch_ordinal(self, ordinal_query: Any, timeout: SupportsIndex = TIMEOUT_INFINITE) -> int:
        """The answer of an ordinal query."""
    def release_ordinal_query(self, ordinal_query: Any, /) -> Operation:
        """Let an ordinal query go."""

    # --- queries
    def _query_path_list(self, path_list: SupportsIndex, /) -> Query:
        """A Query, which keeps the list."""
    def _name_query(self, path_list: SupportsIndex, owner: _OwnerT, /) -> _OwnerT:
        """Sets ``owner.handle`` to the number of a query."""
    def _query(
        self,
        filter: _Filter | None,
        attributes: Iterable[_Attribute] | None,
        /,
    ) -> Query:
        """``filter``: a match and what it combines; None matches every prim."""
    def _query_where(self, query: Any, mask: Numbers, count: SupportsIndex | None, /) -> Query:
        """A query of some prims of another."""
    def _refresh_query(self, query: Any, /) -> Operation:
        """An Operation."""
    def _query_result(self, query: Any, timeout: SupportsIndex = TIMEOUT_INFINITE) -> tuple[list[int], int, int]:
        """``(attribute tokens, total prim count, handle of all)``; the native result is released already."""
    def release_query(self, query: Any, /) -> Operation:
        """Let a query go, after the operations that use it."""

    # --- reading
    def read_attributes(self, query: Any, attrs: Iterable[_Attribute], ordinal_range: OrdinalRange) -> Read:
        """Open a snapshot of sealed values, or of what changed in a range.

        An attribute that no queried prim has contributes no group. A prim that has been written at or below the end of
        the range, but has no sealed value yet, fails the read with WRITE_FLOOR_VIOLATION. Neither the read nor its
        groups keep writers from writing.

        OrdinalRange.between selects the prims that changed in it and serves their values as of its end; those that lost
        the attribute come in groups with is_delete and no tensors. A prim that changed again after the end is
        OUT_OF_RANGE: end the range at the write floor.
        """
    def fetch_read_next(self, read: Any, timeout: SupportsIndex = TIMEOUT_INFINITE) -> ReadGroup | None:
        """The next group of a read, None after the last."""
    def _read_missing(self, read: Any, /) -> list[tuple[int, str]]:
        """Of which attributes an open read serves nothing, and why."""
    def release_read(self, read: Any, /) -> Operation:
        """Let a read go. Its groups stay valid."""
    def release_group(self, group: object, /) -> None:
        """Claims a ``Group`` and gives it back, rolling the claim back on failure. Also takes the raw 120 bytes, or an
        object that has them as ``.raw``."""

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
        """``dtype``: (code, bits, lanes), None takes the column's; ``initial``: 0 current, 1 zero, 2 discard;
        ``group_rows``: 0 one group."""
    def _fetch_map(self, mapping: Any, timeout: SupportsIndex, cls: type[_GroupT], /) -> _GroupT | None:
        """The next writable group as a cls; None after the last."""
    def _unmap_group(
        self, mapping: Any, group: object, stream: SupportsIndex, event: SupportsIndex, commit: SupportsIndex, /
    ) -> Operation:
        """``commit``: 0 adopt, 1 auto. A ``Group`` is claimed, rolled back when the call is refused."""
    def _unmap(self, mapping: Any, stream: SupportsIndex, event: SupportsIndex, commit: SupportsIndex, /) -> Operation:
        """Also ends every group fetched from the session."""
    def _abort(self, mapping: Any, /) -> None:
        """End a session without committing the rest."""

    # --- scenes
    def _clone(self, source: str, targets: Iterable[str], ordinal: SupportsIndex, /) -> Operation:
        """An Operation."""
    def _get_hierarchy(self, path_list: SupportsIndex, ordinal: SupportsIndex, relation: SupportsIndex, /) -> Hierarchy:
        """A Hierarchy."""
    def _fetch_hierarchy(self, hierarchy: Any, /) -> tuple[int, list[tuple[int, tuple[str, ...]]]]:
        """(ordinal, [(status, paths)])"""
    def release_hierarchy(self, hierarchy: Any, /) -> Operation:
        """Let a hierarchy query go."""
    def _prototype_roots(self) -> list[int]:
        """Path handles."""
    def _prototype_root(self, instance_root: SupportsIndex, /) -> int:
        """The path handle of its prototype."""
    def _instance_roots(self, prototype_root: SupportsIndex, /) -> list[int]:
        """Path handles."""
    def _hierarchy_models(self) -> list[tuple[int, str, str]]:
        """[(id, name, description)]"""
    def _compute_hierarchy(
        self, input_ordinal: SupportsIndex, output_ordinal: SupportsIndex, model: SupportsIndex, /
    ) -> Operation:
        """An Operation."""

    # --- path dictionary
    def _intern_tokens(self, strings: Iterable[str], /) -> list[int]:
        """A token for each string."""
    def _try_name(self, name: str, place: str, trials: list[object], /) -> int:
        """The token of a name; a new one goes again with the list, which gets what keeps it."""
    def _token_strings(self, tokens: Iterable[SupportsIndex], /) -> list[str]:
        """A string for each token."""
    def _intern_paths(self, strings: Iterable[str], /) -> list[int]:
        """A path handle for each string."""
    def _path_strings(self, paths: Iterable[SupportsIndex], /) -> list[str]:
        """A string for each path handle."""
    def _list_from_paths(
        self, paths: Iterable[SupportsIndex], cls: type[PathList], attributes: dict[str, Any], /
    ) -> PathList:
        """The list with its owner, which has the attributes; ``_references`` are noted in ``_path_list_refs``."""
    def _list_from_strings(self, paths: Iterable[str], cls: type[PathList], attributes: dict[str, Any], /) -> PathList:
        """The same for paths as text."""
    def _list_of_known(self, paths: Iterable[str], cls: type[PathList], attributes: dict[str, Any], /) -> PathList:
        """The same for paths that are only asked for: no new one stays."""
    def _list_add(self, path_list: SupportsIndex, tokens: list[None], /) -> None:
        """Add a reference, and a token to the list."""
    def _list_release(self, path_list: SupportsIndex, /) -> None:
        """Drop a reference."""
    def _list_give_back(self, path_list: SupportsIndex, references: Any, tokens: list[None], /) -> bool:
        """Takes a token with its reference, and forgets references that are empty then."""
    def _list_count(self, path_list: SupportsIndex, /) -> int:
        """The number of paths."""
    def _list_paths(self, path_list: SupportsIndex, /) -> list[int]:
        """The path handles."""

    # --- attributes and counters
    def _attributes(self) -> list[tuple[int, int, tuple[int, int, int], int, bool, int, int]]:
        """``(token, type token or 0, (code, bits, lanes), semantic, is_array, prims, write floor)`` of each."""
    def counters(self) -> dict[str, int]:
        """What is alive and what was done, by name. Each live_ number is 0 once everything was given back."""
    def _guard_reads(self) -> None:
        """End the process when somebody writes to sealed values."""
    def _keep_history(self, ordinals: SupportsIndex, /) -> None:
        """Keep values readable as of this many sealed ordinals."""

@final
class Operation:
    """One enqueued call: accepted (``status == 0``), or refused with the reason in ``error_message()``."""

    def __init__(self, stage: Stage, status: SupportsIndex, op_id: SupportsIndex, keepalive: object = None) -> None: ...
    @property
    def status(self) -> int:
        """Answer of the enqueue: 0, or the ErrorCode of the refusal."""
    @property
    def op_id(self) -> int:
        """The stage's number for the operation; 0 if it was refused."""
    @property
    def ok(self) -> bool:
        """True if the enqueue was accepted."""
    def error_message(self) -> str:
        """Why the operation was refused or failed; empty if it was not."""
    def wait(self, timeout: SupportsIndex = TIMEOUT_INFINITE) -> None:
        """Wait until the operation is done, at most `timeout` nanoseconds, and raise OvstageError if it failed or was
        refused.

        A timeout raises OvstageError(TIMEOUT) and consumes nothing: wait again. After a wait that ended, another one
        raises INVALID_HANDLE; a refused operation raises its reason every time.
        """
    def done(self) -> bool:
        """True if wait() would not wait. Consumes nothing."""
    def __await__(self) -> Generator[Any]: ...

class Handle:
    """Base of Query, Read, Map and the others. A subclass says in ``_ended`` how one that ended is called, and in
    ``_forgotten`` what its finaliser says when it was not."""

    def __init__(self, stage: Stage, handle: SupportsIndex, op: Operation | None) -> None: ...
    @property
    def handle(self) -> int:
        """The stage's number for it; 0 if it was refused."""
    @property
    def op(self) -> Operation | None:
        """The Operation that opens it; None where it was open at once."""
    @property
    def _stage(self) -> Stage:
        """The stage it belongs to."""
    @property
    def _open(self) -> bool:
        """Whether its end has not been claimed."""
    def wait(self, timeout: SupportsIndex = TIMEOUT_INFINITE) -> None:
        """Wait until the handle is open, and raise OvstageError when that failed. Waiting first is optional."""
    def __int__(self) -> int: ...

class Group:
    """Base of ReadGroup (from 120 raw bytes) and MapGroup (88). Numbers stay readable after release; everything that
    leads to the payload raises INVALID_HANDLE then."""

    def __init__(self, raw: Any, stage: Stage | None = None) -> None: ...
    @property
    def stage(self) -> Stage | None:
        """The stage it was fetched from, or None."""
    @property
    def released(self) -> bool:
        """True once the group was released or committed, or its map ended."""
    @property
    def prim_list(self) -> int:
        """Handle of the path list that prim_index() counts in; borrowed."""
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
        """The number of tensors; 0 for a deletion."""
    @property
    def data_count(self) -> int:
        """The number of values: prim_count for a group of values."""
    @property
    def has_data_index_map(self) -> bool:
        """True if value i is not simply row i."""
    @property
    def attribute_write_floor_ordinal(self) -> int:
        """The attribute's write floor when the group was made."""
    @property
    def layout_generation(self) -> int:
        """Rises exactly when prims join or leave the column."""
    @property
    def _type_token(self) -> int:
        """Token of the name of the values' type; 0: nobody has said."""
    # read groups only (AttributeError on a map group)
    @property
    def attribute(self) -> int:
        """Token of the attribute (read groups)."""
    @property
    def ordinal(self) -> int:
        """No later change is contained (read groups)."""
    @property
    def is_delete(self) -> bool:
        """True if these prims lost the attribute (read groups)."""
    @property
    def is_array(self) -> bool:
        """True if each prim has an array: one tensor a row (read groups)."""
    @property
    def semantic(self) -> int:
        """What the bytes mean, an AttributeSemantic (read groups)."""
    def prim_index(self, local: SupportsIndex) -> int:
        """The position in prim_list of prim `local` of the group."""
    def data_row_index(self, local: SupportsIndex) -> int:
        """The row that holds the value of prim `local` of the group."""
    def dlpack(
        self,
        index: SupportsIndex,
        *,
        readonly: bool | None = None,
        shape: Iterable[SupportsIndex] | None = None,
        private: bool = False,
    ) -> ManagedDLTensor:
        """``readonly`` is True by default for a read group, False for a map group. ``shape`` gives the same elements
        other axes, of which one may be -1; by default lanes are one trailing axis. ``private`` gives each consumer of a
        read group a writable copy."""
    def _raw(self) -> bytes:
        """The C structure, 120 or 88 bytes."""
    def _tensor_address(self, index: SupportsIndex, /) -> int:
        """Address of DLTensor ``index``; valid while the group is unreleased or a ``_hold`` of it lives."""
    def _hold(self, index: SupportsIndex, /) -> object:
        """Keeps the descriptors and the bytes of tensor ``index`` alive for as long as the returned object lives."""
    def _buffer(self, index: SupportsIndex, readonly: bool, /) -> Buffer:
        """Tensor ``index`` as a flat buffer of base elements that keeps its bytes alive. bfloat16 and float8 come as
        unsigned integers, see ``Buffer.extension``; ``ValueError`` for other types that no struct code names,
        ``NotImplementedError`` where the tensor is not in host memory."""
    def _prim_index_buffer(self) -> Buffer | None:
        """The prim index map as a read-only buffer of uint32; None where the prims are a range."""
    def _data_index_buffer(self) -> Buffer | None:
        """The data index map as a read-only buffer of uint32; None where element i is row i."""
    def _arrow_schema(self, name: str, /) -> object:
        """Capsule with the ArrowSchema of the group's values."""
    def _arrow_array(self) -> object:
        """Capsule with the ArrowArray of the group's values, one entry a prim."""
    def _pack(self, rows: Iterable[SupportsIndex] | None, /) -> tuple[Any, bytes]:
        """The elements of these tensors (None: of all), one behind the other, and the number of each as int64: a view
        where they lie like that, else a copy."""
    def _claim_release(self) -> None:
        """Mark as released without giving anything back; INVALID_HANDLE when it is already."""
    def _unclaim_release(self) -> None:
        """Take a claim back."""

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
        """True where no writable view is given out."""
    @property
    def format(self) -> str:
        """The struct code of an element."""
    @property
    def extension(self) -> str | None:
        """Name of the element type where ``format`` only stands in for it (bfloat16, float8_*)."""
    @property
    def lanes(self) -> int:
        """How many elements make a row."""

class ManagedDLTensor:
    """A tensor that DLPack consumers can take."""

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
        """The raw extents; lanes are not an axis here."""
    @property
    def ndim(self) -> int:
        """The number of axes, lanes not counted."""
    @property
    def dtype(self) -> DLDataType:
        """The DLDataType of an element."""
    @property
    def data(self) -> int | None:
        """Address of the data, or None."""
    @property
    def device(self) -> DLDevice:
        """The DLDevice that the data is on."""
    @property
    def raw_dltensor(self) -> DLTensor:
        """The DLTensor."""
    @property
    def readonly(self) -> bool:
        """True where consumers are told not to write."""
    def numpy(self) -> Any:
        """The tensor as numpy.from_dlpack(self) sees it."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

@final
class ImportedTensor:
    """Owner of a consumed capsule: calls the producer's deleter once, when it dies."""

def consume_dlpack(
    obj: object, stream: object = None
) -> tuple[tuple[int, int, int, int, int, int, tuple[int, ...], tuple[int, ...] | None, int, int], ImportedTensor]:
    """Take ``obj`` through ``__dlpack__``: ``((data, device type, device id, code, bits, lanes, shape, strides or None,
    byte offset, flags), owner)``. Refused before the capsule is consumed: lanes outside 1..255 and axes that cannot be
    read (``ValueError``), another device than ``__dlpack_device__`` names (``BufferError``). A foreign major version is
    consumed, given back unread and refused with ``BufferError``."""

def initialize(hierarchy_model: SupportsIndex | None = None) -> None:
    """Take one reference on the process state, with a default hierarchy model where one is given."""

def shutdown() -> None:
    """Give one such reference back."""

def library_version() -> tuple[int, int, int]:
    """The interface level of the library: (major, minor, patch)."""

def process_counters() -> dict[str, int]:
    """What is alive in the process and what was done, by name."""

def trim_memory() -> None:
    """Give pooled buffers back to the operating system."""

def set_log_callback(
    callback: Callable[[int, float, str], object] | None,
    severity: SupportsIndex = 0,
    channel_filter: str | None = None,
) -> None:
    """Deliver messages to callback(severity, timestamp, message), on the library's own thread; None ends it."""

def flush_log(timeout: SupportsIndex = TIMEOUT_INFINITE) -> bool:
    """Wait until earlier messages are delivered; False on timeout."""

def _end_log() -> None:
    """Drop the log callback; registered with atexit, since the dispatcher must not call into a dying interpreter."""

def _mark_forked() -> None:
    """This process is a forked child; registered with os.register_at_fork."""
