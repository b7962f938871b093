"""Sessions and commands on a tiny checkpoint: settings in, events out, errors as sentences."""

import json
import pickle
import threading
import time

import pytest
from tiny_checkpoints import save_gpt2, save_llama, tiny_tokenizer
from tokenizers import normalizers

from playground.__main__ import main
from playground.config import RunSettings
from playground.events import Calibrated, Failed, Finished, Prefilled, Proposed, Started, Verified
from playground.report import Recorder
from playground.session import Playground


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    lossy = tiny_tokenizer(special=("<s>", "<|im_end|>"))
    lossy.backend_tokenizer.normalizer = normalizers.Lowercase()
    return {
        "target": str(save_llama(root / "target", initializer_range=0.3)),
        "draft": str(save_llama(root / "draft", seed=3, rows=512, initializer_range=0.3)),
        "gpt2": str(save_gpt2(root / "gpt2")),
        "lossy": str(save_llama(root / "lossy", tokenizer=lossy)),
    }


@pytest.fixture(scope="module")
def playground():
    return Playground()


@pytest.fixture
def settings(folders):
    def make(**changes):
        chosen = {"target": folders["target"], "target_precision": "float32", "max_new_tokens": 24, "gamma": 3}
        return RunSettings(**{"prompt": "The quick brown"} | chosen | {"draft_precision": "float32"} | changes)

    return make


def events_of(playground, settings):
    events = []
    playground.run(settings, events.append)
    return events


def report_of(events):
    recorder = Recorder()
    for event in events:
        recorder(event)
    return recorder.report()


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


def test_a_run_starts_measures_plain_decoding_and_ends(playground, settings):
    events = events_of(playground, settings(proposer="ngram"))
    kinds = [type(event) for event in events]
    assert kinds.index(Started) < kinds.index(Prefilled) < kinds.index(Calibrated) < kinds.index(Proposed)
    assert isinstance(events[-1], Finished)
    assert kinds[-2] is Calibrated
    report = report_of(events)
    assert report["baseline_tokens_per_second"] == only(events, Calibrated)[-1].tokens_per_second
    assert report["speedup"] == pytest.approx(report["tokens_per_second"] / report["baseline_tokens_per_second"])
    assert report["environment"]["threads"] >= 1
    assert report["num_prompt_tokens"] == len(only(events, Started)[0].prompt_ids)


def test_every_proposer_gives_the_text_of_plain_decoding(playground, settings, folders):
    plain = report_of(events_of(playground, settings(proposer="none")))["token_ids"]
    for changes in (
        {"proposer": "ngram", "ngram_min": 1},
        {"proposer": "draft", "draft": folders["draft"]},
        {"proposer": "draft", "draft": folders["target"]},
        {"proposer": "quantized", "quantized_precision": "int8"},
        {"proposer": "quantized"},
    ):
        for gamma in (0, 1, 4):
            report = report_of(events_of(playground, settings(gamma=gamma, **changes)))
            assert report["token_ids"] == plain, changes
            assert gamma == 0 or changes["proposer"] == "ngram" or report["num_drafted"] > 0


def test_the_calibration_is_remembered_for_the_same_kind_of_run(playground, settings):
    events_of(playground, settings(proposer="none"))
    assert only(events_of(playground, settings(proposer="ngram")), Calibrated)[0].cached


def test_the_chat_template_adds_exactly_one_start_token_and_can_be_off(playground, settings):
    started = only(events_of(playground, settings(proposer="none")), Started)[0]
    assert started.prompt_text.startswith("<|im_start|>user\nThe quick brown<|im_end|>")
    assert started.prompt_text.endswith("<|im_start|>assistant\n")
    tokenizer = tiny_tokenizer()
    assert started.prompt_ids.count(tokenizer.convert_tokens_to_ids("<|im_start|>")) == 2
    plain = only(events_of(playground, settings(proposer="none", chat_template=False)), Started)[0]
    assert plain.prompt_text == "The quick brown"


FAILURES = [
    ({"target": "no/such-model"}, "no/such-model is not on this machine"),
    ({"target": "/no/such/folder"}, "folder"),
    ({"target": "x/" * 300}, "neither a folder"),
    ({"target": "~nobody-here/x"}, "neither a folder"),
    ({"proposer": "draft"}, "No draft model"),
    ({"proposer": "draft", "draft": "lossy"}, "does not fit the target. Their tokens differ"),
    ({"prompt": "word " * 400}, "takes at most 256"),
    ({"target": "gpt2", "target_precision": "int4"}, "lean decoder"),
]


