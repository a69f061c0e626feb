"""The page: what the reader saw, as one HTML file that opens without a server."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import numpy as np
from loop import Outcome
from physics import BODIES, RATE, Ants
from scene import Scene, Shape

PAGE = Path(__file__).resolve().parent / "page"
STEP = 65535  # positions and quaternions take 16 bits a number


def save(outcome: Outcome, scene: Scene, ants: Ants, library: Path, file: Path) -> bool:
    """Write the page, with three.js in it; false where three.js is not there."""
    if not library.exists():
        return False
    html = (PAGE / "page.html").read_text(encoding="utf-8")
    parts = {
        "STYLE": (PAGE / "page.css").read_text(encoding="utf-8"),
        "SCRIPT": (PAGE / "page.js").read_text(encoding="utf-8"),
        "THREE": data(library.read_text(encoding="utf-8")),
        "FILM": data(film(outcome, scene.shapes(ants.paths), ants)),
    }
    for name, text in parts.items():
        before, after = html.split(f"@{name}@")
        html = before + text + after
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(html, encoding="utf-8")
    return True


def data(value: object) -> str:
    """As JSON that may stand in a script element."""
    return json.dumps(value, separators=(",", ":")).replace("</", "<\\/")


def film(outcome: Outcome, shapes: list[Shape], ants: Ants) -> dict[str, object]:
    """All that the page knows."""
    seen = outcome.findings
    poses = np.stack([taken.poses for taken in seen.film])
    low, high = poses[..., :3].min((0, 1)), poses[..., :3].max((0, 1))
    return {
        "rate": RATE,
        "bodies": len(ants.paths),
        "each": BODIES,
        "ticks": [taken.tick for taken in seen.film],
        "last": outcome.ticks,
        "low": low.tolist(),
        "high": high.tolist(),
        "frames": packed(poses, low, high),
        "shapes": [drawn(shape) for shape in shapes],
        "verdicts": {tick: "".join(map(str, verdict)) for tick, verdict in seen.verdicts.items()},
        "frozen": {"tick": outcome.frozen.tick, "frame": packed(outcome.frozen.poses[None], low, high)},
        "facts": [
            f"{outcome.ticks / outcome.seconds:,.0f} ticks per second",
            f"{outcome.copied[1]:,} bytes copied by the stage",
            f"torn {seen.torn} of {len(seen.film)}",
        ],
    }


def packed(poses: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Positions over their range, quaternions over [-1, 1]: half the bytes, and less than a millimetre lost."""
    numbers = np.concatenate([(poses[..., :3] - low) / (high - low), poses[..., 3:] / 2 + 0.5], axis=-1)
    words = np.round(numbers * STEP).astype("<u2")
    return base64.b64encode(zlib.compress(words.tobytes(), 9)).decode()


def drawn(shape: Shape) -> dict[str, object]:
    """A shape. Row by row a matrix for row vectors is in the order in which three.js has its own, column by column."""
    return {
        "body": shape.body,
        "kind": shape.kind,
        "radius": round(shape.radius, 5),
        "height": round(shape.height, 5),
        "axis": shape.axis,
        "local": [round(float(number), 6) for number in shape.local.ravel()],
    }
