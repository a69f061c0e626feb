"""The native extension, loaded when something first needs it.

``import ovstage`` gets by without it, so that the package can be imported, inspected and documented where the library
cannot run. A failed load leaves nothing behind: the next use tries again.
"""

from __future__ import annotations

import os

try:
    import ovstage._native as native
except ImportError as error:
    raise RuntimeError(
        f"Failed to load the native library of ovstage, which belongs beside this package in "
        f"{os.path.dirname(__file__)}: {error}. Reinstall the wheel, or run build.sh in a source tree."
    ) from error

__all__ = ["native"]
