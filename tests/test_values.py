"""Settings, events and metrics: ranges in words, JSON both ways, every rate as the glossary defines it."""

import json

import pytest

from playground import events
from playground.config import DEFAULTS, RANGES, RunSettings, SamplingConfig, SpecConfig
from playground.events import (
    Calibrated,
    Candidate,
    Committed,
    Failed,
    Finished,
    Node,
    Position,
    Prefilled,
    Progress,
    Proposed,
    Started,
    Verified,
    from_json,
    to_json,
)
from playground.metrics import RunMetrics
from playground.report import Recorder

BAD = [("gamma", -1), ("gamma", 1.5), ("gamma", 1000), ("gamma", True), ("gamma", float("nan")), ("gamma", "5")]
BAD += [("max_new_tokens", 10_000_000), ("max_new_tokens", 0), ("temperature", -0.1), ("temperature", float("inf"))]
BAD += [("top_p", 0), ("top_p", 1.01), ("top_k", -1), ("seed", -1), ("seed", 2**40), ("ngram_min", 0)]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_value_out_of_range_is_refused_with_the_range_in_words(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a (whole )?number from"):
        RunSettings(prompt="x", **{name: value})


@pytest.mark.parametrize("prompt", ["", "   ", "\n"])
def test_an_empty_prompt_is_refused_in_words(prompt):
    with pytest.raises(ValueError, match="empty"):
        RunSettings(prompt=prompt)


def test_unknown_choices_long_stop_lists_and_crossed_sizes_are_refused():
    wrong = [{"proposer": "magic"}, {"target_precision": "int3"}, {"stop_strings": ("a",) * 9}, {"stop_strings": ("",)}]
    wrong += [{"target": 5}, {"system_prompt": 5}, {"stop_strings": 5}, {"stop_strings": "ab"}]
    for settings in [*wrong, {"ngram_min": 4, "ngram_max": 2}]:
        with pytest.raises(ValueError):
            RunSettings(prompt="x", **settings)


def test_defaults_lie_in_their_ranges_and_settings_survive_json():
    for name, allowed in RANGES.items():
        assert allowed.check(name, allowed.default) == allowed.default
        if name in DEFAULTS:
            assert DEFAULTS[name] == allowed.default
    settings = RunSettings(prompt="x", stop_strings=["a"])
    assert RunSettings(**json.loads(json.dumps(settings.to_dict()))) == settings
    assert settings.spec == SpecConfig(sampling=SamplingConfig(), stop_strings=("a",))


def round_events(number, num_drafted, num_accepted, num_tested=None, draft_ms=10.0, verify_ms=80.0, other_ms=10.0):
    """A Proposed and a Verified with these counts."""
    full = num_accepted == num_drafted
    num_tested = num_accepted + (not full) if num_tested is None else num_tested
    nodes = tuple(Node(i, "x", i - 1, 0.5) for i in range(num_drafted))
    tested = tuple(events.Tested(i, i, 0.9, 0.5, 0.1, i < num_accepted, 0.8) for i in range(num_tested))
    kinds = ["accepted"] * num_accepted + ["bonus" if full else "residual"]
    committed = tuple(Committed(i, kind, "x", "x", 0.5) for i, kind in enumerate(kinds))
    position = Position((Candidate(1, "a", 0.5, 2.0),), (Candidate(2, "b", 1.0),), ())
    verified = Verified(number, tested, committed, kinds[-1], (position,), verify_ms, other_ms, 10 + number)
    return Proposed(number, nodes, draft_ms), verified


ALL_KINDS = [
    Started("id", {"gamma": 4}, (1, 2), "hi <b>", "ngram", 4, {"threads": 2}),
    Progress("loading", "Loading", None),
    Progress("loading", "Loading", 0.5),
    Prefilled(2, 0, 2000.0),
    Calibrated(10.0, 100.0, 12, False),
    *round_events(1, 4, 2),
    Finished("length", 'quotes " and \u2028 and 👩', (1, 2)),
    Failed("No.", "Try again."),
]


@pytest.mark.parametrize("event", ALL_KINDS, ids=lambda event: type(event).__name__)
def test_events_survive_json(event):
    assert from_json(to_json(event)) == event
    assert "\n" not in to_json(event)


HOSTILE = ['{"event":"Nope"}', "[]", "3", '{"event":"Failed"}', '{"event":"Failed","message":3,"hint":""}']
HOSTILE += [
    '{"event":"Failed","message":"a","hint":"","extra":1}',
    '{"event":"Finished","reason":"x","text":"","token_ids":3}',
]
HOSTILE += [
    '{"event":"Finished","reason":"x","text":"","token_ids":["a"]}',
    '{"event":"Progress","stage":"a","message":"b","fraction":"c"}',
]


@pytest.mark.parametrize("line", HOSTILE)
def test_what_is_no_event_is_refused(line):
    with pytest.raises(ValueError):
        from_json(line)


def follow(*events):
    metrics = RunMetrics()
    for event in events:
        metrics.update(event)
    return metrics


def test_every_rate_follows_its_definition():
    metrics = follow(Calibrated(10.0, 100.0, 12, False), *round_events(1, 5, 2), *round_events(2, 3, 3))
    assert (metrics.num_drafted, metrics.num_tested, metrics.num_accepted, metrics.num_committed) == (8, 6, 5, 7)
    assert metrics.alpha == pytest.approx(5 / 6)
    assert metrics.draft_efficiency == pytest.approx(5 / 8)
    assert metrics.acceptance_length == pytest.approx(3.5)
    assert metrics.tokens_per_second == pytest.approx(35.0)
    assert metrics.speedup == pytest.approx(3.5)
    assert metrics.overhead_share == pytest.approx(0.1)
    assert metrics.acceptance_by_position == [1.0, 1.0, 0.5]
    assert metrics.mean_overlap == pytest.approx(0.8)


def test_speed_counts_tokens_not_chunks_and_leaves_the_prompt_out():
    """2 s of prefill, then 10 rounds of 100 ms with 5 tokens each: 50 tokens/s."""
    rounds = [event for number in range(1, 11) for event in round_events(number, 4, 4)]
    metrics = follow(Prefilled(100, 0, 2000.0), *rounds)
    assert metrics.tokens_per_second == pytest.approx(50.0)
    assert metrics.prefill_ms == 2000.0


def test_a_slower_run_says_so():
    assert follow(Calibrated(40.0, 25.0, 12, False), *round_events(1, 4, 0)).speedup == pytest.approx(0.25)


def test_rates_without_a_denominator_are_none():
    metrics = follow()
    assert (metrics.alpha, metrics.speedup, metrics.acceptance_length, metrics.tokens_per_second) == (None,) * 4


def test_the_record_of_a_run_has_the_promised_keys_and_a_stopped_run_says_so():
    recorder = Recorder()
    for event in ALL_KINDS[:7]:
        recorder(event)
    report = recorder.report()
    assert report["finish_reason"] == "stopped"
    promised = "token_ids text finish_reason num_rounds num_drafted num_tested num_accepted alpha draft_efficiency"
    promised += " acceptance_length tokens_per_second baseline_tokens_per_second speedup prefill_s draft_s verify_s"
    assert set(f"{promised} other_s rounds environment".split()) <= set(report)
    assert len(report["rounds"]) == report["num_rounds"] == 1
    json.dumps(report)
