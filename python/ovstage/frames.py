"""Frames of pandas that say why a column is missing. Imported when there is such a frame: it needs pandas."""

from __future__ import annotations

from typing import Any

import pandas

from ovstage.columns import MissingColumn, missing_text

__all__ = ["Frame"]


class Frame(pandas.DataFrame):  # type: ignore[misc]  # pandas is not there when types are checked
    """A frame as any other. What is made of it is a plain one, with the same ``attrs``."""

    @property
    def _constructor(self) -> Any:
        return pandas.DataFrame

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except KeyError:
            missing = self.attrs.get("missing", {})
            if not isinstance(key, str) or key not in missing:
                raise
            raise MissingColumn(missing_text(key, missing, self.columns)) from None
