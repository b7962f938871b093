"""The race: lanes side by side on one machine, each with its own clock, caches and text."""

import pytest
from tiny_checkpoints import save_llama

from playground.config import RunSettings
from playground.events import Finished, Verified
from playground.lab.race import Difference, LaneEvent, race
from playground.models import ModelStore

LENGTH = 24


@pytest.fixture(scope="module")
def store():
    return ModelStore()


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    target = str(save_llama(root / "target", initializer_range=0.3))
    draft = str(save_llama(root / "draft", seed=3, initializer_range=0.3))

    def make(**changes):
        chosen = {"target": target, "target_precision": "float32", "draft": draft, "draft_precision": "float32"}
        return RunSettings(**{"prompt": "The quick brown fox", "max_new_tokens": LENGTH} | chosen | changes)

    return make


def raced(store, lanes, repeats=1):
    *news, results = race(store, lanes, repeats, lambda *_: None)
    assert all(isinstance(item, LaneEvent) for item in news)
    return news, results


def test_every_lane_of_a_race_gives_the_same_text_and_its_own_figures(store, settings):
    lanes = [settings(proposer="none"), settings(proposer="draft", gamma=2), settings(proposer="draft", gamma=5)]
    lanes.append(settings(proposer="self", gamma=4))
    news, results = raced(store, lanes, repeats=2)
    texts = {(item.lane, item.repeat): item.event.token_ids for item in news if isinstance(item.event, Finished)}
    assert len(texts) == 8
    assert len(set(texts.values())) == 1
    assert [result.difference for result in results] == [None] * 4
    assert results[0].speedups == (1.0, 1.0)
    assert results[0].acceptance_length == 1.0
    assert results[3].acceptance_length > 3
    assert all(len(result.tokens_per_second) == 2 and min(result.tokens_per_second) > 0 for result in results)


def test_the_lane_that_is_behind_goes_on(store, settings):
    news, _ = raced(store, [settings(proposer="none"), settings(proposer="ngram")])
    clocks, started = [0.0, 0.0], [False, False]
    for item in news:
        if isinstance(item.event, Verified):
            other = 1 - item.lane
            if all(started) and clocks[other] > 0:
                assert clocks[item.lane] <= clocks[other] or other in finished(news, item)
            clocks[item.lane], started[item.lane] = item.clock_ms, True


def finished(news, until):
    before = news[: news.index(until)]
    return {item.lane for item in before if isinstance(item.event, Finished)}


def test_texts_that_differ_are_told_with_the_place_and_the_gap(store, settings):
    lanes = [settings(proposer="none", temperature=1.0), settings(proposer="none", temperature=1.0, seed=5)]
    _, results = raced(store, lanes)
    found = results[1].difference
    assert isinstance(found, Difference)
    assert found.ids[0] != found.ids[1]
    assert found.gap > 0
    assert not Difference(0, (1, 2), None).near_tie
    assert Difference(0, (1, 2), 0.01).near_tie


def test_a_race_stops_between_two_rounds_and_leaves_the_models_usable(store, settings):
    running = race(store, [settings(proposer="none"), settings(proposer="draft")], 1, lambda *_: None)
    for _ in range(6):
        next(running)
    running.close()
    assert len(raced(store, [settings(proposer="none")])[1]) == 1


@pytest.mark.parametrize(
    ("changes", "words"), [({"prompt": "Other"}, "same target"), ({"target_precision": "bfloat16"}, "same target")]
)
def test_lanes_must_share_target_and_prompt(store, settings, changes, words):
    with pytest.raises(ValueError, match=words):
        next(race(store, [settings(), settings(**changes)], 1, lambda *_: None))


def test_a_race_has_at_most_four_lanes(store, settings):
    for lanes, repeats in (([], 1), ([settings()] * 5, 1), ([settings()], 0)):
        with pytest.raises(ValueError, match="lanes"):
            next(race(store, lanes, repeats, lambda *_: None))
