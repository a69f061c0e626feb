"""The time of a scene goes by two names: ``time_code``, and ``time`` by keyword, which newer clients use."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovstage
from ovstage import population
from ovstage.population import DEFAULT_TIME, Desc

pytest.importorskip("pxr")

SCENE = """#usda 1.0
(
    timeCodesPerSecond = 1
)
def Sphere "Ball"
{
    double radius = 7
    double radius.timeSamples = { 0: 1, 10: 11 }
}
"""

OPENED = [
    population.open_usd_from_string,
    population.open_usd_from_string_async,
    population.open_usd_from_string_with_desc,
    population.open_usd_from_string_with_desc_async,
    population.open_usd,
    population.open_usd_async,
    population.open_usd_with_desc,
    population.open_usd_with_desc_async,
]


@pytest.fixture(params=["0.2", "0.3"])
def stage(request: pytest.FixtureRequest) -> Any:
    with ovstage.Stage(config=ovstage.StageConfig(interface=request.param)) as stage:
        yield stage


@pytest.fixture(params=OPENED, ids=lambda call: call.__name__)
def opened(request: pytest.FixtureRequest, stage: ovstage.Stage, tmp_path: Path) -> Callable[..., float]:
    """Opens the scene, and reads the radius of the ball."""
    call = request.param
    file = tmp_path / "scene.usda"
    file.write_text(SCENE)

    def open_it(**time: Any) -> float:
        options = {"descs": [Desc(ovstage.PopulationDomain.ALL)]} if "with_desc" in call.__name__ else {}
        answer = call(stage, SCENE if "string" in call.__name__ else file, ordinal=1, **time, **options)
        if "async" in call.__name__:
            answer.wait()
        return radius(stage, 1)

    return open_it


def radius(stage: ovstage.Stage, ordinal: int) -> float:
    stage.advance_write_floor(ordinal).wait()
    return float(stage.read(["/Ball"], ["radius"])["radius"].values[0])


def test_both_names_are_taken(opened, stage):
    assert opened(time=4.0) == 5.0


def test_the_older_name(opened):
    assert opened(time_code=3) == 4.0


def test_the_default_time_has_a_name(opened):
    assert opened(time=DEFAULT_TIME) == 7.0
    assert math.isnan(DEFAULT_TIME)


def test_the_default_time_by_the_older_name(opened):
    assert opened(time_code=DEFAULT_TIME) == 7.0


def test_a_later_time(stage):
    population.open_usd_from_string(stage, SCENE, time=0.0)
    assert radius(stage, 1) == 1.0
    population.update_from_usd_time(stage, 2, time=10)
    assert radius(stage, 2) == 11.0
    population.update_from_usd_time_async(stage, ordinal=3, time=DEFAULT_TIME).wait()
    assert radius(stage, 3) == 7.0
    population.update_from_usd_time(stage, 4, 5.0)
    assert radius(stage, 4) == 6.0


def test_a_time_is_given_once_and_by_keyword(stage):
    with pytest.raises(TypeError, match=r"time is given twice, as time_code=1.0 and as time=2.0: give one of them"):
        population.open_usd_from_string(stage, SCENE, time_code=1.0, time=2.0)
    with pytest.raises(TypeError, match="time is given twice"):
        population.open_usd_from_string(stage, SCENE, time_code=float("nan"), time=2.0)
    with pytest.raises(TypeError, match=r"time is given twice, as time_code=nan and as time=2\.0"):
        population.open_usd_from_string(stage, SCENE, time_code=DEFAULT_TIME, time=2.0)
    with pytest.raises(TypeError, match="positional"):
        population.update_from_usd_time(stage, 1, 2.0, 3.0)
    assert stage.query().result().total_prim_count == 0


@pytest.mark.parametrize("wrong", ["soon", "5", b"5", [1.0], object(), True, np.True_])
def test_a_time_is_a_number(stage, wrong):
    with pytest.raises(TypeError, match=r"time must be a number of seconds, or nan for USD's default time, got"):
        population.open_usd_from_string(stage, SCENE, time=wrong)


@pytest.mark.parametrize("wrong", [math.inf, -math.inf])
def test_a_time_is_finite(stage, wrong):
    with pytest.raises(ValueError, match="time must be finite, or nan for USD's default time, got"):
        population.open_usd_from_string(stage, SCENE, time=wrong)


def test_what_has_to_be_said_is_missed(stage):
    with pytest.raises(TypeError, match=r"time_code, or time by keyword, must be a number of seconds, .* got None"):
        population.open_usd_from_string_with_desc(stage, SCENE, 1, descs=[Desc(ovstage.PopulationDomain.ALL)])
    with pytest.raises(TypeError, match=r"time_code, or time by keyword, must be a number of seconds, .* got None"):
        population.update_from_usd_time(stage, 1)
    with pytest.raises(TypeError, match="descs must be a Desc or a list of Descs, got None"):
        population.open_usd_from_string_with_desc(stage, SCENE, 1, time=1.0)
