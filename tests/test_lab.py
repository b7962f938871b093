"""The benchmark's own parts: rows of text, long contexts on a tiny model, llama.cpp absent."""

import sys
from pathlib import Path

from fakes import lean, tiny_llama

from playground.lab import long_context
from playground.lab.bench_table import table
from playground.lab.llama_cpp import start_llama_cpp
from playground.proposers import NgramProposer


def test_long_contexts_are_measured_where_they_fit(monkeypatch):
    monkeypatch.setattr(long_context, "LENGTHS", (60, 120, 10_000))
    target = lean(tiny_llama())
    records = long_context.measure(target, 5, NgramProposer(2, 4), lambda line: None)
    assert [record["tokens"] for record in records] == [60, 120]
    assert all(record["plain_ms"] > 0 and record["cache_mib"] > 0 for record in records)
    assert target.length == 0


def test_without_llama_cpp_the_bench_says_so_and_goes_on(monkeypatch):
    monkeypatch.setenv("SPECPLAY_LLAMA_PYTHON", sys.executable)
    lines = []
    found = start_llama_cpp(Path("no such file.gguf"), 1, 5, 4, lines.append)
    assert found is None
    assert "llama.cpp is not compared" in lines[0]


def test_the_table_has_a_line_for_every_ratio_and_task():
    ratio = {"median": 1.5, "min": 1.25, "max": 2.0, "count": 3}
    figures = {
        "plain_vs_generate": ratio,
        "tokens_per_second": {"edit": {"plain": 40.0, "ngram": 100.0}},
        "ms_per_round": {"ngram": {"draft": 0.1, "verify": 24.0, "other": 0.5}},
        "long_context": [{"tokens": 128, "plain_ms": 23.0}],
        "load_s": {"bfloat16": 2.0},
        "environment": {"device_name": "a CPU", "threads": 2, "torch": "2", "precision": "bfloat16"},
    }
    text = table(figures)
    for piece in ("plain_vs_generate", "1.250", "edit", "100.0", "verify", "128", "bfloat16 2.0 s", "a CPU, 2 threads"):
        assert piece in text
