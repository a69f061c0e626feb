"""Whether a producer knows ``max_version`` is told by what it answers; what else it raises is not taken for that."""

from __future__ import annotations

import functools

import numpy as np
import pytest

BOTH_LEVELS = True

VALUES = np.float32([1, 2])
PRIMS = ["/World/A", "/World/B"]


class Old:
    """Knows no keyword."""

    def __dlpack__(self, stream=None):
        return VALUES.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


class Bare(Old):
    def __dlpack__(self):
        return VALUES.__dlpack__()


class Delegating(Old):
    def __dlpack__(self, **options):
        return Old().__dlpack__(**options)


class Strict(Old):
    """Says in its own words that it knows none."""

    def __dlpack__(self, **options):
        if options:
            raise TypeError("__dlpack__() takes no keyword arguments")
        return VALUES.__dlpack__()


@pytest.mark.parametrize("producer", [Old, Bare, Delegating, Strict])
def test_one_that_does_not_know_it_is_asked_without(stage, producer):
    stage.write(PRIMS, "v", 1, producer()).wait()


class Own(Old):
    """Fails for a reason of its own, and would answer the second question."""

    def __init__(self, text):
        self.text, self.asked = text, 0

    def __dlpack__(self, stream=None, max_version=None):
        self.asked += 1
        if max_version is None:
            return VALUES.__dlpack__()
        raise TypeError(self.text)


@pytest.mark.parametrize(
    "text", ["not on this device", "max_version must be a pair of ints", "argument of another type", ""]
)
def test_its_own_type_error_is_raised_and_it_is_asked_once(stage, text):
    producer = Own(text)
    with pytest.raises(TypeError) as caught:
        stage.write(PRIMS, "v", 1, producer)
    assert str(caught.value) == text
    assert producer.asked == 1
    assert stage.attributes() == []


def test_an_error_inside_of_one_that_knows_it_is_raised(stage):
    class Broken(Old):
        def __dlpack__(self, stream=None, max_version=None):
            return len(5)

    with pytest.raises(TypeError, match="has no len"):
        stage.write(PRIMS, "v", 1, Broken())


def test_a_call_that_fails_before_it_begins(stage):
    class Partial(Old):
        __dlpack__ = functools.partialmethod(lambda self: VALUES.__dlpack__())

    stage.write(PRIMS, "v", 1, Partial()).wait()
