"""The paths that the bodies took, seen from above, as a PNG."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")  # chosen before pyplot is imported: no display is needed

import matplotlib.pyplot as plt
from consumer import Findings
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from scene import Scene

TICKS_PER_SECOND = 60  # the pace at which the loop would be played
PAPER, INK, FAINT, REST = "#0d1018", "#dfe3ee", "#232838", "#8b93a7"
TIME = LinearSegmentedColormap.from_list("time", ["#22d3ee", "#6d7cf5", "#c457d6", "#fb6f84", "#ffc24b"])
FEW = 20  # bodies that can afford thick lines
GAP = 8  # times the usual step from snapshot to snapshot: over a longer one, no path is claimed to be known
SHADES = 120  # steps of colour along a path; one line each, since thousands of single segments draw slowly
STYLE = {
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.size": 11,
}


def draw(scene: Scene, findings: Findings, path: Path) -> None:
    """Draw every recorded path, coloured by time."""
    ground = [0, 2 if scene.up_axis == "Y" else 1]
    # Bodies first, moments second, then the two coordinates that a viewer from above sees, in metres.
    tracks = np.swapaxes(np.array(findings.positions)[:, :, ground], 0, 1) * scene.meters_per_unit
    rest = scene.bodies.rest[findings.shown, 3][:, ground] * scene.meters_per_unit
    seconds = np.array(findings.ticks) / TICKS_PER_SECOND

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(10.4, 10.2), layout="constrained")
        lines = trace(axes, tracks, seconds)
        axes.scatter(*rest.T, s=9, marker="+", color=REST, linewidths=0.6, label="where a body rested", zorder=1)
        axes.scatter(*tracks[:, -1].T, s=3, color="white", linewidths=0, label="where it was seen last", zorder=3)
        frame(axes, tracks)
        axes.set_xlabel(f"{'xyz'[ground[0]]} (m)")
        axes.set_ylabel(f"{'xyz'[ground[1]]} (m)")
        axes.set_title(headline(scene, findings), loc="left", fontsize=15, fontweight="bold", pad=34)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, frameon=False, markerscale=2.5)
        bar = figure.colorbar(lines, ax=axes, shrink=0.6, aspect=34, pad=0.02)
        bar.set_label(f"time (s, {TICKS_PER_SECOND} ticks a second)")
        bar.outline.set_visible(False)
        figure.get_layout_engine().set(w_pad=0.2, h_pad=0.2)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160)
        plt.close(figure)


def headline(scene: Scene, findings: Findings) -> str:
    moved, shown = len(scene.bodies), len(findings.shown)
    bodies = f"{moved:,} bodies" if shown == moved else f"{shown:,} of {moved:,} bodies"
    return f"{Path(scene.report.path).name}: the paths of {bodies} in {findings.snapshots:,} snapshots"


def trace(axes: Axes, tracks: np.ndarray, seconds: np.ndarray) -> LineCollection:
    """Each path as a chain of short lines, so that colour can follow time. What the reader missed stays a gap."""
    chain = list(links(seconds))
    pieces = [track[part] for track in tracks for part in chain]
    lines = LineCollection(pieces, cmap=TIME, linewidths=0.6 if len(tracks) > FEW else 1.6, alpha=0.8, zorder=2)
    lines.set_array(np.tile([seconds[part].mean() for part in chain], len(tracks)))
    lines.set_clim(0.0, max(seconds[-1], 1 / TICKS_PER_SECOND))
    return axes.add_collection(lines)


def links(seconds: np.ndarray) -> Iterator[slice]:
    """Moments to join by one line of one colour: neighbours in time, each link starting where the last one ended."""
    steps = np.diff(seconds)
    gaps = np.flatnonzero(steps > GAP * np.median(steps)) + 1 if len(steps) else []
    length = max(1, len(steps) // SHADES)
    for first, end in pairwise([0, *gaps, len(seconds)]):
        for start in range(first, end - 1, length):
            yield slice(start, min(start + length + 1, end))


def frame(axes: Axes, tracks: np.ndarray) -> None:
    """A square view of everything, with a margin, at one scale for both axes."""
    low, high = tracks.min(axis=(0, 1)), tracks.max(axis=(0, 1))
    middle, reach = (low + high) / 2, max((high - low).max() / 2, 0.5) * 1.04
    axes.set_xlim(middle[0] - reach, middle[0] + reach)
    axes.set_ylim(middle[1] - reach, middle[1] + reach)
    axes.set_aspect("equal")
    axes.grid(color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
