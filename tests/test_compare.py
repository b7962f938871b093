"""Sweeps: every arm on every prompt against plain decoding near it, kept, resumed, summed up."""

import csv
import io
import json
from dataclasses import replace

import pytest
from tiny_checkpoints import save_llama

from playground.__main__ import main
from playground.config import RunSettings
from playground.lab.compare import Result, Skipped, compare
from playground.lab.compare_arms import OWN_TASK, STANDING, Arm, arms_of, held_out, read_prompts
from playground.lab.compare_table import interval, markdown, recommendation, summaries, to_csv
from playground.models import ModelStore

PROMPTS = {"a": ["The quick brown fox", "jumps over"], "b": ["the lazy dog"]}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return str(save_llama(tmp_path_factory.mktemp("models") / "target", initializer_range=0.3))


@pytest.fixture(scope="module")
def base(target):
    return RunSettings("-", target=target, target_precision="float32", max_new_tokens=16)


@pytest.fixture(scope="module")
def swept(base):
    arms = [Arm("self", {"proposer": "self", "gamma": 3}), *arms_of(["ngram", "lookahead"], [2])]
    arms.append(Arm("draft", {"proposer": "draft", "draft": "/no/such/folder"}))
    arms.append(Arm("odd", {"no_such_setting": 1}))
    news = []
    items = list(compare(ModelStore(), base, arms, PROMPTS, set(), lambda *parts: news.append(parts)))
    assert any("Prompt 3 of 3" in message for _, message, _ in news)
    return items


def test_every_arm_that_can_run_is_measured_on_every_prompt(swept):
    results = [item for item in swept if isinstance(item, Result)]
    assert len(results) == 9
    assert {(item.task, item.prompt) for item in results} == {("a", p) for p in PROMPTS["a"]} | {("b", PROMPTS["b"][0])}
    assert all(item.same and item.speedup > 0 and item.predicted > 0 for item in results)
    itself = [item for item in results if item.arm == "self"]
    assert all(item.alpha == 1.0 and item.acceptance_length > 3 and item.c > 0 for item in itself)
    assert all(max(item.depths) == 3 for item in itself)


def test_an_arm_that_cannot_run_is_left_out_with_the_reason(swept):
    left = {item.arm.name: item.reason for item in swept if isinstance(item, Skipped)}
    assert set(left) == {"draft", "odd"}
    assert "neither a folder" in left["draft"]


def test_what_was_measured_before_is_not_measured_again(base):
    arm = arms_of(["ngram"], [2])[0]
    done = {(arm.key, prompt) for prompt in PROMPTS["a"]}
    results = list(compare(ModelStore(), base, [arm], PROMPTS, done, lambda *_: None))
    assert [item.prompt for item in results] == PROMPTS["b"]


def made(arm, speedup, task="a", prompt="p", **changes):
    """A result of a known speedup."""
    result = Result(arm, arm, task, prompt, 0.0, 10.0, 20, 10, 20, 15, 10, (2,) * 10, 20.0, 100.0, 5.0, True)
    total = result.committed * result.step_ms / speedup
    return replace(result, verify_ms=total - 25.0, **changes)


def test_figures_of_a_result_follow_the_definitions():
    result = made("x", 2.0)
    assert result.speedup == pytest.approx(2.0)
    assert result.alpha == pytest.approx(10 / 15)
    assert result.acceptance_length == 2.0
    assert result.c == pytest.approx(20 / 20 / 10)
    assert made("x", 2.0, tested=0, depths=(0,) * 10).alpha is None


def test_an_interval_holds_the_median_and_narrows_with_more_values():
    few, many = interval([1.0, 2.0, 3.0]), interval([1.0, 2.0, 3.0] * 30)
    assert few.median == many.median == 2.0
    assert few.high - few.low > many.high - many.low
    assert interval([]) is None


