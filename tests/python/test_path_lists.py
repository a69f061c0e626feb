"""Who owns a path list, and what happens to the ones that are forgotten."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import warnings

import pytest

from ovstage import OvxError, PathDictionary, PathList, Stage

PATHS = ["/World/A", "/World/B"]


@pytest.fixture
def path_list(names):
    """A list that the test releases itself, or not."""
    made = names.create_path_list_from_strings(PATHS)
    yield made
    if not made.released:
        made.release()


def gone(names, handle):
    with pytest.raises(OvxError, match="Path list handle was not found"):
        names.path_list_count(handle)
    return True


class Caught(RuntimeError):
    pass


# --- an int like any other ---


def test_is_the_handle(names, path_list):
    assert isinstance(path_list, int)
    assert isinstance(path_list, PathList)
    assert path_list > 0
    assert names.path_list_count(path_list) == names.path_list_count(int(path_list)) == 2
    names.destroy_path_list(path_list)


def test_a_truth_value_is_no_place(path_list):
    with pytest.raises(TypeError, match=r"index must be an int, got True \(bool\)"):
        path_list[True]


def test_formats_like_the_int(path_list):
    handle = int(path_list)
    assert str(path_list) == str(handle)
    assert f"{path_list}" == f"{path_list:d}" == f"{handle}"
    assert "%s %d" % (path_list, path_list) == f"{handle} {handle}"  # noqa: UP031
    assert json.dumps([path_list]) == json.dumps([handle])
    assert path_list == handle
    assert hash(path_list) == hash(handle)
    assert type(path_list + 1) is int
    assert repr(path_list) == f"PathList({handle}, owned: 2 prims, /World/A, /World/B)"
    path_list.release()
    assert repr(path_list) == f"PathList({handle}, released)"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_plain_ints(path_list, duplicate):
    twin = duplicate(path_list)
    assert type(twin) is int
    assert twin == path_list
    assert copy.deepcopy({"list": [path_list]}) == {"list": [int(path_list)]}


def test_one_made_by_hand_owns_nothing():
    stray = PathList(5)
    assert stray.released
    with pytest.raises(OvxError):
        stray.release()


def test_list_of_another_stage_is_given_back_where_it_belongs(names, path_list, stage):
    with PathDictionary() as other:
        other.destroy_path_list(path_list)
    assert path_list.released
    assert int(path_list) not in stage._path_list_refs


# --- releasing ---


def test_with_block_releases(names):
    with names.create_path_list_from_strings(PATHS) as path_list:
        assert names.path_list_count(path_list) == 2
    assert path_list.released
    assert gone(names, int(path_list))


def test_with_block_releases_when_the_body_raises(names):
    error = Caught("body")
    with pytest.raises(Caught) as caught, names.create_path_list_from_strings(PATHS) as path_list:
        raise error
    assert caught.value is error
    assert path_list.released


def test_explicit_release(names, path_list):
    assert not path_list.released
    path_list.release()
    assert path_list.released
    assert gone(names, int(path_list))


def test_second_release_is_refused_by_either_route(names, path_list):
    names.destroy_path_list(path_list)
    with pytest.raises(OvxError, match="already been released"):
        names.destroy_path_list(path_list)
    with pytest.raises(OvxError, match="already been released"):
        path_list.release()


# --- references that the caller added ---


def test_added_reference_is_the_callers(names, path_list):
    handle = int(path_list)
    names.add_path_list_reference(path_list)
    names.destroy_path_list(path_list)
    assert path_list.released
    assert names.path_list_count(handle) == 2
    names.destroy_path_list(handle)
    assert gone(names, handle)


def test_plain_int_gives_back_an_added_reference_first(names, path_list):
    handle = int(path_list)
    names.add_path_list_reference(path_list)
    names.destroy_path_list(handle)
    assert not path_list.released
    assert names.path_list_count(handle) == 2
    path_list.release()
    assert gone(names, handle)


def test_object_gives_back_an_added_reference_last(names, path_list):
    names.add_path_list_reference(path_list)
    names.destroy_path_list(path_list)
    assert path_list.released
    names.destroy_path_list(path_list)
    assert gone(names, int(path_list))


def test_release_does_not_touch_added_references(names, path_list):
    names.add_path_list_reference(path_list)
    path_list.release()
    with pytest.raises(OvxError, match="already been released"):
        path_list.release()
    assert names.path_list_count(int(path_list)) == 2
    names.destroy_path_list(int(path_list))


def test_with_block_leaves_an_added_reference(names):
    with names.create_path_list_from_strings(PATHS) as path_list:
        names.add_path_list_reference(path_list)
    assert path_list.released
    assert names.path_list_count(int(path_list)) == 2
    names.destroy_path_list(int(path_list))
    assert gone(names, int(path_list))


def test_finaliser_leaves_an_added_reference(names):
    path_list = names.create_path_list_from_strings(PATHS)
    handle = int(path_list)
    names.add_path_list_reference(path_list)
    with pytest.warns(ResourceWarning, match="garbage-collected"):
        del path_list
    assert names.path_list_count(handle) == 2
    names.destroy_path_list(handle)


def test_release_through_a_copy_counts_for_the_owner(names):
    path_list = names.create_path_list_from_strings(PATHS)
    names.destroy_path_list(copy.deepcopy([path_list])[0])
    assert path_list.released
    with pytest.raises(OvxError, match="already been released"):
        names.destroy_path_list(path_list)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        del path_list
        gc.collect()


# --- forgotten lists ---


def test_dropped_list_is_released_and_reported(names):
    with pytest.warns(ResourceWarning, match=r"PathList \d+ was garbage-collected without release\(\)"):
        handle = int(names.create_path_list_from_strings(PATHS))
    assert gone(names, handle)


def test_dropped_list_is_released_where_warnings_are_errors(names, capsys, unraisable):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        handle = int(names.create_path_list_from_strings(PATHS))
        gc.collect()
    assert gone(names, handle)
    assert capsys.readouterr().err.startswith("ResourceWarning: PathList")
    assert not unraisable


def test_released_list_is_not_reported(names, recwarn):
    path_list = names.create_path_list_from_strings(PATHS)
    names.destroy_path_list(path_list)
    del path_list
    gc.collect()
    assert not recwarn.list


def test_loop_in_one_with_block(names):
    with names.create_path_list_from_strings(PATHS) as path_list:
        assert all(names.path_list_count(path_list) == 2 for _ in range(64))
    assert path_list.released


# --- wrappers and stages that go first ---


def test_list_outlives_a_closed_wrapper(stage):
    with PathDictionary(stage) as first:
        path_list = first.create_path_list_from_strings(PATHS)
    handle = int(path_list)
    assert not path_list.released
    with pytest.warns(ResourceWarning, match="garbage-collected"):
        del path_list
    with PathDictionary(stage) as second:
        assert gone(second, handle)


def test_list_outlives_its_private_stage_in_silence(recwarn):
    names = PathDictionary()
    path_list = names.create_path_list_from_strings(PATHS)
    names.destroy()
    with pytest.raises(OvxError, match="destroyed"):
        path_list.release()
    del names, path_list
    gc.collect()
    assert not recwarn.list


def test_list_outlives_a_destroyed_stage_in_silence(recwarn):
    stage = Stage()
    path_list = PathDictionary(stage).create_path_list_from_strings(PATHS)
    stage.destroy()
    del stage, path_list
    gc.collect()
    assert not recwarn.list


def test_list_keeps_neither_wrapper_nor_stage_alive(recwarn):
    import weakref

    stage = Stage()
    seen = weakref.ref(stage)
    path_list = PathDictionary(stage).create_path_list_from_strings(PATHS)
    del stage
    gc.collect()
    assert seen() is None
    del path_list
    gc.collect()
    assert not recwarn.list


def test_ownership_is_shared_by_wrappers_over_one_stage(stage, recwarn):
    with PathDictionary(stage) as first, PathDictionary(stage) as second:
        path_list = first.create_path_list_from_strings(PATHS)
        second.destroy_path_list(int(path_list))
        assert path_list.released
        del path_list
        gc.collect()
    assert not recwarn.list


def test_query_keeps_an_inline_list_and_does_not_release_it(stage, names):
    path_list = names.create_path_list_from_strings(PATHS)
    handle = int(path_list)
    query = stage.query_from_path_list(path_list)
    del path_list
    gc.collect()
    assert names.path_list_count(handle) == 2
    query.release().wait()
    with pytest.warns(ResourceWarning, match="garbage-collected"):
        del query
    assert gone(names, handle)


def test_bound_list_and_query_are_silent(stage, names, recwarn):
    with (
        names.create_path_list_from_strings(PATHS) as path_list,
        stage.query_from_path_list(path_list) as query,
    ):
        assert names.path_list_count(path_list) == 2
    del path_list, query
    gc.collect()
    assert not recwarn.list


# --- bookkeeping ---


def test_registry_returns_to_its_size(stage, names):
    before = len(stage._path_list_refs)
    for _ in range(50):
        names.destroy_path_list(names.create_path_list_from_strings(PATHS))
    for _ in range(10):
        with names.create_path_list_from_strings(PATHS) as path_list:
            names.add_path_list_reference(path_list)
            names.destroy_path_list(int(path_list))
    assert len(stage._path_list_refs) == before


def test_handles_are_not_used_again(names):
    seen = []
    for _ in range(100):
        with names.create_path_list_from_strings(PATHS) as path_list:
            seen.append(int(path_list))
    assert seen == sorted(set(seen))
    assert gone(names, seen[0])


def test_failed_release_leaves_ownership_as_it_was(stage, names):
    path_list = names.create_path_list_from_strings(PATHS)
    stage._list_release(path_list)  # behind the back of its owner
    for given in (path_list, int(path_list)):
        with pytest.raises(OvxError, match="Path list handle was not found"):
            names.destroy_path_list(given)
        assert not path_list.released


def test_list_that_python_has_no_record_of_goes_to_the_dictionary(stage, names):
    path_list = names.create_path_list_from_strings(PATHS)
    handle = int(path_list)
    path_list._references.owner.clear()
    del stage._path_list_refs[handle]
    names.destroy_path_list(handle)
    with pytest.raises(OvxError, match="Path list handle was not found"):
        names.destroy_path_list(handle)
