"""Golden scripts, played through the Python package: what ``tests/scripts`` says, whose README has the language."""

from __future__ import annotations

import contextlib
import ctypes
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import stored

import ovstage
from ovstage import (
    AttributeSemantic,
    ErrorCode,
    Filter,
    FilterOp,
    HierarchyRelation,
    OrdinalRange,
    PrimMode,
    StageConfig,
    instancing,
)
from ovstage.dlpack import DLDataType, DLTensor

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"

WORD = re.compile(r'\[[^\]]*\]|(?:[^\s"]|"[^"]*")+')
OPTION = re.compile(r"([a-z]+)=(.*)")

# Element types: DLPack's code and bits, and what struct calls them; None for those that are written as their bits.
ELEMENTS: dict[str, tuple[int, int, str | None]] = {
    "bool8": (6, 8, "?"),
    **{f"int{bits}": (0, bits, kind) for bits, kind in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))},
    **{f"uint{bits}": (1, bits, kind) for bits, kind in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
    "float16": (2, 16, None),
    "float32": (2, 32, "f"),
    "float64": (2, 64, "d"),
    "bfloat16": (4, 16, None),
    "complex64": (5, 64, None),
    "float8_e4m3fn": (10, 8, None),
    "float8_e5m2": (12, 8, None),
}
NAMES = {(code, bits): name for name, (code, bits, _) in ELEMENTS.items()}
BITS = {8: "B", 16: "H", 32: "I", 64: "Q"}
TRUTHS = {"true": True, "false": False}
MODES = {"upsert": PrimMode.UPSERT, "insert": PrimMode.INSERT, "update": PrimMode.UPDATE, "require": PrimMode.REQUIRE}
OPERATORS = {
    **{op.name.lower(): op for op in (FilterOp.HAS, FilterOp.IN, FilterOp.CONTAINS, FilterOp.PREFIX)},
    "<": FilterOp.LT,
    "<=": FilterOp.LE,
    ">": FilterOp.GT,
    ">=": FilterOp.GE,
}


class Kind:
    """What a type in a script means: ``float32x3``, or ``float32x3[]`` for arrays."""

    def __init__(self, word: str) -> None:
        self.array = word.endswith("[]")
        name, lanes = word.removesuffix("[]"), 1
        if name not in ELEMENTS:
            name, _, digits = name.rpartition("x")
            lanes = int(digits)
        self.code, self.bits, kind = ELEMENTS[name]
        self.lanes, self.letter = lanes, kind or BITS[self.bits]

    def pack(self, names: ovstage.PathDictionary, row: str) -> bytes:
        """The bytes of one row."""
        numbers = [row] if row[0] in '"<' else row.split(",")
        assert len(numbers) == self.lanes, f"{row} is no value of {self.lanes} lanes"
        return struct.pack(f"={self.lanes}{self.letter}", *(self._number(names, number) for number in numbers))

    def _number(self, names: ovstage.PathDictionary, number: str) -> Any:
        if number[0] == '"':
            return names.intern_token(number.strip('"'))
        if number[0] == "<":
            return names.intern_path(number.strip("<>"))
        if number in TRUTHS:
            return TRUTHS[number]
        return float(number) if self.letter in "fd" else int(number, 0)

    def tensor(self, names: ovstage.PathDictionary, rows: list[str]) -> DLTensor:
        content = b"".join(self.pack(names, row) for row in rows)
        memory = ctypes.create_string_buffer(content, max(len(content), 1))
        shape = (ctypes.c_int64 * 1)(len(rows))
        tensor = DLTensor()
        tensor.data = ctypes.addressof(memory)
        tensor.device.device_type = 1
        tensor.ndim = 1
        tensor.dtype = DLDataType(self.code, self.bits, self.lanes)
        tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
        tensor._owner = (memory, shape)
        return tensor


class Refused(Exception):
    """The stage refused a call, or its operation failed: the answer of the command."""


