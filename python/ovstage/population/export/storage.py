"""The layer that an export writes: private and in memory until it is saved."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.complaints import NO_REASON, Refused, refusing
from ovstage.population.export.authoring import author
from ovstage.population.export.holdings import hold
from ovstage.population.export.rules import ExportDestinationMode, Options, Selection
from ovstage.population.origin import is_address

if TYPE_CHECKING:
    from ovstage.population.export.report import ExportReport
    from ovstage.stage import Stage

__all__ = ["Storage"]


class Storage:
    """The layer of one destination. A failed export leaves it as it was; nothing is stored before ``save``."""

    _numbers = count(1)

    def __init__(self, identifier: str, mode: ExportDestinationMode) -> None:
        self.identifier = identifier
        if mode == ExportDestinationMode.EMPTY:
            self._layer = Sdf.Layer.CreateAnonymous("export.usda")
            return
        if not is_address(identifier) and not os.path.isfile(identifier):
            raise OvstageError(ErrorCode.NOT_FOUND, f"there is no file {identifier!r} to go on with")
        # A private copy: the caller may have the file itself open.
        self._layer = _told(lambda: Sdf.Layer.OpenAsAnonymous(identifier), f"cannot open {identifier!r}")

    def write(self, stage: Stage, options: Options) -> ExportReport:
        """Add to the layer what the options ask for."""
        changed = options.selection == Selection.CHANGED_PROPERTIES_SINCE_ORDINAL
        held, selected = hold(stage, options.ordinal, options.since_ordinal if changed else None)
        scratch = Sdf.Layer.CreateAnonymous("export.usda")
        scratch.TransferContent(self._layer)
        report: ExportReport = _told(
            lambda: author(scratch, self._folder(), held, selected, options), "USD refused what was to be written"
        )
        self._layer = scratch
        return report

    def _folder(self) -> str:
        return "" if is_address(self.identifier) else os.path.dirname(os.path.realpath(self.identifier))

    def save(self) -> None:
        """Replace what is stored under the identifier. A file is written whole before it takes the place of the old."""
        what = f"cannot write {self.identifier!r}"
        if is_address(self.identifier):
            _told(lambda: self._layer.Export(self.identifier), what)
            return
        path = Path(os.path.realpath(self.identifier))
        if not path.parent.is_dir():
            raise OvstageError(ErrorCode.NOT_FOUND, f"{what}: there is no directory {str(path.parent)!r}")
        unique = f"{os.getpid()}-{threading.get_ident()}-{next(self._numbers)}"
        whole = path.with_name(f".{unique}{path.suffix}")  # short: the name of the file may be as long as names can be
        try:
            _told(lambda: self._layer.Export(str(whole)), what)
            os.replace(whole, path)
        except OSError as error:
            raise OvstageError(ErrorCode.OP_FAILED, f"{what}: {error.strerror}") from None
        finally:
            whole.unlink(missing_ok=True)


def _told(work: Callable[[], Any], what: str) -> Any:
    """The result of a piece of work by USD, whose complaint becomes an ``OvstageError``."""
    with refusing(what):
        done = work()
        if done is None or done is False:
            raise Refused(NO_REASON)
    return done