@pytest.mark.parametrize(("changes", "words"), FAILURES, ids=lambda value: str(value)[:40])
def test_what_cannot_run_is_one_sentence_and_the_next_run_works(playground, settings, folders, changes, words):
    changes = {n: folders.get(value, value) if n in ("target", "draft") else value for n, value in changes.items()}
    before = report_of(events_of(playground, settings(proposer="none")))
    failed = only(events_of(playground, settings(**changes)), Failed)
    assert len(failed) == 1
    assert words in failed[0].message
    assert "Traceback" not in failed[0].message
    assert report_of(events_of(playground, settings(proposer="none")))["token_ids"] == before["token_ids"]


def test_a_broken_engine_is_a_sentence_without_internals(playground, settings, monkeypatch):
    from playground import engine

    def broken(*_):
        raise RuntimeError("secret path /etc/x")

    monkeypatch.setattr(engine, "to_probs", broken)
    failed = only(events_of(playground, settings(proposer="ngram")), Failed)
    assert len(failed) == 1
    assert "secret" not in failed[0].message
    monkeypatch.undo()
    assert isinstance(events_of(playground, settings(proposer="ngram"))[-1], Finished)


def test_closing_a_stream_stops_the_run_and_frees_the_models(playground, settings):
    before = threading.active_count()
    for _ in range(5):
        stream = playground.stream(settings(proposer="none", max_new_tokens=200))
        for batch in stream:
            if only(batch, Verified):
                break
        stream.close()
    deadline = time.monotonic() + 10
    while (len(playground._turns) or threading.active_count() > before) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert threading.active_count() == before
    assert len(playground._turns) == 0
    assert isinstance([e for batch in playground.stream(settings(proposer="none")) for e in batch][-1], Finished)


def test_a_stream_hands_out_events_at_its_own_pace_not_one_by_one(playground, settings):
    batches = list(playground.stream(settings(proposer="none", max_new_tokens=60), wait_s=0.5))
    assert sum(len(batch) for batch in batches) > 120
    assert max(len(batch) for batch in batches) > 20


def test_two_streams_take_turns_and_do_not_mix(playground, settings):
    alone = {seed: report_of(events_of(playground, settings(seed=seed, temperature=1.0))) for seed in (7, 99)}
    found = {}

    def go(seed):
        batches = playground.stream(settings(seed=seed, temperature=1.0))
        found[seed] = report_of([event for batch in batches for event in batch])

    threads = [threading.Thread(target=go, args=(seed,)) for seed in (7, 99)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (7, 99):
        assert found[seed]["token_ids"] == alone[seed]["token_ids"]
        assert found[seed]["num_accepted"] == alone[seed]["num_accepted"]


def test_settings_and_events_cross_a_process_border(playground, settings):
    chosen = settings(proposer="ngram")
    assert pickle.loads(pickle.dumps(chosen)) == chosen
    for event in events_of(playground, chosen):
        assert pickle.loads(pickle.dumps(event)) == event


def test_the_run_command_writes_the_record(folders, tmp_path, capsys):
    out = tmp_path / "run.json"
    command = ["run", "--target", folders["target"], "--precision", "float32", "--prompt", "The quick brown"]
    code = main([*command, "--gamma", "2", "--max-new-tokens", "9", "--ngram-min", "1", "--json", str(out)])
    report = json.loads(out.read_text())
    assert code == 0
    assert len(report["token_ids"]) == 9
    assert report["settings"]["gamma"] == 2
    assert "speedup" in capsys.readouterr().out


def test_commands_that_cannot_run_say_why_and_exit_with_an_error(folders, capsys):
    assert main(["run", "--prompt", "x", "--gamma", "1000"]) == 2
    assert "from 0 to 16" in capsys.readouterr().err
    assert main(["run", "--prompt", "x", "--json", "/no/such/folder/out.json"]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert main(["run", "--prompt", "x", "--target", "/no/such/folder"]) == 1
    assert "folder" in capsys.readouterr().err


def test_the_models_command_lists_choices_with_reasons(capsys):
    assert main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["targets"][0]["id"] == "smollm2-135m"
    assert listed["targets"][0]["available"]
    assert all(option["available"] or option["reason"] for option in listed["targets"] + listed["precisions"])