class Player:
    """One script on a stage of its own. ``do`` gives a command's answer; the rest is a method for each command."""

    def __init__(self, stage: ovstage.Stage, names: ovstage.PathDictionary) -> None:
        self.stage, self.names = stage, names
        self.queries: dict[str, ovstage.Query] = {}
        self.maps: dict[str, ovstage.Map] = {}
        self.lent: dict[str, list[ovstage.MapGroup]] = {}
        self.views: dict[str, list[Any]] = {}
        self.held: dict[str, list[ovstage.ReadGroup]] = {}

    def do(self, line: str) -> list[str]:
        command, *rest = WORD.findall(line)
        options = dict(found.groups() for word in rest if (found := OPTION.fullmatch(word)))
        words = [word for word in rest if not OPTION.fullmatch(word)]
        play: Callable[..., list[str] | None] = getattr(self, f"do_{command}")
        try:
            return play(*words, **options) or []
        except Refused as refused:
            return [str(refused)]
        except ovstage.OvstageError as error:
            return [f"refused {ErrorCode(error.code).name}: {error.message}"]
        except (ovstage.OvxError, ValueError) as error:  # of arguments, which C refuses as such
            return [f"refused INVALID_ARGUMENT: {getattr(error, 'message', error)}"]

    def close(self) -> None:
        """Give everything back."""
        for mapping in self.maps.values():
            with contextlib.suppress(ovstage.OvstageError):
                mapping.abort()
        for groups in self.held.values():
            for group in groups:
                group.release()
        for query in self.queries.values():
            query.release().wait()
        alive = {name: n for name, n in self.stage.counters().items() if name.startswith("live_")}
        self.views.clear()
        self.lent.clear()
        assert not any(alive[f"live_{what}"] for what in ("groups", "maps", "operations", "queries", "reads")), alive

    # --- words

    @contextlib.contextmanager
    def _on(self, prims: str) -> Iterator[Any]:
        """The query of some prims, which ends with the call if it was made for it."""
        if prims.startswith("$"):
            yield self.queries.get(prims[1:], 0)
            return
        with self._query(prims) as query:
            yield query

    def _query(self, prims: str) -> ovstage.Query:
        with self.names.create_path_list_from_strings([] if prims == "-" else prims.split(",")) as paths:
            return self.stage.query_from_path_list(paths)

    def _ended(self, operation: ovstage.Operation | None) -> None:
        if operation is None:
            return
        how = "failed" if operation.ok else "refused"
        try:
            operation.wait()
        except ovstage.OvstageError as error:
            raise Refused(f"{how} {ErrorCode(error.code).name}: {error.message}") from error

    def _payload(self, kind: Kind, rows: list[str]) -> Any:
        if kind.array and rows and rows[0].startswith("["):
            return [kind.tensor(self.names, row.strip("[]").split()) for row in rows]
        return kind.tensor(self.names, rows)

    def _writes(self, words: list[str], options: dict[str, str]) -> list[ovstage.WriteDesc]:
        writes = []
        for part in split(words, "&"):
            name, kind = part[0], Kind(part[1])
            writes.append(
                ovstage.WriteDesc(name, self._payload(kind, part[2:]), is_array=kind.array, **self._chosen(options))
            )
        return writes

    def _chosen(self, options: dict[str, str]) -> dict[str, Any]:
        """The options of a write, as keywords."""
        chosen: dict[str, Any] = {}
        if "rows" in options:
            chosen["index_map"] = numbers(options["rows"])
            chosen["count"] = len(chosen["index_map"])
        if "mask" in options:
            chosen["mask"] = [bit == "1" for bit in options["mask"]]
            chosen["count"] = len(chosen["mask"])
        if "count" in options:
            chosen["count"] = int(options["count"])
        if "role" in options:
            chosen["semantic"] = AttributeSemantic[options["role"]]
        if "type" in options:
            chosen["type_name"] = options["type"]
        return chosen

    # --- floors

    def do_history(self, count: str) -> None:
        self.stage._keep_history(int(count))

    def do_seal(self, ordinal: str, only: str | None = None, but: str | None = None) -> None:
        scope, names = (0, "") if only is None and but is None else (1, only) if only is not None else (2, but)
        self._ended(self.stage.advance_write_floor(int(ordinal), scope, names.split(",") if names else []))

    def do_floor(self, name: str | None = None) -> list[str]:
        with self.stage.get_attribute_write_floor(name) as floor:
            return [str(floor.fetch())]

    def do_oldest(self) -> list[str]:
        with self.stage.get_oldest_preserved_ordinal() as oldest:
            return [str(oldest.fetch())]

    # --- writes

    def do_write(self, prims: str, where: str, *words: str, **options: str) -> None:
        name, ordinal = at(where)
        mode = MODES[options.get("mode", "upsert")]
        with self._on(prims) as query:
            if "&" in words:
                writes = self._writes([name, *words], options)
                self._ended(self.stage.write_attributes(query, writes, ordinal, prim_mode=mode))
                return
            kind = Kind(words[0])
            self._ended(
                self.stage.write_attribute(
                    query,
                    name,
                    ordinal,
                    self._payload(kind, list(words[1:])),
                    is_array=kind.array,
                    prim_mode=mode,
                    **self._chosen(options),
                )
            )

    def do_delete(self, prims: str, where: str) -> None:
        names, ordinal = at(where)
        with self._on(prims) as query:
            self._ended(self.stage.delete_attributes(query, [] if names == "*" else names.split(","), ordinal))

    def do_publish(self, ordinal: str, *words: str, **options: str) -> None:
        deletes, batches = [], []
        with contextlib.ExitStack() as made:
            for at, word in enumerate(words):
                if word not in "-+":
                    continue
                end = next((to for to in range(at + 1, len(words)) if words[to] in "-+"), len(words))
                prims, *part = words[at + 1 : end]
                query = made.enter_context(self._query(prims))
                if word == "-":
                    deletes.append((query, [] if part[0] == "*" else part[0].split(",")))
                else:
                    batches.append((query, self._writes(part, options)))
            self._ended(self.stage._publish(deletes, batches, int(ordinal)))

    # --- maps

    def do_map(self, name: str, prims: str, where: str, kind: str | None = None, **options: str) -> None:
        attribute, ordinal = at(where)
        with self._on(prims) as query:
            dtype = None if kind is None else Kind(kind)
            mapping = self.stage.map_attribute(
                query,
                attribute,
                ordinal,
                prim_mode=MODES[options.get("mode", "upsert")],
                dtype=None if dtype is None else DLDataType(dtype.code, dtype.bits, dtype.lanes),
                semantic=AttributeSemantic[options.get("role", "NONE")],
                element_sizes=numbers(options["sizes"]) if "sizes" in options else None,
                initial=options.get("initial", "current"),
                group_rows=int(options["group"]) if "group" in options else None,
            )
            self._ended(mapping.op)
        self.maps[name], self.lent[name], self.views[name] = mapping, [], []
        mapping.__dict__.update(arrays="sizes" in options, known=options.get("initial") != "discard")

    def do_fetch(self, name: str) -> list[str]:
        mapping = self.maps[name]
        group = mapping.fetch_next()
        if group is None:
            return ["no more"]
        self.lent[name].append(group)
        shown = self._rows(group, mapping.arrays) if mapping.known else self._paths(group)
        return [f"{name}.{len(self.lent[name]) - 1} {described(group, mapping.arrays)}", *shown]

    def _lent(self, word: str) -> tuple[str, ovstage.MapGroup]:
        name, _, number = word.partition(".")
        return name, self.lent[name][int(number)]

    def do_fill(self, word: str, *rows: str) -> None:
        name, group = self._lent(word)
        arrays = self.maps[name].arrays
        tensor = group.tensor(0)
        kind = Kind(described(group, arrays))
        to = tensor.data or 0
        size = kind.bits * kind.lanes // 8
        for at, row in enumerate(rows):
            values = [row]
            if arrays:
                tensor, values = group.tensor(at), row.strip("[]").split()
                to = tensor.data or 0
            if row != "-":
                content = b"".join(kind.pack(self.names, value) for value in values)
                ctypes.memmove(to, content, len(content))
            to += size

    def do_commit(self, word: str) -> None:
        name = word.partition(".")[0]
        if "." in word:
            self._ended(self.maps[name].unmap_group(self._lent(word)[1]))
        else:
            self._ended(self.maps[name].unmap())

    def do_abort(self, name: str) -> None:
        self.maps[name].abort()

    def do_view(self, word: str) -> None:
        name, group = self._lent(word)
        self.views[name].append(group.array(0).view(np.uint8))

    def do_scribble(self, name: str) -> None:
        for view in self.views[name]:
            view[:] = 0xFF

    # --- reads

    def do_read(self, *words: str) -> list[str]:
        groups, lines = self._groups(*words)
        for group in groups:
            group.release()
        return lines

    def do_hold(self, name: str, *words: str) -> list[str]:
        groups, lines = self._groups(*words)
        self.do_drop(name)
        self.held[name] = groups
        return lines

    def do_show(self, name: str) -> list[str]:
        return [line for group in self.held[name] for line in self._group(group)]

    def do_drop(self, name: str) -> None:
        for group in self.held.pop(name, []):
            group.release()

    def _groups(self, how: str, *words: str) -> tuple[list[ovstage.ReadGroup], list[str]]:
        *ends, prims, attributes = words
        asked = OrdinalRange.between(*map(int, ends)) if how == "range" else OrdinalRange.latest(int(ends[0]))
        with self._on(prims) as query:
            read = self.stage.read_attributes(query, attributes.split(","), asked)
            self._ended(read.op)
            with read:
                groups = list(read.groups())
                lines = [line for group in groups for line in self._group(group)]
                for token, why in self.stage._read_missing(read):
                    lines.append(f"nothing of {self.names.token_to_string(token)}: {why}")
        return groups, lines

    def do_since(self, prims: str, wheres: str) -> list[str]:
        tokens, since = [], []
        for where in wheres.split(","):
            name, _, ordinal = where.rpartition("@")
            tokens.append(self.names.intern_token(name))
            since.append(None if ordinal == "-" else int(ordinal))
        with contextlib.nullcontext() if prims == "*" else self._on(prims) as query:
            read, ends = self.stage._read_since(query, tokens, since, None)
            with read:
                self._ended(read.op)
                lines = []
                for group in read.groups():
                    with group:
                        lines += self._group(group)
        for token, (until, anew) in zip(tokens, ends, strict=True):
            lines.append(f"{self.names.token_to_string(token)} until {until}{' anew' if anew else ''}")
        return lines

    def do_level(self, level: str) -> None:
        assert self.stage.interface == level, "a script that names its level is played at that one"

    def do_layout(self, *words: str) -> list[str]:
        groups, lines = self._groups(*words)[0], []
        for group in groups:
            with group:
                dtype = group.tensor(0).dtype
                kind = f"{NAMES[dtype.code, dtype.bits]}{f'x{dtype.lanes}' if dtype.lanes > 1 else ''}"
                axes = [",".join(map(str, group.tensor(at).shape_tuple)) for at in range(group.tensor_count)]
                arrays = "[]" if group.is_array else ""
                lines.append(" ".join([self.names.token_to_string(group.attribute), kind + arrays, *axes]))
        return lines

    def _group(self, group: ovstage.ReadGroup) -> list[str]:
        name = self.names.token_to_string(group.attribute)
        head = f"{name}@{group.ordinal}"
        if group.is_delete:
            return [f"{head} deleted", *self._paths(group)]
        head += f" {described(group, group.is_array)}"
        if group.semantic:
            head += f" {group.semantic.name}"
        if group.type_name:
            head += f" ({group.type_name})"
        if group.has_data_index_map and not group.is_array:
            head += " indexed"
        ids = ""
        if group.semantic == AttributeSemantic.TOKEN_ID or group.type_name in ("string", "string[]"):
            ids = "texts"
        elif group.semantic == AttributeSemantic.RELATIONSHIP_PATH_ID or name.startswith("usd-"):
            ids = "paths"
        return [head, *self._rows(group, group.is_array, ids)]

    def _paths(self, group: Any) -> list[str]:
        listed = self.stage._path_strings(self.stage._list_paths(group.prim_list))
        return [listed[group.prim_index(k)] for k in range(group.prim_count)]

    def _rows(self, group: Any, arrays: bool, ids: str = "") -> list[str]:
        kind = Kind(described(group, arrays)) if group.tensor_count else Kind("int32")
        size = kind.bits * kind.lanes // 8
        lines = []
        for k, path in enumerate(self._paths(group)):
            row = group.data_row_index(k)
            tensor = group.tensor(row if arrays else 0)
            count = tensor.shape_tuple[0]
            content = ctypes.string_at(tensor.data, count * size) if count else b""
            values = [self._value(kind, ids, content[at : at + size]) for at in range(0, len(content), size)]
            lines.append(f"{path} [{' '.join(values)}]" if arrays else f"{path} {values[row]}")
        return lines

    def _value(self, kind: Kind, ids: str, content: bytes) -> str:
        numbers = struct.unpack(f"={kind.lanes}{kind.letter}", content)
        return ",".join(self._shown(kind, ids, number) for number in numbers)

    def _shown(self, kind: Kind, ids: str, number: Any) -> str:
        if ids:
            return (
                f'"{self.names.token_to_string(number)}"'
                if ids == "texts"
                else f"<{self.names.path_to_string(number)}>"
            )
        if kind.letter == "?":
            return "true" if number else "false"
        if kind.letter in "fd":
            return f"{number:.{9 if kind.letter == 'f' else 17}g}"
        return str(number) if ELEMENTS[NAMES[kind.code, kind.bits]][2] else f"{number:#x}"

    # --- queries

    def do_query(self, name: str, prims: str) -> None:
        self._name(name, self._query(prims))

    def _name(self, name: str, query: ovstage.Query) -> None:
        if name in self.queries:
            self.queries[name].release().wait()
        self.queries[name] = query

    def do_filter(self, name: str, match: str = "all", *words: str) -> list[str]:
        conditions = [
            ovstage.Predicate(
                attribute, OPERATORS[op], *([[value.strip('"') for value in values]] if op != "has" else [])
            )
            for attribute, op, *values in split(list(words), "&")
        ]
        chosen = {"all": Filter, "any": Filter.any_of, "none": Filter.none_of}[match]
        query = self.stage.query(chosen(conditions))
        self._ended(query.op)
        self._name(name, query)
        return self.do_list(f"${name}")

    def do_refresh(self, name: str) -> list[str]:
        self._ended(self.queries[name].refresh())
        return self.do_list(f"${name}")

    def do_list(self, prims: str) -> list[str]:
        with self._on(prims) as query, self.stage.read_attributes(query, ["usd-path"], OrdinalRange.latest(0)) as read:
            lines = []
            for group in read.groups():
                with group:
                    lines += self._paths(group)
            return lines

    def do_carried(self, prims: str) -> list[str]:
        with self._on(prims) as query:
            return sorted(self.stage._token_strings(self.stage.fetch_query_result(query).attributes))

    def do_attributes(self) -> list[str]:
        lines = []
        for a in self.stage.attributes():
            lanes = f"x{a.lanes}" if a.lanes > 1 else ""
            name = "bool8" if a.dtype == "bool" else a.dtype
            line = f"{a.name} {name}{lanes}{'[]' if a.is_array else ''}"
            line += f" {a.semantic.name}" if a.semantic else ""
            line += f" ({a.type_name})" if a.type_name else ""
            lines.append(f"{line} prims {a.prim_count} floor {a.write_floor}")
        return sorted(lines)

    # --- scenes

    def do_clone(self, source: str, where: str) -> None:
        targets, ordinal = at(where)
        self._ended(self.stage.clone_async(source, targets.split(","), ordinal))

    def do_compute(self, inputs: str, output: str) -> None:
        self._ended(self.stage.compute_hierarchy_async(int(inputs), int(output)))

    def do_relatives(self, relation: str, paths: str) -> list[str]:
        with self.names.create_path_list_from_strings(paths.split(",")) as asked:
            items = self.stage.get_hierarchy(asked, 1, HierarchyRelation[relation.upper()]).items
        return [
            f"{path}:{''.join(f' {relative}' for relative in item.paths)}{'' if item.ok else ' is no prim'}"
            for path, item in zip(paths.split(","), items, strict=True)
        ]

    def do_prototypes(self) -> list[str]:
        return sorted(instancing.get_prototype_roots(self.stage))

    def do_instances(self, prototype: str) -> list[str]:
        return sorted(instancing.get_instance_roots(self.stage, prototype))

    def do_prototype(self, instance: str) -> list[str]:
        return [instancing.get_prototype_root(self.stage, instance)]


