"""Settings to proposers on a tiny checkpoint: every name, every policy, a draft with another tokenizer, a corpus."""

import json
from dataclasses import fields

import pytest
from tiny_checkpoints import OTHER_SENTENCES, save_llama, tiny_tokenizer

from playground import config
from playground.__main__ import main
from playground.config import RunSettings
from playground.events import Failed, Progress, Proposed, Started
from playground.report import Recorder
from playground.run_setup import BUILDERS
from playground.session import Playground


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    other = tiny_tokenizer(OTHER_SENTENCES, special=("<s>", "<|im_end|>"))
    return {
        "target": str(save_llama(root / "target", initializer_range=0.3)),
        "draft": str(save_llama(root / "draft", seed=3, initializer_range=0.3)),
        "other": str(save_llama(root / "other", tokenizer=other, initializer_range=0.3)),
    }


@pytest.fixture(scope="module")
def playground():
    return Playground()


@pytest.fixture
def settings(folders):
    def make(**changes):
        chosen = {"target": folders["target"], "target_precision": "float32", "draft": folders["draft"]}
        chosen |= {"draft_precision": "float32", "quantized_precision": "int8", "max_new_tokens": 24, "gamma": 3}
        return RunSettings(**{"prompt": "The quick brown fox"} | chosen | changes)

    return make


def events_of(playground, settings):
    events = []
    playground.run(settings, events.append)
    assert not [event for event in events if isinstance(event, Failed)]
    return events


def report_of(events):
    recorder = Recorder()
    for event in events:
        recorder(event)
    return recorder.report()


@pytest.fixture
def plain_ids(playground, settings):
    return report_of(events_of(playground, settings(proposer="none")))["token_ids"]


def test_every_proposer_that_can_be_chosen_has_a_builder():
    assert tuple(BUILDERS) == config.PROPOSERS


@pytest.mark.parametrize("name", config.PROPOSERS)
def test_every_proposer_gives_the_text_of_plain_decoding(playground, settings, plain_ids, name):
    for gamma in (0, 1, 4):
        report = report_of(events_of(playground, settings(proposer=name, gamma=gamma)))
        assert report["token_ids"] == plain_ids
        assert gamma == 0 or name in ("none", "ngram", "suffix") or report["num_drafted"] > 0
        if gamma and name in ("self", "oracle"):
            assert report["alpha"] == 1.0


@pytest.mark.parametrize("policy", config.GAMMA_POLICIES)
@pytest.mark.parametrize("name", ["none", "draft", "suffix", "oracle"])
def test_every_policy_gives_the_text_of_plain_decoding(playground, settings, plain_ids, name, policy):
    report = report_of(events_of(playground, settings(proposer=name, gamma_policy=policy, gamma=6)))
    assert report["token_ids"] == plain_ids
    assert report["settings"]["gamma_policy"] == policy


def test_the_confidence_threshold_reaches_the_draft(playground, settings):
    lengths = []
    for threshold in (0.0, 1.0):
        chosen = settings(proposer="draft", gamma=6, gamma_policy="confidence", confidence_threshold=threshold)
        proposed = [event for event in events_of(playground, chosen) if isinstance(event, Proposed)]
        lengths.append(max(len(event.nodes) for event in proposed))
    assert lengths == [6, 1]


def test_a_draft_with_another_tokenizer_drafts_text_and_says_so(playground, settings, folders, plain_ids):
    events = events_of(playground, settings(proposer="draft", draft=folders["other"]))
    report = report_of(events)
    assert report["token_ids"] == plain_ids
    assert report["num_drafted"] > 0
    started = next(event for event in events if isinstance(event, Started))
    assert "another tokenizer" in started.environment["notice"]


def test_the_corpus_is_text_in_the_targets_tokens(playground, settings):
    answer = report_of(events_of(playground, settings(proposer="none")))["text"]
    for name in ("ngram", "suffix"):
        chosen = {"proposer": name, "ngram_min": 1, "gamma": 6, "corpus": f"The quick brown fox\n{answer}"}
        with_corpus = report_of(events_of(playground, settings(**chosen)))
        assert with_corpus["num_accepted"] > 0


def test_the_oracle_says_that_it_decodes_its_answer_first(playground, settings):
    events = events_of(playground, settings(proposer="oracle"))
    told = [event for event in events if isinstance(event, Progress) and "oracle" in event.message]
    assert told[-1].fraction == 1.0
    assert events.index(told[-1]) < next(i for i, event in enumerate(events) if isinstance(event, Started))


def test_oracles_are_exact_when_sampling_too(playground, settings):
    for name in ("oracle", "noisy-oracle", "random", "self"):
        report = report_of(events_of(playground, settings(proposer=name, temperature=1.0)))
        assert len(report["token_ids"]) == 24


def test_noise_decides_the_alpha_of_the_noisy_oracle(playground, settings):
    alphas = [
        report_of(events_of(playground, settings(proposer="noisy-oracle", noise_alpha=alpha)))["alpha"]
        for alpha in (0.0, 1.0)
    ]
    assert alphas == [0.0, 1.0]


def test_the_target_drafts_for_itself_without_a_second_copy_of_its_weights(playground, settings):
    events_of(playground, settings(proposer="self"))
    store = playground._store
    assert store._twin.lm.weights is store._target.lm.weights
    assert store._twin.lm is not store._target.lm
    first = store._twin
    events_of(playground, settings(proposer="self", seed=2))
    assert store._twin is first


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gamma_policy": "magic"}, "gamma_policy must be one of"),
        ({"noise_alpha": 1.5}, "noise_alpha must be a number from 0 to 1"),
        ({"min_share": "x"}, "min_share must be a number"),
        ({"confidence_threshold": -1}, "confidence_threshold"),
        ({"corpus": "x" * 100_001}, "at most 100,000 characters"),
        ({"corpus": None}, "corpus"),
        ({"gamma": 99}, "gamma must be"),
    ],
)
def test_a_bad_option_is_refused_in_a_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        RunSettings("hello", **changes)


def test_the_run_command_has_an_option_for_every_setting(folders, tmp_path, capsys):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "run.json"
    corpus.write_text("The quick brown fox jumps", encoding="utf-8")
    command = ["run", "--target", folders["target"], "--precision", "float32", "--prompt", "The quick brown"]
    command += ["--proposer", "suffix", "--gamma-policy", "moving-average", "--min-share", "0.3", "--gamma", "4"]
    assert main([*command, "--corpus", str(corpus), "--max-new-tokens", "9", "--json", str(out)]) == 0
    kept = json.loads(out.read_text())["settings"]
    assert (kept["proposer"], kept["gamma_policy"], kept["min_share"]) == ("suffix", "moving-average", 0.3)
    assert kept["corpus"] == "The quick brown fox jumps"
    assert set(kept) == {item.name for item in fields(RunSettings)}
    assert main([*command, "--corpus", "/no/such/file"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_models_command_lists_proposers_and_policies_with_their_options(capsys):
    assert main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [item["id"] for item in listed["proposers"]] == list(config.PROPOSERS)
    options = {item["id"]: [option["name"] for option in item["options"]] for item in listed["proposers"]}
    assert options["suffix"] == ["min_share", "corpus"]
    noise = next(item for item in listed["proposers"] if item["id"] == "noisy-oracle")["options"][0]
    assert (noise["default"], noise["low"], noise["high"]) == (0.8, 0.0, 1.0)
    assert [item["id"] for item in listed["gamma_policies"]] == list(config.GAMMA_POLICIES)
