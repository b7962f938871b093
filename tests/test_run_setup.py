"""Settings to proposers on a tiny checkpoint: every name, every policy, a draft with another tokenizer, a corpus."""

import json
from dataclasses import fields

import pytest
import torch
from head_fakes import eagle_head, exit_adapters, medusa_heads
from tiny_checkpoints import OTHER_SENTENCES, save_llama, tiny_tokenizer
from transformers import AutoModelForCausalLM

from playground import config
from playground.__main__ import main
from playground.config import RunSettings
from playground.events import Failed, Progress, Proposed, Started
from playground.heads import save_delta, save_head
from playground.registry import bundled
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
def trained_folders(folders, tmp_path_factory):
    """Heads of every kind for the tiny target, where a trained one would lie."""
    root = tmp_path_factory.mktemp("trained")
    model = AutoModelForCausalLM.from_pretrained(folders["target"], dtype=torch.float32).eval()
    text = model.generate(torch.tensor([[3, 9, 7]]), max_new_tokens=80, do_sample=False)[0].tolist()
    made = {"medusa": medusa_heads(model, text), "eagle": eagle_head(model, text)}
    made["early-exit"] = exit_adapters(model, text, [1])
    for recipe, head in made.items():
        save_head(head, root / f"{bundled.slug_of(folders['target'])}-{recipe}", folders["target"])
    ranks = {f"depth {depth}": [0.5, 0.2, 0.1] for depth in range(1, 5)}
    figures = root / f"{bundled.slug_of(folders['target'])}-medusa" / "figures.json"
    figures.write_text(json.dumps({"rank_accuracy": ranks}))
    save_delta(model, torch.arange(3, model.config.vocab_size), root / "draft", folders["target"])
    return root


@pytest.fixture(autouse=True)
def trained(trained_folders, monkeypatch):
    monkeypatch.setattr(bundled, "MANIFEST_PATH", trained_folders / "manifest.json")
    monkeypatch.setenv("SPECPLAY_CACHE", str(trained_folders / "cache"))


@pytest.fixture(scope="module")
def playground():
    return Playground()


@pytest.fixture
def settings(folders):
    def make(**changes):
        chosen = {"target": folders["target"], "target_precision": "float32", "draft": folders["draft"]}
        chosen |= {
            "exit_layers": 1,
            "draft_precision": "float32",
            "quantized_precision": "int8",
            "max_new_tokens": 24,
            "gamma": 3,
        }
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
        assert gamma == 0 or name in ("none", "ngram", "suffix", "lookahead") or report["num_drafted"] > 0
        if gamma and name in ("self", "oracle"):
            assert report["alpha"] == 1.0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("medusa", {"tree_nodes": 8}),
        ("eagle", {"tree_nodes": 8, "tree_top_k": 3}),
        ("early-exit", {"adapter": False}),
        ("lookahead", {"guess_tree": False, "window": 3, "ngram_size": 3, "num_guesses": 2}),
    ],
)
def test_options_of_a_proposer_reach_it_and_change_no_token(playground, settings, plain_ids, name, options):
    events = events_of(playground, settings(proposer=name, gamma=4, **options))
    assert report_of(events)["token_ids"] == plain_ids
    nodes = [event.nodes for event in events if isinstance(event, Proposed)]
    branched = any(node.parent != place - 1 for row in nodes for place, node in enumerate(row))
    assert branched == ("tree_nodes" in options)
    assert name == "lookahead" or max(map(len, nodes)) == options.get("tree_nodes", 4)


def test_greedy_drafting_is_certain_at_every_temperature(playground, settings):
    for greedy in (False, True):
        chosen = settings(proposer="draft", temperature=1.0, greedy_draft=greedy)
        nodes = [node for event in events_of(playground, chosen) if isinstance(event, Proposed) for node in event.nodes]
        assert all(node.q == 1.0 for node in nodes) == greedy


def test_a_trained_draft_model_is_joined_with_its_target(playground, settings, trained_folders, plain_ids):
    for _ in range(2):  # the second time it lies in the cache
        events = events_of(playground, settings(proposer="draft", draft=str(trained_folders / "draft")))
        report = report_of(events)
        assert report["token_ids"] == plain_ids
        assert report["alpha"] == pytest.approx(1.0, abs=0.2)  # the very same weights, rounded to 16 bit
    drafter = list(playground._store._drafters.values())[-1]
    assert drafter.lm.head_ids[0] == 3
    assert drafter.lm.extend([5]).shape[1] == len(drafter.lm.head_ids)


@pytest.mark.parametrize("name", ["medusa", "eagle", "early-exit"])
def test_a_head_that_is_missing_is_said_with_the_command_that_trains_it(settings, tmp_path, monkeypatch, name):
    monkeypatch.setattr(bundled, "MANIFEST_PATH", tmp_path / "manifest.json")
    events = []
    Playground().run(settings(proposer=name), events.append)
    assert isinstance(events[-1], Failed)
    assert f"python -m playground train {name} --target" in events[-1].hint


def test_a_depth_without_adapter_is_refused_in_a_sentence(playground, settings):
    events = []
    playground.run(settings(proposer="early-exit", exit_layers=2), events.append)
    assert isinstance(events[-1], Failed)
    assert "layers" in events[-1].message


def test_heads_stay_in_memory_while_the_target_does(playground, settings):
    events_of(playground, settings(proposer="eagle"))
    first = playground._store._heads["eagle"]
    events_of(playground, settings(proposer="medusa"))
    events_of(playground, settings(proposer="eagle", tree_nodes=6))
    assert playground._store._heads["eagle"] is first


@pytest.mark.parametrize("policy", config.GAMMA_POLICIES)
@pytest.mark.parametrize("name", ["none", "draft", "suffix", "oracle", "eagle", "medusa", "early-exit", "lookahead"])
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
        ({"tree_nodes": 33}, "tree_nodes must be a whole number from 0 to 32"),
        ({"adapter": 1}, "adapter must be true or false"),
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
