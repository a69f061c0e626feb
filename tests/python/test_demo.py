"""The demo, run as a user runs it, and its page, opened as a user opens it."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from children import run_child

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "python" / "ants"
THREE = ROOT / "build" / "demo" / "three.js"
NEEDS = {
    "pyarrow": "pyarrow",
    "xxhash": "xxhash",
    "rerun": "rerun-sdk",
    "pxr": "usd-core",
    "warp": "warp-lang",
    "rich": "rich",
    "newton": "newton",
    "newton_usd_schemas": "newton-usd-schemas",
}

missing = [package for module, package in NEEDS.items() if find_spec(module) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def demo(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_child([sys.executable, str(DEMO / "main.py"), *map(str, arguments)])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Two ants for a second."""
    page = tmp_path_factory.mktemp("demo") / "made" / "ants.html"
    done = demo("--ants", 2, "--seconds", 1, "--out", page)
    assert done.returncode == 0, done.stdout + done.stderr
    return SimpleNamespace(out=done.stdout, page=page)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """One ant, with everything that the demo does when it is asked to."""
    made = tmp_path_factory.mktemp("asked")
    done = demo("--ants", 1, "--seconds", 1, "--verbose", "--rerun", made / "ants.rrd", "--out", made / "ants.html")
    assert done.returncode == 0, done.stdout + done.stderr
    return SimpleNamespace(out=done.stdout, rerun=made / "ants.rrd")


def test_physics_runs_untorn_and_late_verdicts_lie_where_they_belong(run: SimpleNamespace) -> None:
    took = re.search(r"a reader took (\d+) snapshots, holds them all, torn 0, changed since 0", run.out)
    assert took and int(took[1]) > 0, run.out
    verdicts = re.search(r"gave 60 verdicts, (\d+) of them out of order; (\d+) of (\d+) lie at the tick", run.out)
    assert verdicts and int(verdicts[1]) > 20 and verdicts[2] == verdicts[3], run.out
    assert "a lock and copies" in run.out
    assert "had the same bits at every tick" in run.out


def test_a_run_that_is_killed_goes_on_bit_for_bit(run: SimpleNamespace) -> None:
    said = re.search(
        r"killed at tick (\d+); its recording goes up to tick (\d+). (\d+) ticks from there: (.*)\.", run.out
    )
    assert said, run.out
    killed, recorded, ticks = (int(said[at]) for at in (1, 2, 3))
    assert 50 <= killed < 60 and 0 < recorded <= killed + 1 and recorded + ticks == 60
    assert said[4] == "bit for bit as in the run that was not killed"


def test_what_is_not_represented_is_one_line_until_it_is_asked_for(
    run: SimpleNamespace, asked: SimpleNamespace
) -> None:
    assert len([line for line in run.out.splitlines() if "not represented" in line]) == 1
    lines = [line for line in asked.out.splitlines() if "not represented" in line]
    assert len(lines) > 1
    assert any("NewtonSceneAPI" in line for line in lines)


def test_it_writes_what_the_viewer_shows_if_asked(asked: SimpleNamespace) -> None:
    from rerun.chunk import RrdReader

    found: dict[str, int] = {}
    for chunk in RrdReader(asked.rerun).stream():
        batch = chunk.to_record_batch()
        if "InstancePoses3D:translations" in batch.schema.names:
            places = batch.column("InstancePoses3D:translations")[batch.num_rows - 1].as_py()
            found[chunk.entity_path] = len(places)
            assert all(0 < z < 1 for _, _, z in places), "at the end the ant does not stand on the ground"
    assert found == {"/world/Capsule": 12, "/world/Sphere": 1}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--ants", "65"], "expected a number of ants from 1 to 64, got '65'"),
        (["--seconds", "0"], "expected a number of seconds from 1 to 60, got '0'"),
        (["--out", "ants.png"], "expected the name of an .html file, got 'ants.png'"),
        (["--out", "/dev/null/ants.html"], "cannot write '/dev/null/ants.html': /dev/null is not a folder"),
    ],
)
def test_a_bad_argument_is_one_clear_line(arguments: list[str], reason: str) -> None:
    done = demo(*arguments)
    assert done.returncode == 2
    assert reason in done.stderr.splitlines()[-1]