def test_the_recommendation_is_what_surely_wins_or_nothing():
    good = [made("good", 1.5 + 0.01 * i, prompt=str(i)) for i in range(6)]
    bad = [made("bad", 0.8, prompt=str(i)) for i in range(6)]
    ceiling = [made("oracle (ceiling)", 9.0, prompt=str(i)) for i in range(6)]
    assert "good, speedup 1.5" in recommendation(summaries([*bad, *good, *ceiling]))
    assert "do not speculate" in recommendation(summaries(bad))
    mixed = [made("mixed", value, prompt=str(i)) for i, value in enumerate((0.7, 0.8, 1.1, 1.2, 1.3))]
    assert "do not speculate" in recommendation(summaries(mixed))


def test_tables_and_csv_hold_every_arm(swept):
    results = [item for item in swept if isinstance(item, Result)]
    text = markdown(summaries(results))
    assert "| self |" in text and "| ngram, γ 2 |" in text and "| proposer | a | b |" in text
    rows = list(csv.DictReader(io.StringIO(to_csv(results))))
    assert len(rows) == 9 and float(rows[0]["speedup"]) > 0


def test_arms_and_tasks_are_checked():
    assert len({arm.key for arm in STANDING}) == len(STANDING)
    assert arms_of(["eagle:tree"], [3])[0].changes["tree_nodes"] > 0
    for names, gammas, words in (
        (["magic"], [2], "no proposer"),
        (["ngram"], [99], "gamma"),
        (["none"], [2], "no pro"),
    ):
        with pytest.raises(ValueError, match=words):
            arms_of(names, gammas)
    with pytest.raises(ValueError, match="no task magic"):
        held_out(["magic"], 2)
    assert list(map(len, held_out(["chat", "code"], 2).values())) == [2, 2]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.txt", "one\ntwo\n", {OWN_TASK: ["one", "two"]}),
        ("a.txt", "one\nstill one\n\ntwo", {OWN_TASK: ["one\nstill one", "two"]}),
        ("a.jsonl", '{"prompt": "x"}\n\n{"prompt": "y", "task": "t"}', {OWN_TASK: ["x"], "t": ["y"]}),
        ("a.jsonl", '{"question_id": 1, "category": "qa", "turns": ["x", "more"]}', {"qa": ["x"]}),
    ],
)
def test_own_prompts_are_read_in_every_format(tmp_path, name, text, found):
    path = tmp_path / name
    path.write_text(text)
    assert read_prompts(path) == found


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", " \n", "no prompt"),
        ("a.jsonl", "{", "line 1"),
        ("a.jsonl", '{"prompt": 3}', "empty"),
        ("a.jsonl", '{"turns": []}', "line 1"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_prompts(path)


def test_the_command_writes_everything_and_goes_on_where_it_stopped(target, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SPECPLAY_CACHE", str(tmp_path / "cache"))
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("The quick\njumps over")
    command = ["compare", "--target", target, "--precision", "float32", "--file", str(prompts), "--proposer", "ngram"]
    command += ["--max-new-tokens", "8", "--gamma", "2", "--json", str(tmp_path / "out.json")]
    assert main([*command, "--csv", str(tmp_path / "out.csv"), "--table", str(tmp_path / "out.md")]) == 0
    assert "| ngram, γ 2 |" in capsys.readouterr().out
    record = json.loads((tmp_path / "out.json").read_text())
    assert len(record["results"]) == 2 and record["summaries"][0]["figures"]["speedup"]["median"] > 0
    assert (tmp_path / "out.md").read_text() and (tmp_path / "out.csv").read_text()
    assert main([*command, "--gamma", "3", "--resume"]) == 0
    again = json.loads((tmp_path / "out.json").read_text())["results"]
    assert again[:2] == record["results"] and len(again) == 4


@pytest.mark.parametrize(
    "options", [[], ["--proposer", "magic"], ["--all", "--prompts", "0"], ["--all", "--temperature", "9"]]
)
def test_a_wrong_command_line_is_refused(options, capsys):
    assert main(["compare", *options]) == 2
    assert capsys.readouterr().err
