"""Write the columns of a scene into a stage, as few operations as the sets of prims allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovstage.dictionary import PathDictionary
from ovstage.values import WriteDesc

if TYPE_CHECKING:
    import numpy as np

    from ovstage.population.columns import Column, Scene
    from ovstage.population.usd import Progress
    from ovstage.stage import Stage

__all__ = ["publish"]


def publish(stage: Stage, scene: Scene, ordinal: int, progress: Progress | None) -> int:
    """Write every column at ``ordinal`` and return the bytes written.

    All payloads exist before the first write. Columns over the same prims travel in one batch, which is applied whole
    or not at all. A batch that is refused ends the population; what earlier ones wrote stays, but the ordinal is left
    unsealed, so no reader sees a scene that is only half there.
    """
    batches = _batches(scene)
    with PathDictionary(stage) as dictionary:
        tokens = _interned(dictionary, scene)
        paths = dictionary.intern_paths(scene.paths)
        payloads = {column: column.payload(tokens) for column in scene.columns}
        for done, (rows, columns) in enumerate(batches.items()):
            if progress is not None:
                progress(done, len(batches), "writing columns")
            with dictionary.create_path_list([paths[row] for row in rows]) as prims:
                _write(stage, prims, columns, payloads, ordinal)
    if progress is not None:
        progress(len(batches), len(batches), "writing columns")
    return sum(payload.nbytes for payload in payloads.values())


def _write(stage: Stage, prims: int, columns: list[Column], payloads: dict[Column, np.ndarray], ordinal: int) -> None:
    writes = [
        WriteDesc(attribute=column.name, tensors=payloads[column], is_array=False, semantic=column.semantic)
        for column in columns
    ]
    with stage.query_from_path_list(prims) as query:
        stage.write_attributes(query, writes, ordinal).wait()


def _interned(dictionary: PathDictionary, scene: Scene) -> dict[str, int]:
    """The token id of every text in the scene. The empty text has no token: authored but empty is id 0."""
    texts = dict.fromkeys(value for column in scene.columns if column.is_text for value in column.values)
    texts.pop("", None)
    ids = dict(zip(texts, dictionary.intern_tokens(list(texts)), strict=True))
    ids[""] = 0
    return ids


def _batches(scene: Scene) -> dict[tuple[int, ...], list[Column]]:
    """Columns by the prims they cover, the widest first: later, narrower ones find their rows laid out."""
    batches: dict[tuple[int, ...], list[Column]] = {}
    for column in sorted(scene.columns, key=lambda column: -len(column.rows)):
        batches.setdefault(tuple(column.rows), []).append(column)
    return batches