# --- the checks of the demo can fail ------------------------------------------------------------------------------


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Modules of the demo."""
    monkeypatch.syspath_prepend(DEMO)
    import film
    import handover
    import reader

    return SimpleNamespace(film=film, handover=handover, reader=reader)


def test_the_reader_sees_a_torn_snapshot_and_one_that_changes(parts: SimpleNamespace) -> None:
    way = parts.handover.Locked(["/A", "/B"])
    poses, velocities = np.ones((2, 7), np.float32), np.ones((2, 6), np.float32)
    sums = {1: parts.reader.checksum(poses, velocities), 2: parts.reader.checksum(2 * poses, velocities)}

    way.publish(1, poses, velocities)
    reader = parts.reader.Reader(way, sums, 1)
    assert reader.run().torn == 0
    reader.look_again()
    assert reader.findings.changed == 0
    reader.findings.film[0].poses[1] = 5
    reader.look_again()
    assert reader.findings.changed == 1

    way.publish(2, np.concatenate([poses[:1], 2 * poses[1:]]), velocities)  # one row is of the tick before
    assert parts.reader.Reader(way, sums, 2).run().torn == 1


def test_without_three_there_is_no_page(parts: SimpleNamespace, tmp_path: Path) -> None:
    assert parts.film.save(None, None, None, tmp_path / "three.js", tmp_path / "ants.html") is False
    assert not (tmp_path / "ants.html").exists()


# --- the page -----------------------------------------------------------------------------------------------------

needs_three = pytest.mark.skipif(not THREE.exists(), reason="not built: build/demo/three.js, by ./build.sh demo")


def film_of(page: Path) -> dict[str, Any]:
    """What the page shows, with its frames as positions."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script id="film" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    film: dict[str, Any] = json.loads(found[1])
    words = np.frombuffer(zlib.decompress(base64.b64decode(film["frames"])), "<u2").reshape(-1, film["bodies"], 7)
    low, high = np.array(film["low"]), np.array(film["high"])
    film["positions"] = low + words[..., :3] / 65535 * (high - low)
    return film


@needs_three
def test_the_page_has_everything_in_it_and_shows_ants_that_fall(run: SimpleNamespace) -> None:
    text = run.page.read_text(encoding="utf-8")
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"(src|href)=\"(?!data:)", markup)
    assert "@" not in markup.replace("@media", "")
    film = film_of(run.page)
    assert film["ticks"] == sorted(set(film["ticks"])) and film["ticks"][-1] == film["last"] == 60
    assert film["bodies"] == 18 and len(film["shapes"]) == 26
    height = film["positions"][:, ::9, 2]
    assert (height[0] > height[-1] + 0.1).all(), "the ants do not fall"
    assert (height[-1] > 0).all(), "the ants are below the ground"


@needs_three
@pytest.mark.skipif(not shutil.which("chromium"), reason="not installed: chromium, the page's browser")
@pytest.mark.skipif(not find_spec("playwright"), reason="not installed: playwright, which drives the browser")
def test_the_page_opens_from_a_file_and_moves(run: SimpleNamespace) -> None:
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport={"width": 480, "height": 320})
        wrong: list[str] = []
        schemes: set[str] = set()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: schemes.add(request.url.split(":")[0]))
        page.goto(run.page.as_uri())
        page.wait_for_function("window.drawn > 1")

        page.keyboard.press("Space")
        assert page.get_attribute("#play", "aria-label") == "play"
        pictures = []
        for tick in (1, 60):
            page.locator("#tick").fill(str(tick))
            drawn = page.evaluate("drawn")
            page.wait_for_function(f"window.drawn > {drawn + 1}")
            assert page.inner_text("#time").endswith(f"tick {tick}")
            pictures.append(page.screenshot())
        assert pictures[0] != pictures[1]
        assert "not a bit of it has changed" in page.inner_text("#frozen")
        assert page.is_hidden("#trouble")
        browser.close()
    assert not wrong
    assert schemes == {"file", "blob"}, "the page asks for something that is not in it"
