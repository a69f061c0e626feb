"""The native extension, loaded when something first needs it.

``import ovstage`` gets by without it, so that the package can be imported, inspected and documented where the library
cannot run. A failed load leaves nothing behind: the next use tries again.
"""

from __future__ import annotations

import os
import resource

NEEDED = 1 << 30
"""Bytes of address space, not of memory, that the engine's runtime reserves; without it the process would end."""


def _require_address_space() -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    if limit - used < NEEDED:
        raise RuntimeError(
            f"Failed to load the native library of ovstage: it reserves {NEEDED >> 20} MiB of address space, and of "
            f"the {limit >> 20} MiB that this process may have {used >> 20} are in use. Raise the limit (ulimit -v)."
        )


_require_address_space()
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
