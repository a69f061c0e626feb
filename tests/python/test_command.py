"""``python -m ovstage``: what it prints, and its exit status."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest
from children import run_child

import ovstage
from ovstage.command import main, self_test


def run(*words, **options):
    return run_child([sys.executable, "-m", "ovstage", *words], **options)


def test_help_without_a_command():
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert "python -m ovstage" in done.stdout
    for command in ("info", "self-test", "bench", "usd"):
        assert command in done.stdout


@pytest.mark.parametrize("words", [["info"], ["self-test", "--quick"]])
def test_a_pipe_whose_reader_has_ended_is_no_fault(words):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(*words, stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_a_full_disk_is_a_sentence():
    with open("/dev/full", "w") as full:
        done = run("info", stdout=full)
    assert (done.returncode, done.stderr) == (1, "cannot write to the output: No space left on device\n")


def test_unknown_command():
    done = run("inform")
    assert done.returncode == 2
    assert "inform" in done.stderr and "info" in done.stderr


def test_info():
    done = run("info")
    assert (done.returncode, done.stderr) == (0, "")
    said = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in done.stdout.splitlines())
    assert said["ovstage-go"] == f"{ovstage.__version__}, interface level 0.2.1"
    assert said["library"].startswith(said["package"] + "/libovstage.so")
    assert said["Python"].endswith(sys.executable)
    assert "driver" in said["CUDA"]
    assert re.match(r"\d+\.\d+\S* \(arrays", said["numpy"])


def test_info_where_the_library_does_not_load(monkeypatch, capsys):
    def broken():
        raise RuntimeError("Failed to load: no such file")

    monkeypatch.setattr(ovstage, "library_version", broken)
    assert main(["info"]) == 1
    said = capsys.readouterr().out
    assert "Failed to load: no such file" in said
    assert "interface level unknown" in said


def test_self_test():
    done = run("self-test", "--quick")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) == len(self_test.CHECKS) + 2
    for name, line in zip(self_test.CHECKS, lines[1:], strict=False):
        assert re.match(rf"  (ok|missing) +{re.escape(name)} +\S", line), line
    assert re.match(r"\d+ work, \d+ not installed, 0 failed, in ", lines[-1])


def test_self_test_keeps_its_checks_without_assertions(monkeypatch):
    program = "from ovstage.command.self_test import Wrong, _expect\n_expect(0, 'why')"
    done = run_child([sys.executable, "-OO", "-c", program])
    assert "Wrong: why" in done.stderr


def test_self_test_without_numpy(monkeypatch, capsys):
    monkeypatch.setattr(self_test, "find_spec", lambda name: None)
    assert main(["self-test", "--quick"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"missing +arrays +numpy is not installed", said)
    assert re.search(r"ok +names ", said)


def test_what_fails_is_shown_and_the_others_run(monkeypatch, capsys):
    def wrong(seconds):
        raise self_test.Wrong("seen what must not be")

    def broken(seconds):
        return {}[1]

    def missing(seconds):
        raise self_test.Missing("pip install it")

    checks = {"first": wrong, "second": broken, "third": missing, "last": lambda seconds: "fine"}
    monkeypatch.setattr(self_test, "CHECKS", checks)
    assert main(["self-test"]) == 1
    said = capsys.readouterr().out
    assert re.search(r"FAILED +first +seen what must not be\n", said)
    assert re.search(r"FAILED +second +Traceback(.*\n)+.*KeyError: 1", said)
    assert re.search(r"missing +third +pip install it\n", said)
    assert re.search(r"ok +last +fine\n1 work, 1 not installed, 2 failed, in ", said)


def test_bench():
    done = run("bench", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()[1:]
    assert len(lines) == 7
    for line in lines:
        assert re.search(r"  \d[\d.]* (x|s|ms|µs|ns)\b", line), line


def test_bench_without_numpy(monkeypatch, capsys):
    monkeypatch.setattr("ovstage.command.bench.find_spec", lambda name: None)
    assert main(["bench"]) == 1
    assert "pip install 'numpy>=1.26'" in capsys.readouterr().out


@pytest.mark.parametrize("program", [["-m", "ovstage", "info"], ["-I", "-m", "ovstage", "info"]])
def test_works_anywhere(tmp_path, program):
    """Not the folder it runs in, but where the package is installed counts."""
    (tmp_path / "command").mkdir()
    done = run_child([sys.executable, *program], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
