"""The log: one callback for the process, on a thread of its own, and silence without it."""

from __future__ import annotations

import threading
import time
import weakref

import pytest

import ovstage
from ovstage import ErrorCode, LogSeverity, OvstageError, Stage

FIVE_SECONDS = 5_000_000_000


@pytest.fixture
def records(stage):
    """What arrived; a test installs ``records.append`` or a callback of its own."""
    seen = []
    yield seen
    ovstage.set_log_callback(None)


def collect(records, *options):
    ovstage.set_log_callback(lambda *record: records.append(record), *options)


def say_something():
    """Two VERBOSE messages."""
    Stage("speaker").destroy()


def refuse_something(stage):
    """An INFO message."""
    assert not stage.release_query(10**9).ok


def spoken(records):
    assert ovstage.flush_log(FIVE_SECONDS) is True
    return [message for _, _, message in records]


def test_callback_lifecycle(stage, records):
    collect(records, LogSeverity.VERBOSE)
    say_something()
    assert ovstage.flush_log(FIVE_SECONDS) is True
    ovstage.set_log_callback(None)
    ovstage.set_log_callback(None)
    assert ovstage.flush_log() is True


def test_callback_of_before_the_first_stage_is_in_force_from_it_on(fresh_python):
    program = """
import ovstage
seen = []
ovstage.set_log_callback(print, ovstage.LogSeverity.VERBOSE)
ovstage.set_log_callback(lambda *record: seen.append(record[2]), ovstage.LogSeverity.NONE, "ovstage=verbose")
try:
    ovstage.set_log_callback(print, channel_filter="loud")
except ovstage.OvstageError as error:  # judged at once, and nothing has changed
    assert error.code == ovstage.ErrorCode.INVALID_ARGUMENT, error
    assert error.message.startswith('channel_filter: "loud" is not a rule: expected channel=level'), error
else:
    raise SystemExit("installed")
assert ovstage.flush_log() is True
assert "libovstage" not in open("/proc/self/maps").read()
ovstage.Stage("first").destroy()
assert seen == ['ovstage: stage "first" created', 'ovstage: stage "first" destroyed'], seen
ovstage.Stage("second").destroy()  # the callback went with the last stage
assert len(seen) == 2
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_callback_of_before_the_first_stage_can_be_taken_back(fresh_python):
    program = """
import ovstage, weakref
def callback(*record):
    raise SystemExit("called")
gone = weakref.ref(callback)
ovstage.set_log_callback(callback, ovstage.LogSeverity.VERBOSE)
del callback
assert gone() is not None
ovstage.set_log_callback(None)
assert gone() is None
ovstage.Stage("first").destroy()
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_callback_after_the_last_stage_is_refused(fresh_python):
    program = """
import ovstage
ovstage.Stage().destroy()
try:
    ovstage.set_log_callback(print)
except ovstage.OvstageError as error:
    assert error.code == ovstage.ErrorCode.OP_FAILED, error
else:
    raise SystemExit("installed")
"""
    done = fresh_python(program)
    assert done.returncode == 0, done.stderr


def test_records(records):
    before = time.time()
    collect(records, LogSeverity.VERBOSE)
    say_something()
    assert spoken(records) == ['ovstage: stage "speaker" created', 'ovstage: stage "speaker" destroyed']
    for severity, timestamp, _ in records:
        assert severity is LogSeverity.VERBOSE
        assert before - 1 <= timestamp <= time.time() + 1


