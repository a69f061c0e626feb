"""No refusal goes untested: every format string of the sources has a test that asks for it, or is listed below.

A refusal that is new belongs into a row of ``test_refusals_*.py``, or of ``tests/c/refusals.c`` when only C can provoke
it: what is done wrong, and the sentence that names the argument, its value and what was expected, word for word. Where
that is not enough, another test asks for a part of the sentence.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import refusal_sites
import test_refusals_groups
import test_refusals_names
import test_refusals_reads
import test_refusals_stages
import test_refusals_tensors
import test_refusals_writes
from refusal_sites import ROOT, Site, sites

TABLES = [
    test_refusals_groups, test_refusals_names, test_refusals_reads, test_refusals_stages, test_refusals_tensors,
    test_refusals_writes,
]  # fmt: skip

# What no test can provoke, with the reason.
OUT_OF_REACH = {
    "The path dictionary is full": "it takes 4 billion names",
    "{} must have at most {} entries": "it takes a list of 4 billion tensors",
    "ovstage_fetch_query_result: out of memory": "malloc of a few bytes fails",
    "out of memory for the tensors of a group": "malloc of a few bytes fails",
    "managed_tensors: out of memory for a list": "malloc of a few bytes fails",
    "ovstage_create_instance: out of memory for a stage": "malloc of a few bytes fails",
    "the thread that calls the log callback could not be created": "the process may have no more threads",
    "two copies of the library are loaded": "it takes a second build of the library",
    "libovstage.so and _native.abi3.so do not belong together": "it takes a library of another version",
    "this build of ovstage does not support free-threaded Python": "it takes a free-threaded build of the extension",
    "Operation {} is still pending after": "operations are done when the call that makes them returns",
    "log messages were dropped": "it is no refusal, but a warning of the log",
    "not possible in a forked child process": "the library always says why",
    "the group has no bytes any more": "the library ends a map between two looks at it",
    "the group has no tensors that an Arrow reader could be given": "no read serves such a group",
}


@cache
def provoked() -> list[str]:
    """The whole texts of the tables."""
    texts = [text for table in TABLES for text, _ in table.ROWS]
    for call in ("SAYS", "DICTIONARY_SAYS", "reads"):
        texts += [text.replace("...", "…") for text in refusal_sites.sentences(ROOT / "tests/c/refusals.c", call)]
    return texts


@cache
def asked_elsewhere() -> list[str]:
    """The strings of the other tests. Some refusals need more than a table has, as forks and white boxes do."""
    python = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    found = [text for path in python for text in refusal_sites.strings_of_python(path)]
    native = [*(ROOT / "gocore").rglob("*_test.go"), *(ROOT / "tests/c").glob("*.c")]
    found += [text for path in native for text in refusal_sites.strings_of_native(path)]
    return sorted({text for text in found if " " in text})


def in_a_table(site: Site) -> bool:
    return any(site.makes(text) for text in provoked())


def in_another_test(site: Site) -> bool:
    """Whether one has four words of it in a row; all of it, if it has no four words in a row."""
    words = [piece.split() for piece in site.pieces]
    runs = [" ".join(piece[at : at + 4]) for piece in words for at in range(len(piece) - 3)]
    if not runs:
        return any(site.makes(text) for text in asked_elsewhere())
    return any(run in text for run in runs for text in asked_elsewhere())


def test_every_refusal_is_provoked():
    reachable = [site for site in sites() if not any(words in str(site) for words in OUT_OF_REACH)]
    missing = [str(site) for site in reachable if not in_a_table(site) and not in_another_test(site)]
    assert not missing, "no test provokes\n" + "\n".join(missing)


def test_nothing_is_listed_in_vain():
    for words in OUT_OF_REACH:
        found = [site for site in sites() if words in str(site)]
        assert found, f"no source says {words!r} any more"
        assert not any(map(in_a_table, found)), f"{words!r} is in a table"
