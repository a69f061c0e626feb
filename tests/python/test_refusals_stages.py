"""What stages, operations and the log refuse, word for word."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import Row, Scene, check, destroyed, names_of

import ovstage
from ovstage import Operation

# --- what some rows need first ---


def another_model() -> ovstage.Stage:
    models = ovstage.HierarchyComputationModel
    with ovstage.Stage("cpu", ovstage.StageConfig(models.CPU_INCREMENTAL)):
        return ovstage.Stage("gpu", ovstage.StageConfig(models.GPU_GLOBAL))


def wait_twice(s: Scene) -> ovstage.Operation:
    op = s.put(np.float32([3, 4]))
    op.wait()
    return op


def outlived_operation() -> ovstage.Operation:
    stage = ovstage.Stage("gone")
    op = stage.advance_write_floor(1)
    stage.destroy()
    return op


# --- the rows ---

STAGES_AND_OPERATIONS: list[Row] = [
    (
        "TypeError: attribute and attributes are both given: name one attribute, or list several",
        lambda s: s.stage.wait_floor(1, "a", attributes=["b"]),
    ),
    (
        "ValueError: attributes must not be empty: list some, or leave it out for the global write floor",
        lambda s: s.stage.wait_floor(1, attributes=[]),
    ),
    ("ValueError: name must not contain NUL, got 'a\\x00b'", lambda s: ovstage.Stage("a\0b")),
    ("TypeError: expected str for name, got 5 (int)", lambda s: ovstage.Stage(5)),
    (
        "TypeError: name must be a str or None, got StageConfig(…); write Stage(config=StageConfig(...))",
        lambda s: ovstage.Stage(ovstage.StageConfig()),
    ),
    ("TypeError: config must be a StageConfig or None, got 5", lambda s: ovstage.Stage("a", 5)),
    ("RuntimeError: a Stage cannot be initialised twice", lambda s: s.stage.__init__("again")),
    (
        "ValueError: runtime_default_hierarchy_computation_model must name a model, got INVALID; leave it out"
        " for the default",
        lambda s: ovstage.Stage("a", ovstage.StageConfig(0)),
    ),
    (
        "ValueError: runtime_default_hierarchy_computation_model must be a valid HierarchyComputationModel "
        "(INVALID=0, CPU_INCREMENTAL=1, GPU_INCREMENTAL=2, GPU_GLOBAL=3, RUNTIME_DEFAULT=4), got 99",
        lambda s: ovstage.Stage("a", ovstage.StageConfig(99)),
    ),
    (
        "ValueError: history_ordinals must be non-negative, got -1",
        lambda s: ovstage.Stage("a", ovstage.StageConfig(history_ordinals=-1)),
    ),
    (
        "ValueError: interface must be '0.2' or '0.3', got '0.4'",
        lambda s: ovstage.Stage("a", ovstage.StageConfig(interface="0.4")),
    ),
    (
        "TypeError: interface must be '0.2' or '0.3', got 0.3",
        lambda s: ovstage.Stage("a", ovstage.StageConfig(interface=0.3)),
    ),
    (
        "OvstageError: INVALID_HANDLE: interface asked before Stage.__init__",
        lambda s: ovstage.Stage.__new__(ovstage.Stage).interface,
    ),
    (
        "OvstageError: INVALID_ARGUMENT: config: the default hierarchy computation model is CPU_INCREMENTAL "
        "and stays so while a stage or an initialisation is alive; GPU_GLOBAL was asked for",
        lambda s: another_model(),
    ),
    (
        "OvstageError: INVALID_HANDLE: counters called before Stage.__init__",
        lambda s: ovstage.Stage.__new__(ovstage.Stage).counters(),
    ),
    ("OvstageError: INVALID_HANDLE: counters called after Stage was destroyed", lambda s: destroyed().counters()),
    (
        "OvstageError: INVALID_HANDLE: read called after Stage was destroyed",
        lambda s: destroyed().read(1, ["mass"]),
    ),
    ("OvstageError: INVALID_HANDLE: query called after Stage was destroyed", lambda s: destroyed().query()),
    ("TypeError: op_id must be an int, got '1' (str)", lambda s: s.stage.wait_op("1")),
    ("OvstageError: INVALID_HANDLE: Operation 6 has already been waited and released", lambda s: wait_twice(s)),
    (
        "TypeError: timeout must be an int, a number of nanoseconds, got 'soon' (str)",
        lambda s: s.put(np.zeros(3, "f4")).wait("soon"),
    ),
    ("ValueError: this Operation was never initialised", lambda s: Operation.__new__(Operation).wait()),
    (
        "OvstageError: INVALID_HANDLE: Operation.wait called after its Stage was destroyed",
        lambda s: outlived_operation(),
    ),
    (
        "OvstageError: OP_FAILED: target_paths[0]: prim /World/Prim1 already exists; nothing was cloned, delete it "
        "first or choose another target",
        lambda s: s.stage.clone("/World/Prim0", ["/World/Prim1"], 6),
    ),
    (
        "OvstageError: OP_FAILED: source_path: there is no prim at or below /World/None as of ordinal 6",
        lambda s: s.stage.clone("/World/None", ["/World/New"], 6),
    ),
    (
        'OvstageError: WRITE_FLOOR_VIOLATION: attribute "mass" of the source /World/Prim0: ordinal 5 is sealed, the '
        "write floor is 5; clone at an ordinal above it",
        lambda s: s.stage.clone("/World/Prim0", ["/World/New"], 5),
    ),
    ("TypeError: code must be an int, got 'x' (str)", lambda s: ovstage.OvstageError("x")),
    ("TypeError: callback must be callable or None, got 5", lambda s: ovstage.set_log_callback(5)),
    (
        "ValueError: severity must be a valid LogSeverity (VERBOSE=-2, INFO=-1, WARNING=0, ERROR=1, NONE=3), got 9",
        lambda s: ovstage.set_log_callback(print, severity=9),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: channel_filter: "a=loud" is not a rule: expected channel=level, with'
        " level one of verbose, debug, info, warn, warning, error, fatal, none",
        lambda s: ovstage.set_log_callback(print, channel_filter="a=loud"),
    ),
    (
        "TypeError: expected str for channel_filter, got 5 (int)",
        lambda s: ovstage.set_log_callback(print, channel_filter=5),
    ),
    (
        "ValueError: timeout must be non-negative, got -1; pass TIMEOUT_INFINITE to wait without a limit",
        lambda s: ovstage.flush_log(-1),
    ),
]

MORE: list[Row] = [
    ("RuntimeError: an Operation cannot be initialised twice", lambda s: wait_twice(s).__init__(s.stage, 0, 1)),
    ("OvstageError: INVALID_HANDLE: Operation has no valid op id: op_id is 0", lambda s: Operation(s.stage, 0, 0)),
    ("TypeError: _unmap() takes 4 arguments (1 given)", lambda s: s.stage._unmap(1)),
    ("AttributeError: module 'ovstage' has no attribute 'stages'", lambda s: ovstage.stages),
]

ROWS = [*STAGES_AND_OPERATIONS, *MORE]


@pytest.mark.parametrize(("text", "call"), ROWS, ids=names_of(ROWS))
def test_refusal(scene, text, call):
    check(text, call, scene)