@pytest.mark.parametrize(
    ("threshold", "rules", "heard"),
    [
        (LogSeverity.VERBOSE, None, {"VERBOSE", "INFO"}),
        (LogSeverity.INFO, None, {"INFO"}),
        (None, None, set()),  # WARNING
        (LogSeverity.ERROR, None, set()),
        (LogSeverity.NONE, "", set()),
        (LogSeverity.NONE, "ovstage=verbose", {"VERBOSE", "INFO"}),
        (LogSeverity.NONE, "ov=info", {"INFO"}),
        (LogSeverity.NONE, "ov = verbose , ovstage = INFO", {"INFO"}),
        (LogSeverity.VERBOSE, "ovstage=none", set()),
        (LogSeverity.VERBOSE, "other=none", {"VERBOSE", "INFO"}),
        (LogSeverity.VERBOSE, "ovstage.deeper=none", {"VERBOSE", "INFO"}),
    ],
)
def test_threshold_and_rules(stage, records, threshold, rules, heard):
    collect(records, threshold, rules)
    say_something()
    refuse_something(stage)
    spoken(records)
    assert {severity.name for severity, _, _ in records} == heard


@pytest.mark.parametrize("rules", ["ovstage", "=info", "ovstage=", "ovstage=loud", "a=info,,b=info", "ovstage=info;"])
def test_malformed_rules_are_quoted_and_change_nothing(stage, records, rules):
    collect(records, LogSeverity.VERBOSE)
    with pytest.raises(OvstageError, match=r"channel_filter: .* is not a rule: expected channel=level") as caught:
        ovstage.set_log_callback(print, channel_filter=rules)
    assert caught.value.code == ErrorCode.INVALID_ARGUMENT
    say_something()
    assert len(spoken(records)) >= 2


def test_wrong_arguments(stage):
    with pytest.raises(TypeError, match="callback must be callable or None, got 5"):
        ovstage.set_log_callback(5)
    with pytest.raises(ValueError, match="severity must be a valid LogSeverity"):
        ovstage.set_log_callback(print, 2)
    with pytest.raises(TypeError, match="channel_filter"):
        ovstage.set_log_callback(print, channel_filter=5)
    with pytest.raises(ValueError, match="timeout"):
        ovstage.flush_log(-1)
    assert ovstage.flush_log(0) is True  # nothing was installed


def test_one_thread_calls_back_in_order(records):
    threads = set()

    def note(severity, timestamp, message):
        threads.add(threading.get_ident())
        records.append(message)

    ovstage.set_log_callback(note, LogSeverity.VERBOSE)
    for number in range(50):
        Stage(f"number {number}").destroy()
    ovstage.flush_log()
    assert records == [f'ovstage: stage "number {n}" {what}' for n in range(50) for what in ("created", "destroyed")]
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_what_a_callback_raises_is_printed_and_ends_nothing(records, unraisable):
    def fail(*record):
        records.append(record)
        raise ValueError("in the callback")

    ovstage.set_log_callback(fail, LogSeverity.VERBOSE)
    say_something()
    assert len(spoken(records)) == 2
    assert [str(report.exc_value) for report in unraisable] == ["in the callback"] * 2


def test_replaced_callback_hears_nothing_more(records):
    first, second = [], []
    collect(first, LogSeverity.VERBOSE)
    say_something()
    ovstage.flush_log()
    collect(second, LogSeverity.VERBOSE)
    say_something()
    ovstage.flush_log()
    assert len(first) == len(second) == 2
    ovstage.set_log_callback(None)
    say_something()
    assert ovstage.flush_log(0) is True
    assert len(second) == 2


def test_clearing_delivers_what_is_under_way(records):
    collect(records, LogSeverity.VERBOSE)
    for _ in range(50):
        say_something()
    ovstage.set_log_callback(None)
    assert len(records) == 100


def test_callback_that_calls_the_library(stage, records):
    """It may use stages, replace itself and end itself; only waiting for itself is refused."""

    def curious(severity, timestamp, message):
        records.append(stage.counters()["live_queries"])
        try:
            ovstage.flush_log()
        except OvstageError as error:
            records.append(error.message)
        ovstage.set_log_callback(None)

    ovstage.set_log_callback(curious, LogSeverity.VERBOSE)
    say_something()
    ovstage.flush_log()
    assert records == [0, "ovstage_flush_log was called by the log callback, for which it waits"]


