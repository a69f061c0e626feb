"""The native extension, loaded when something first needs it.

``import ovstage`` gets by without it, so that the package can be imported, inspected and documented where it cannot
run. A failed load leaves nothing behind: the next use tries again. The library with the engine is another file, which
the extension opens with the first stage: until then the process may fork.
"""

from __future__ import annotations

import os

try:
    import ovstage._native as native
except ImportError as error:
    # A file that is missing or broken has a name. An interpreter that is refused has not, and nothing to mend.
    advice = (
        " Reinstall it: in a checkout by `./build.sh build` or `pip install .`, elsewhere from a wheel file that was "
        "built in one. It is on no package index: what `pip install ovstage` brings is another distribution."
        if error.name
        else ""
    )
    raise RuntimeError(
        f"Failed to load the native library of ovstage, which belongs beside this package in "
        f"{os.path.dirname(__file__)}: {error}.{advice}"
    ) from error

__all__ = ["native"]
