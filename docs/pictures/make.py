"""Makes the pictures of the README beside this file: ``./build.sh pictures``.

Takes the page and the file for rerun that the demo has written, and Chromium, which draws both without a window. In
software it draws some frames a second, so it takes minutes.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
MADE = HERE.parents[1] / "build" / "demo"
FLAGS = [
    "--no-sandbox",
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # rerun's page asks others, and does without
]
WIDTH, HEIGHT = 720, 360
FRAMES, STEP, COLOURS = 60, 6, 80  # of the GIF; ticks from one to the next
PATIENCE = 20  # seconds until rerun's page has drawn all


def main() -> None:
    chromium = shutil.which("chromium") or sys.exit(
        "pictures: chromium is not installed (Debian: apt-get install chromium)"
    )
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        moving(browser, MADE / "ants.html", HERE / "ants.gif")
        viewer(browser, MADE / "ants.rrd", HERE / "viewer.png")
        browser.close()


def moving(browser: Browser, page_file: Path, out: Path) -> None:
    """The page of the demo as a GIF."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(page_file.as_uri())
    page.wait_for_function("window.drawn > 1")
    page.keyboard.press("Space")
    pictures = []
    for tick in range(1, FRAMES * STEP + 1, STEP):
        page.locator("#tick").fill(str(tick))
        page.wait_for_function(f"window.drawn > {page.evaluate('drawn') + 1}")
        pictures.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    palette = pictures[len(pictures) // 2].quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    first.save(out, save_all=True, append_images=others, duration=1000 * STEP // 60, loop=0, optimize=True)
    page.close()


def viewer(browser: Browser, recording: Path, out: Path) -> None:
    """The last moment of a recording in rerun's viewer."""
    with served(recording) as address:
        page = browser.new_page(viewport={"width": 1100, "height": 640})
        page.goto(address)
        time.sleep(PATIENCE)  # it draws into a canvas, and says nowhere that it has
        page.screenshot(path=out)
        page.close()
    Image.open(out).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(out, optimize=True)


@contextmanager
def served(recording: Path) -> Iterator[str]:
    """rerun's own server, on the loopback; the address of its page."""
    data, pages = free_port(), free_port()
    rerun = Path(sys.executable).with_name("rerun")
    words = ["--serve-web", "--bind", "127.0.0.1", "--port", str(data), "--web-viewer-port", str(pages), str(recording)]
    server = subprocess.Popen(
        [rerun, *words],
        env={**os.environ, "CI": "1"},  # without which it writes down what it is used for
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", pages), 1).close()
                break
            except OSError:
                if time.monotonic() > until or server.poll() is not None:
                    sys.exit("pictures: rerun --serve-web did not begin to serve")
                time.sleep(0.1)
        yield f"http://127.0.0.1:{pages}/?url=rerun%2Bhttp://127.0.0.1:{data}/proxy&renderer=webgl"
    finally:
        os.killpg(server.pid, 9)
        server.wait()


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


if __name__ == "__main__":
    main()
