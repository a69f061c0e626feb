"""Opening layers, and saying why one cannot be opened where USD would say it worse or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable

from pxr import Ar, Sdf  # type: ignore # usd-core has no stubs

from ovstage.population.complaints import Refused
from ovstage.population.origin import Origin, is_address

__all__ = ["open_layer", "read_again"]


def open_layer(origin: Origin) -> Sdf.Layer:
    return _layer_of_name(origin.content) if origin.is_file else _layer_of_text(origin.content)


def _layer_of_name(name: str) -> Sdf.Layer:
    """A layer by a name that USD understands: a file, one in a package (``robot.usdz[arm.usda]``), an address, or what
    the resolver finds on its search path; each may be followed by arguments of the format."""
    path, arguments = Sdf.Layer.SplitIdentifier(name)
    file, inside = Ar.SplitPackageRelativePathOuter(path) if not os.path.exists(path) else (path, "")
    if not is_address(file):
        if os.path.exists(file):
            _require_file(file, inside or file)
            file = os.path.abspath(file)
        elif not Ar.GetResolver().Resolve(file):
            raise Refused("there is no such file")
        path = Ar.JoinPackageRelativePath(file, inside) if inside else file
    layer = Sdf.Layer.FindOrOpen(path, arguments)
    if layer and not layer.dirty:
        layer.Reload()  # before it is composed: it may have been opened when its file was another
    if not layer and is_address(file) and not Ar.GetResolver().Resolve(path):
        raise Refused("USD finds nothing there; without a resolver for such addresses it opens files only")
    if not layer and inside:
        raise Refused(f"USD finds no {inside!r} that it can read in the package")
    if not layer:
        raise Refused("USD finds no format that it knows in it; it may be damaged")
    return layer


def _require_file(path: str, layer: str) -> None:
    """Say of a file what USD would say worse, or not at all; ``layer`` is the name of what is read in it."""
    if os.path.isdir(path):
        raise Refused("it is a directory")
    if not os.access(path, os.R_OK):
        raise Refused("it may not be read by this user")
    if not Sdf.FileFormat.FindByExtension(Ar.SplitPackageRelativePathInner(layer)[1] or layer):
        raise Refused("its extension says no USD format: USD reads .usd, .usda, .usdc and .usdz")
    if not os.path.getsize(path):
        raise Refused("it is empty")


def read_again(layers: Iterable[Sdf.Layer]) -> None:
    """Read the files of layers again, which may have changed since. A layer with edits that are not saved keeps
    them."""
    Sdf.Layer.ReloadLayers([layer for layer in layers if not (layer.dirty or layer.anonymous)])


def _layer_of_text(usda: str) -> Sdf.Layer:
    if not usda.startswith("#"):
        raise Refused("it does not begin with '#usda 1.0'")
    layer = Sdf.Layer.CreateAnonymous("text.usda")
    if not layer.ImportFromString(usda):
        raise Refused("it is no USDA")
    return layer