def test_slow_callback_delays_nobody_and_what_is_dropped_is_counted(records):
    entered, leave = threading.Event(), threading.Event()

    def slow(severity, timestamp, message):
        entered.set()
        leave.wait()
        records.append(message)

    ovstage.set_log_callback(slow, LogSeverity.VERBOSE)
    say_something()
    entered.wait()
    for _ in range(10_000):
        say_something()
    assert not records and ovstage.flush_log(1000) is False
    leave.set()
    ovstage.flush_log()
    ovstage.flush_log()  # the word about the lost ones came after all others
    assert 16_000 < len(records) < 17_000
    assert records[-1].endswith(f"{20_002 - len(records) + 1} log messages were dropped, the callback is too slow")


def test_callbacks_from_many_threads(records):
    """One thread clears while others install: nobody's callback dies under him."""
    done = threading.Event()

    def install(number):
        while not done.is_set():
            collect(records, LogSeverity.VERBOSE)
            say_something()

    others = [threading.Thread(target=install, args=(number,)) for number in range(3)]
    for other in others:
        other.start()
    for _ in range(200):
        ovstage.set_log_callback(None)
        say_something()
    done.set()
    for other in others:
        other.join()
    ovstage.set_log_callback(None)
    before = len(records)
    say_something()
    assert len(records) == before


# --- waits that others would draw out ---


def endless(stage):
    """A callback that says something new whenever it hears something: the log never runs empty."""

    def answer(severity, timestamp, message):
        stage.release_query(10**9)

    return answer


def test_waits_for_a_log_that_never_runs_empty_end(stage, records):
    for _ in range(3):
        ovstage.set_log_callback(endless(stage), LogSeverity.VERBOSE)
        refuse_something(stage)
        assert ovstage.flush_log() is True
        ovstage.set_log_callback(None)
        assert ovstage.flush_log(0) is True


def test_waits_end_while_other_threads_log_without_a_pause(stage, records):
    done = threading.Event()

    def talk():
        while not done.is_set():
            stage.release_query(10**9)

    others = [threading.Thread(target=talk) for _ in range(3)]
    for other in others:
        other.start()
    try:
        for _ in range(5):
            collect(records, LogSeverity.VERBOSE)
            assert ovstage.flush_log() is True
            ovstage.set_log_callback(None)
            heard = len(records)
            refuse_something(stage)
            assert len(records) == heard
    finally:
        done.set()
        for other in others:
            other.join()


@pytest.mark.parametrize("end", ["stage.destroy()", "del stage, answer", "pass", "raise SystemExit"])
def test_last_stage_and_the_interpreter_end_a_log_that_never_runs_empty(fresh_python, end):
    program = f"""
import ovstage
stage = ovstage.Stage()
def answer(severity, timestamp, message, stage=stage):
    try:
        stage.release_query(10**9)
    except ovstage.OvstageError:  # it has gone
        pass
ovstage.set_log_callback(answer, ovstage.LogSeverity.VERBOSE)
stage.release_query(10**9)
{end}
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout) == (0, "")


BLOCKED = """
import os, signal, threading, ovstage
entered = threading.Event()
def blocked(*record):
    entered.set()
    threading.Event().wait()
ovstage.set_log_callback(blocked, ovstage.LogSeverity.VERBOSE)
stage = ovstage.Stage("first")
stage.release_query(10**9)
assert entered.wait(60)
def interrupt():
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
"""


def test_ctrl_c_ends_the_destroy_of_the_last_stage_behind_a_callback_that_blocks(fresh_python):
    program = f"""{BLOCKED}
interrupt()
try:
    stage.destroy()