def described(group: Any, arrays: bool) -> str:
    _, dtype = stored(group.tensor(0))
    lanes = f"x{dtype.lanes}" if dtype.lanes > 1 else ""
    return f"{NAMES[dtype.code, dtype.bits]}{lanes}{'[]' if arrays else ''}"


def at(word: str) -> tuple[str, int]:
    """Cuts NAME@ORDINAL."""
    name, _, ordinal = word.rpartition("@")
    return name, int(ordinal)


def numbers(word: str) -> list[int]:
    return [int(number) for number in word.split(",")]


def split(words: list[str], mark: str) -> list[list[str]]:
    """The parts of a list of words, with marks in between."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == mark:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def agree(want: list[str], got: list[str]) -> bool:
    if len(want) != len(got):
        return False
    return all(
        line == answer or (line.endswith("...") and answer.startswith(line.removesuffix("...")))
        for line, answer in zip(want, got, strict=True)
    )


def play(text: str, level: str | None = None) -> list[str]:
    """Where the answers of a script are not those below its commands."""
    faults = []
    lines = text.splitlines()
    named = re.search(r"^level (\S+)$", text, re.MULTILINE)
    config = StageConfig(interface=named[1] if named else level)
    with ovstage.Stage("script", config) as stage, ovstage.PathDictionary(stage) as names:
        player = Player(stage, names)
        for number, line in enumerate(lines):
            if not line or line[0] in "# ":
                continue
            want = []
            for answer in lines[number + 1 :]:
                if not answer.startswith("    "):
                    break
                want.append(answer.strip())
            got = player.do(line)
            if not agree(want, got):
                faults.append("\n  ".join([f"line {number + 1}: {line}", "expected:", *want, "got:", *got]))
        player.close()
    return faults


@pytest.mark.filterwarnings("error::ovstage.OvstageWarning")
@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
@pytest.mark.parametrize("level", ["0.2", "0.3"])
def test_script(script: Path, level: str) -> None:
    faults = play(script.read_text(), level)
    assert not faults, "\n".join(faults)


def test_a_wrong_answer_is_a_fault() -> None:
    assert play("floor\n    1\n") == ["line 1: floor\n  expected:\n  1\n  got:\n  0"]
    assert play("write /A p@0 int32 1\n")
    assert play("write /A p@1 int32 1\n    refused INVALID_ARGUMENT: ...\n")
    assert not play("write /A p@0 int32 1\n    refused WRITE_FLOOR_VIOLATION: attribute...\n")
