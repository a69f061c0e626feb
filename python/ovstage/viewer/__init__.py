"""A stage in rerun's viewer: ``ovstage.view(stage, save="run.rrd")``. It takes the package ``rerun-sdk``.

The files in the order in which to read them; a file uses what stands above it:

- poses: matrices as translations, quaternions and scales
- scene: which prims are drawn, and as what
- follow: the thread that follows a stage, and what it hands to rerun
"""

from ovstage.viewer.follow import View, view

__all__ = ["View", "view"]
