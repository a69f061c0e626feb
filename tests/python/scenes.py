"""Text of USD scenes; everything that a stage holds, for comparing; one value, read or written."""

from __future__ import annotations

import numpy as np

from ovstage import Filter, FilterOp, OrdinalRange, PathDictionary, Predicate, Stage

MATRIX_NOISE = 1e-12


def usda(*prims: str, header: str = "") -> str:
    """A layer of these prims."""
    return f"#usda 1.0\n({header}\n)\n" + "\n".join(prims)


def contents(stage: Stage, ordinal: int) -> dict[tuple[str, str], tuple[object, ...]]:
    """Every value of every prim, by path and attribute: element type, role, and the bytes."""
    found: dict[tuple[str, str], tuple[object, ...]] = {}
    with PathDictionary(stage) as names, stage.query() as query:
        query.wait()
        tokens = stage.fetch_query_result(query).attributes
        if not tokens:
            return found
        with stage.read_attributes(query, tokens, OrdinalRange.latest(ordinal)) as read:
            for group in read.groups():
                with group:
                    listed = names.get_path_strings(group.prim_list)
                    attribute = names.token_to_string(group.attribute)
                    if attribute in ("usd-path", "usd-parent", "usd-children"):
                        continue
                    rows = group.data_rows().tolist()
                    for prim, row in zip(group.prim_indices().tolist(), rows, strict=True):
                        value = group.array(row) if group.is_array else group.array(0, shaped=True)[row]
                        found[listed[prim], attribute] = (
                            group.is_array,
                            str(group.tensor(0).dtype),
                            group.semantic,
                            np.asarray(value).tobytes(),
                        )
    return found


def count(stage: Stage, op: FilterOp, path: str) -> int:
    """How many prims there are with such a path, sealed or not."""
    with stage.query(Filter([Predicate("usd-path", op, [path])])) as query:
        query.wait()
        return stage.fetch_query_result(query).total_prim_count


def read(stage: Stage, path: str, attribute: str) -> np.ndarray | None:
    """The sealed value of an attribute, if there is one."""
    with (
        PathDictionary(stage) as names,
        names.create_path_list_from_strings([path]) as paths,
        stage.query_from_path_list(paths) as query,
    ):
        found = stage.read(query, [attribute])
        return found[attribute].row(0) if attribute in found else None


def write(stage: Stage, path: str, attribute: str, values: object, ordinal: int, **options: object) -> None:
    """Write an attribute of one prim."""
    with (
        PathDictionary(stage) as names,
        names.create_path_list_from_strings([path]) as paths,
        stage.query_from_path_list(paths) as query,
    ):
        stage.write_attribute(query, attribute, ordinal, values, is_array=False, **options).wait()
