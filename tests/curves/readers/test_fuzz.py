"""A short run of the fuzzer, and Hypothesis on bytes and tables of its own making."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mara.curves.readers.read import READERS
from tests.curves.readers.fuzz import check, damaged

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("form", READERS)
def test_damaged_files_are_refused_or_read(form: str, tmp_path: Path) -> None:
    for seed in range(150):
        rng = random.Random(f"suite {form} {seed}")
        name, data = damaged(form, rng)
        check(name, data, rng.choice((None, form)), tmp_path)


@given(data=st.binary(max_size=300), form=st.sampled_from([None, *READERS]))
@QUICK
def test_any_bytes(data: bytes, form: str | None, tmp_path: Path) -> None:
    check("log", data, form, tmp_path)


CELL = st.one_of(
    st.floats(allow_nan=True).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "nan", "0,5", "abc", '"', "1e400", "-0", "1 000"]),
    st.text(max_size=5),
)


@given(
    rows=st.lists(st.lists(CELL, min_size=1, max_size=4), max_size=12),
    delimiter=st.sampled_from(",;\t|"),
    head=st.permutations(["step", "loss", "epoch", "acc"]),
)
@QUICK
def test_any_table(rows: list[list[str]], delimiter: str, head: list[str], tmp_path: Path) -> None:
    text = "\n".join(delimiter.join(row) for row in [head, *rows])
    check("log.csv", text.encode("utf-8", errors="surrogatepass"), None, tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["loss", "step", "x"]), inner)
    ),
    max_leaves=12,
)


@given(document=JSON, form=st.sampled_from([None, "json", "jsonl", "trainer_state"]))
@QUICK
def test_any_json(document: object, form: str | None, tmp_path: Path) -> None:
    import json

    check("log.json", json.dumps({"log_history": document}).encode(), form, tmp_path)
    check("log.json", json.dumps(document).encode(), form, tmp_path)