except KeyboardInterrupt:
    assert not stage.alive
    stage.destroy()
    ovstage.Stage("second").destroy()  # nobody listens any more
    assert ovstage.flush_log() is True
    print("done", flush=True)
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_ctrl_c_ends_a_with_block_behind_a_callback_that_blocks(fresh_python):
    program = f"""{BLOCKED}
try:
    with stage:
        interrupt()
except KeyboardInterrupt:
    assert not stage.alive
    print("done", flush=True)
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


LEFT = "ovstage: 2 log messages were not delivered, the callback is too slow for the exit\n"


@pytest.mark.parametrize("end", ["pass", "raise SystemExit"])
def test_exit_behind_a_callback_that_blocks_says_after_two_seconds_what_was_left(fresh_python, end):
    done = fresh_python(f"{BLOCKED}\nprint('done', flush=True)\n{end}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", LEFT)


def test_ctrl_c_ends_the_wait_of_the_exit(fresh_python):
    program = f"""{BLOCKED}
signal.signal(signal.SIGALRM, signal.default_int_handler)  # Ctrl-C, without a thread for which the exit would wait
signal.setitimer(signal.ITIMER_REAL, 0.5)
"""
    done = fresh_python(program)
    assert done.returncode == 0
    assert LEFT in done.stderr
    assert "_end_log" in done.stderr and "KeyboardInterrupt" in done.stderr


# --- callbacks come and go ---


def test_replaced_callbacks_are_let_go_of_at_once(stage, records):
    gone = []
    for _ in range(1000):

        def callback(*record):
            records.append(record)

        gone.append(weakref.ref(callback))
        ovstage.set_log_callback(callback, LogSeverity.VERBOSE)
        refuse_something(stage)
    del callback
    assert sum(ref() is not None for ref in gone) <= 2  # the one in force, and one that a message may be at
    ovstage.set_log_callback(None)
    assert not any(ref() for ref in gone)


def test_replaced_callback_lives_until_its_call_returns(stage, records):
    entered, leave = threading.Event(), threading.Event()

    def slow(*record):
        entered.set()
        leave.wait()

    gone = weakref.ref(slow)
    ovstage.set_log_callback(slow, LogSeverity.VERBOSE)
    refuse_something(stage)
    entered.wait()
    del slow
    collect(records, LogSeverity.VERBOSE)
    assert gone() is not None
    leave.set()
    ovstage.flush_log()
    assert gone() is None


def test_callback_goes_with_the_last_stage(fresh_python):
    program = """
import weakref, ovstage
def callback(*record):
    pass
gone = weakref.ref(callback)
first, second = ovstage.Stage(), ovstage.Stage()
ovstage.set_log_callback(callback)
del callback
first.destroy()
assert gone() is not None
second.destroy()
assert gone() is None
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- a callback that uses what ends ---


def test_callback_uses_the_stage_that_is_destroyed(fresh_python):
    """From the callback and from other threads it is fetched from while it ends: refused, never waited for."""
    program = """
import threading, numpy as np, ovstage
from ovstage import DLDataType, LogSeverity, OvstageError, OvxError, PathDictionary, Stage
for _ in range(40):
    stage = Stage()
    names = PathDictionary(stage)
    query = stage.query_from_path_list(names.create_path_list_from_strings([f"/P{i}" for i in range(2000)]))
    def touch(stage=stage, query=query):
        try:
            mapping = stage.map_attribute(query, "cb", ordinal=5, dtype=DLDataType(2, 64, 4))
            mapping.fetch_next()
            mapping.abort()
            stage.write_attribute(query, "a", 0, np.zeros(1), is_array=False)  # refused: a message
        except OvstageError:
            return False
        return True
    def work(touch=touch):
        while touch():
            pass
    ovstage.set_log_callback(lambda *record, touch=touch: touch(), LogSeverity.VERBOSE)
    others = [threading.Thread(target=work) for _ in range(2)]
    for other in others:
        other.start()
    while not stage.counters()["live_maps"]:
        pass
    stage.destroy()
    for other in others:
        other.join()
print("done")
"""
    done = fresh_python(f"import warnings\nwarnings.simplefilter('ignore')\n{program}")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
