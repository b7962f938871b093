"""Load: the same workload at every batch size, exact, interleaved with plain decoding, held against the prediction."""

import json
from dataclasses import replace

import pytest
from tiny_checkpoints import quiet, save_gpt2, save_llama

from playground.__main__ import main
from playground.config import RunSettings
from playground.lab.cost_curve import LeftOut
from playground.lab.cost_model import WIDTHS, Curve, PassCost, Point
from playground.lab.load import curves_and_load
from playground.lab.load_plan import LoadPlan, LoadResult, LoadRun, predicted
from playground.lab.load_table import Assumed, bend_words, markdown, paying_words
from playground.models import ModelStore
from playground.registry.errors import ModelError

PROMPTS = ("The quick brown fox", "jumps over the lazy dog", "A target checks what a draft has guessed")


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return str(save_llama(tmp_path_factory.mktemp("models") / "target", initializer_range=0.3))


def measured(target, proposer, precision="float32", **plan):
    base = RunSettings("-", target=target, proposer=proposer, gamma=3)
    plan = LoadPlan(prompts=PROMPTS, **{"batches": (1, 3), "length": 12} | plan)
    return list(curves_and_load(ModelStore(), base, [precision], (16,), 1, plan, quiet))


@pytest.mark.parametrize("proposer", ["ngram", "suffix", "self", "random"])
def test_every_batch_size_gets_plain_decodings_tokens_and_the_same_workload(target, proposer):
    found = measured(target, proposer)
    assert isinstance(found[0], Curve)
    results = [item for item in found if isinstance(item, LoadResult)]
    assert [result.batch for result in results] == [1, 3]
    for result in results:
        assert result.same == 1.0
        assert len(result.plain) == 2 and len(result.speculative) == 1 == len(result.speedups)
        assert all(run.num_tokens >= 36 for run in (*result.plain, *result.speculative))
        assert all(run.num_rows == run.num_tokens and not any(run.depths) for run in result.plain)
        assert result.predicted > 0 and result.speedup > 0
    if proposer == "self":
        assert all(result.alpha == 1.0 and result.drafted > 2 for result in results)
        assert results[1].speculative[0].num_passes < results[1].plain[0].num_passes / 2


def test_figures_of_a_run_follow_the_definitions():
    plain = LoadRun(4, 40, 10, 40, 100.0, (0,) * 40, 0, 0, 0.0, 90.0, 10.0)
    assert plain.throughput == pytest.approx(400)
    assert plain.latency_ms == pytest.approx(10)
    fast = LoadRun(4, 40, 4, 64, 100.0, (3,) * 16, 40, 24, 4.0, 60.0, 6.0)
    result = LoadResult(4, (plain, plain), (fast,), 1.2, 1.0)
    assert result.speedup == pytest.approx(100 / 70)
    assert result.alpha == pytest.approx(0.6) and result.drafted == 3
    assert fast.num_draft_steps == 12 and result.c == pytest.approx(4 / 12 / 10)
    assert LoadResult(4, (plain, plain), (plain,), 1.0, None).c is None
    assert json.loads(json.dumps(result.to_dict()))["plain"][0]["throughput"] == pytest.approx(400)


def test_the_prediction_reads_depths_rows_and_draft_time():
    cost = PassCost([Curve("float32", 128, 1, tuple(Point(w, 10.0 + w, 0, 0) for w in WIDTHS))])
    run = LoadRun(4, 40, 10, 160, 128.0, (3,) * 40, 100, 100, 20.0, 1.0, 1.0)
    assert predicted(run, 20.0, cost) == pytest.approx(4 / (2 / 20 + 26 / 14))  # alpha 1, 16 rows, 2 ms of drafting
    idle = LoadRun(4, 40, 10, 40, 128.0, (0,) * 40, 0, 0, 0.0, 1.0, 1.0)
    assert predicted(idle, 20.0, cost) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"batches": ()}, "Batch sizes"), ({"batches": (0,)}, "Batch"), ({"length": 1}, "tokens"), ({"cycles": 0}, "Cyc")],
)
def test_a_plan_out_of_range_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        LoadPlan(**{"batches": (1,), "prompts": PROMPTS} | changes)


def test_what_cannot_draft_or_run_as_a_batch_says_so(target, tmp_path):
    with pytest.raises(ValueError, match="eagle does not draft"):
        measured(target, "eagle")
    other = str(save_gpt2(tmp_path / "gpt2"))
    with pytest.raises(ModelError, match="many sequences at once"):
        measured(other, "ngram")
    found = measured(target, "ngram", precision="fp8")
    assert [type(item) for item in found] == [LeftOut]


def test_the_command_prints_tables_and_conclusions_and_writes_json(target, tmp_path, capsys):
    command = ["load", "--target", target, "--precision", "float32", "--context", "16", "64", "--cycles", "1"]
    command += ["--batch", "1", "2", "--length", "8", "--gamma", "2", "--json", str(tmp_path / "out.json")]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "| 16 |" in out and "speedup, measured" in out and "float32" in out
    record = json.loads((tmp_path / "out.json").read_text())
    assert {"environment", "curves", "load"} <= set(record)
    assert [item["batch"] for item in record["load"]] == [1, 2]
    assert main([*command, "--curve-only"]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["load"] == []


@pytest.mark.parametrize(
    "options",
    [
        ["--batch", "0"],
        ["--proposer", "eagle"],
        ["--gamma", "0"],
        ["--context", "0"],
        ["--alpha", "2"],
        ["--cycles", "0"],
    ],
)
def test_a_wrong_command_line_is_refused(options, capsys):
    assert main(["load", *options]) == 2
    assert capsys.readouterr().err


def test_the_table_says_where_it_bends_and_where_speculation_stops_paying():
    curve = Curve("bfloat16", 128, 3, tuple(Point(w, 10.0 * max(1, w / 8), 9, 12) for w in WIDTHS))
    plain = LoadRun(1, 40, 40, 40, 100.0, (0,) * 40, 0, 0, 0.0, 400.0, 0.0)
    slow = LoadRun(1, 40, 40, 80, 100.0, (1,) * 40, 40, 0, 0.0, 500.0, 0.0)
    results = [LoadResult(batch, (plain, plain), (slow,), 2.5 - batch, None) for batch in (1, 2)]
    text = markdown([curve], results, Assumed(0.7, 4, 0.0))
    assert (
        "| B = 32 |" in text and "Expected, bfloat16, 128 tokens: 2.77x at B = 1; speculation stops paying at" in text
    )
    assert "it bends at 16 tokens (2.0 passes over one)" in text
    assert "Measured: speculation does not pay, not even at B = 1 (0.80x)." in text
    assert "Predicted: 1.50x at B = 1; speculation stops paying at B = 2 (0.50x)." in text
    assert "still pays at B = 4 (1.10x, from 1.30x at B = 1)" in paying_words([(1, 1.3), (4, 1.1)], "Measured")
    assert "all that was measured" in bend_words(replace(curve, points=curve.points[:2]))
