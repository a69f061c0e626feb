"""Tokens, paths and lists as numbers."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import ovstage
from ovstage import OVX_API_ERROR, OvxError, PathDictionary

NUL = ["pre\0post", "\0lead", "trail\0"]


def refused(call, text):
    with pytest.raises(OvxError) as caught:
        call()
    assert text in str(caught.value)
    assert caught.value.code == OVX_API_ERROR
    assert text in caught.value.message


def test_tokens_go_both_ways(names):
    a, b = names.intern_token("mass"), names.intern_token("größe 大小 🙂")
    assert a != b
    assert names.intern_token("mass") == a
    assert names.token_to_string(a) == "mass"
    assert names.token_to_string(b) == "größe 大小 🙂"


def test_token_zero_is_the_empty_string(names):
    assert names.token_to_string(0) == ""


def test_paths_go_both_ways(names):
    path = names.intern_path("/World/A")
    assert names.intern_path("/World/A") == path
    assert names.path_to_string(path) == "/World/A"


def test_root_is_a_path(names):
    root = names.intern_path("/")
    assert names.path_to_string(root) == "/"
    assert names.intern_path(names.path_to_string(root)) == root
    refused(lambda: names.path_to_string(0xDEADBEEF), "Prim path handle was not found in this dictionary")


def test_property_paths_are_interned_whole(names):
    assert names.path_to_string(names.intern_path("/World/A.attr:x")) == "/World/A.attr:x"


def test_very_deep_paths(names):
    deep = "/" + "/".join(["p"] * 65536)
    assert names.path_to_string(names.intern_path(deep)) == deep


def test_many_at_once(names):
    words = [f"word{i}" for i in range(10_000)]
    tokens = names.intern_tokens(words)
    assert len(set(tokens)) == 10_000
    assert tokens[17] == names.intern_token("word17")
    paths = names.intern_paths([f"/World/P{i}" for i in range(10_000)])
    with names.create_path_list(paths) as path_list:
        assert names.get_paths(path_list) == paths
        assert names.get_path_strings(path_list) == [f"/World/P{i}" for i in range(10_000)]
    assert names.intern_tokens([]) == names.intern_paths([]) == []


def test_one_bad_entry_refuses_them_all_and_is_named(names):
    refused(lambda: names.intern_paths(["/A", "/B", ""]), "Path string must be non-empty")
    refused(lambda: names.intern_paths(["/A", "/B", ""]), "2")
    refused(lambda: names.intern_tokens(["a", "b\0"]), "Token string contains embedded NUL")


@pytest.mark.parametrize("string", NUL)
def test_embedded_nul(names, string):
    refused(lambda: names.intern_token(string), "Token string contains embedded NUL")
    refused(lambda: names.intern_path(string), "Path string contains embedded NUL")
    refused(lambda: names.create_path_list_from_strings(["/A", string]), "Path string contains embedded NUL")


def test_empty_strings(names):
    refused(lambda: names.intern_token(""), "Token string must be non-empty")
    refused(lambda: names.intern_path(""), "Path string must be non-empty")


@pytest.mark.parametrize("path", ["World/A", "A", "/World/", "//", "/World//A", "/World/./A", "/../A", "."])
def test_paths_that_are_none(names, path):
    with pytest.raises(OvxError) as caught:
        names.intern_path(path)
    assert path in str(caught.value)


@pytest.mark.parametrize("handle", [0, 0xDEADBEEF, 2**64 - 1])
def test_unknown_handles(names, handle):
    refused(lambda: names.path_to_string(handle), "Prim path handle was not found in this dictionary")
    refused(lambda: names.create_path_list([handle]), "Prim path handle was not found in this dictionary")
    if handle:
        refused(lambda: names.token_to_string(handle), "Token handle was not found in this dictionary")
        refused(lambda: names.path_list_count(handle), "Path list handle was not found")
        refused(lambda: names.get_paths(handle), "Path list handle was not found")
        refused(lambda: names.get_path_strings(handle), "Path list handle was not found")
        refused(lambda: names.add_path_list_reference(handle), "Path list handle was not found")
        refused(lambda: names.destroy_path_list(handle), "Path list handle was not found")


def test_empty_lists_are_legal_and_distinct(names):
    with names.create_path_list([]) as a, names.create_path_list_from_strings([]) as b:
        assert a != b
        for path_list in (a, b):
            assert names.path_list_count(path_list) == 0
            assert names.get_paths(path_list) == names.get_path_strings(path_list) == []


def test_equal_lists_have_handles_of_their_own(names):
    with names.create_path_list_from_strings(["/A", "/B"]) as a, names.create_path_list_from_strings(["/A", "/B"]) as b:
        assert a != b
        assert names.get_paths(a) == names.get_paths(b)


def test_duplicates_and_order_are_kept(names):
    with names.create_path_list_from_strings(["/B", "/A", "/B"]) as path_list:
        assert names.get_path_strings(path_list) == ["/B", "/A", "/B"]


@pytest.mark.parametrize("wrong", [5, None, b"/A", ["/A"]])
def test_strings_must_be_strings(names, wrong):
    for call in (names.intern_token, names.intern_path):
        with pytest.raises(TypeError, match="expected str"):
            call(wrong)
    for call in (names.create_path_list_from_strings, names.intern_paths, names.intern_tokens):
        with pytest.raises(TypeError, match="expected str"):
            call([wrong])


def test_single_string_is_no_list(names):
    for call in (names.create_path_list_from_strings, names.intern_paths, names.intern_tokens):
        with pytest.raises(TypeError, match=r"must be a list of strings, got the single string '/A'; write \['/A'\]"):
            call("/A")
    with pytest.raises(TypeError, match="primpaths must be ints"):
        names.create_path_list("/A")


def test_single_values_are_named(names):
    for name, call in {"token": names.token_to_string, "primpath": names.path_to_string}.items():
        with pytest.raises(TypeError, match=rf"^{name} must be an int, got 'x'"):
            call("x")
        with pytest.raises(ValueError, match=rf"^{name} must be non-negative, got -1$"):
            call(-1)


def test_lone_surrogates_are_named(stage, names):
    for name, call in {
        "string": lambda: names.intern_token("a\ud800"),
        "path": lambda: names.intern_path("/a\ud800"),
        r"strings\[1\]": lambda: names.intern_tokens(["a", "\ud800"]),
        r"paths\[1\]": lambda: names.create_path_list_from_strings(["/a", "/\ud800"]),
        r"attrs\[0\]": lambda: stage.read(1, ["\ud800"]),
        "attribute": lambda: stage.get_attribute_write_floor("\ud800"),
        "name": lambda: ovstage.Stage("\ud800"),
    }.items():
        with pytest.raises(ValueError, match=rf"^{name} must be text that UTF-8 can express, got .*ud800") as caught:
            call()
        assert type(caught.value) is ValueError


def test_wrapper_is_not_copied():
    with PathDictionary() as names:
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="a PathDictionary cannot be copied or pickled"):
                duplicate(names)
        assert names.intern_token("mass")


@pytest.mark.parametrize("wrong", [5, "stage", ovstage.Stage])
def test_wrapper_of_what_is_no_stage(wrong):
    with pytest.raises(TypeError, match="stage must be a Stage or None, got"):
        PathDictionary(wrong)


def test_wrapper_without_a_stage_has_one_of_its_own():
    names = PathDictionary()
    path_list = names.create_path_list_from_strings(["/A"])
    assert names.path_list_count(path_list) == 1
    names.destroy()
    names.destroy()
    refused(lambda: names.intern_token("a"), "has been destroyed")
    refused(lambda: names.path_list_count(path_list), "has been destroyed")
    refused(lambda: names.destroy_path_list(path_list), "has been destroyed")


def test_closing_a_wrapper_leaves_the_stage(stage):
    with PathDictionary(stage) as first:
        token = first.intern_token("mass")
    assert stage.alive
    refused(lambda: first.intern_token("mass"), "has been destroyed")
    with PathDictionary(stage) as second:
        assert second.token_to_string(token) == "mass"


def test_wrapper_says_when_its_stage_is_gone():
    stage = ovstage.Stage()
    names = PathDictionary(stage)
    stage.destroy()
    refused(lambda: names.intern_token("mass"), "has been destroyed")
    names.destroy()


def test_open_wrapper_keeps_its_stage():
    names = PathDictionary(ovstage.Stage())
    assert names.intern_token("mass")
    names.destroy()


def test_group_indices_address_the_groups_list(table, names):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    with table.group("mass", 1) as group:
        paths = names.get_path_strings(group.prim_list)
        assert [paths[group.prim_index(i)] for i in range(group.prim_count)] == table.paths


def test_dictionary_is_initialised_once(stage, names):
    """It would otherwise change the stage under the lists made through it."""
    with ovstage.Stage("other") as other, names.create_path_list_from_strings(["/A"]) as paths:
        for again in ((), (other,), (stage,)):
            with pytest.raises(RuntimeError, match="a PathDictionary cannot be initialised twice"):
                names.__init__(*again)
        assert names.get_path_strings(paths) == ["/A"]


def test_dictionary_may_be_initialised_after_a_refusal(stage):
    names = ovstage.PathDictionary.__new__(ovstage.PathDictionary)
    with pytest.raises(TypeError, match="stage must be a Stage or None, got 5"):
        names.__init__(5)
    names.__init__(stage)
    assert names.intern_token("mass")
