"""Figures remembered: what is written is read back, what is broken is no figure, what runs measure is kept."""

import json
import threading

import pytest
from tiny_checkpoints import save_gpt2, save_llama

from playground import speeds as module
from playground.__main__ import main
from playground.batches import Stopped
from playground.config import RunSettings
from playground.events import Calibrated, Finished, Progress
from playground.lm.lean import LeanLM
from playground.session import Playground
from playground.speeds import Speeds, Step


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "speeds.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(save_llama(tmp_path_factory.mktemp("models") / "target", initializer_range=0.3))


@pytest.fixture(autouse=True)
def speeds_file(tmp_path, monkeypatch):
    """The file that a Playground of this test uses."""
    monkeypatch.setattr(module, "speeds_path", lambda: tmp_path / "speeds.json")
    return tmp_path / "speeds.json"


def figures(speeds, model):
    known = speeds.speeds(model) if isinstance(speeds, Playground) else speeds.of(model)
    return {precision: speed.tokens_per_second for precision, speed in known.items()}


def test_a_figure_is_read_back_with_its_day_and_only_for_its_model(path):
    Speeds(path).record("smollm2-135m", "bfloat16", 2, 44.126)
    known = Speeds(path).of("smollm2-135m")
    assert list(known) == ["bfloat16"]
    assert known["bfloat16"].tokens_per_second == 44.126
    assert known["bfloat16"].threads == 2
    assert known["bfloat16"].date.startswith("20")
    assert Speeds(path).of("someone/else") == {}


def test_the_newest_figure_counts_whatever_number_of_threads_it_had(path):
    speeds = Speeds(path)
    for threads, figure in ((2, 40.0), (1, 30.0), (2, 50.0)):
        speeds.record("smollm2-135m", "int4", threads, figure)
    assert figures(speeds, "smollm2-135m") == {"int4": 50.0}
    assert len(json.loads(path.read_text())["speeds"]) == 2


def test_a_model_of_the_manifest_is_one_by_any_of_its_names(path):
    speeds = Speeds(path)
    speeds.record("Qwen/Qwen3-0.6B", "int8", 2, 9.0)
    assert figures(speeds, "qwen3-0.6b") == {"int8": 9.0}


def test_a_figure_of_another_machine_or_torch_is_not_of_here(path, monkeypatch):
    Speeds(path).record("a", "int8", 2, 9.0)
    for change in ({"device_name": "another"}, {"torch": "0.1"}):
        monkeypatch.setattr(module, "environment", lambda change=change: {"device_name": "x", "torch": "y"} | change)
        assert Speeds(path).of("a") == {}


GOOD = {"model": "a", "precision": "int8", "threads": 2, "device_name": "x", "torch": "y", "tokens_per_second": 9.0}
GOOD |= {"measured_at": "2026-11-29T12:00:00+00:00"}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"speeds": 3}', '{"speeds": [1, null, {}]}', "\udcff"])
def test_a_broken_file_holds_no_figure_and_takes_the_next(path, text):
    path.parent.mkdir()
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert Speeds(path).of("a") == {}
    Speeds(path).record("a", "int8", 1, 3.0)
    assert figures(Speeds(path), "a") == {"int8": 3.0}


@pytest.mark.parametrize(
    "change",
    [{"tokens_per_second": "fast"}, {"tokens_per_second": -1.0}, {"threads": None}, {"measured_at": "x"}, {"more": 1}],
)
def test_a_broken_record_is_skipped_and_the_others_count(path, monkeypatch, change):
    monkeypatch.setattr(module, "environment", lambda: {"device_name": "x", "torch": "y"})
    path.parent.mkdir()
    path.write_text(json.dumps({"speeds": [GOOD | change, GOOD | {"precision": "int4"}]}))
    assert figures(Speeds(path), "a") == {"int4": 9.0}


def test_a_file_that_cannot_be_written_stops_nobody_and_leaves_nothing_behind(tmp_path, monkeypatch, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    Speeds(blocked / "speeds.json").record("a", "int8", 1, 3.0)
    monkeypatch.setattr(module.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    Speeds(tmp_path / "speeds.json").record("a", "int8", 1, 3.0)
    assert caplog.text.count("could not be remembered") == 2
    assert list(tmp_path.iterdir()) == [blocked]


def test_the_file_does_not_grow_for_ever(path, monkeypatch):
    monkeypatch.setattr(module, "MAX_KEPT", 3)
    for number in range(5):
        Speeds(path).record(f"model {number}", "int8", 1, 3.0)
    assert [record["model"] for record in json.loads(path.read_text())["speeds"]] == ["model 2", "model 3", "model 4"]


def test_a_run_leaves_the_figure_it_measured_and_a_cached_one_leaves_none(folder, speeds_file):
    playground = Playground()
    settings = RunSettings("The quick brown", target=folder, target_precision="float32", max_new_tokens=4)
    events = []
    playground.run(settings, events.append)
    last = [event for event in events if isinstance(event, Calibrated)][-1]
    assert not last.cached
    assert figures(playground, folder) == {"float32": last.tokens_per_second}
    speeds_file.unlink()
    stopped = []

    def stop_after_the_cached_figure(event):
        stopped.append(event)
        if isinstance(event, Calibrated):
            raise Stopped

    with pytest.raises(Stopped):
        playground.run(settings, stop_after_the_cached_figure)
    assert stopped[-1].cached
    assert not speeds_file.exists()


def steps_of(playground, *arguments):
    return [event for batch in playground.measure(*arguments, wait_s=0.01) for event in batch]


def test_measuring_gives_every_precision_a_figure_and_leaves_the_chosen_one_loaded(folder, speeds_file):
    playground = Playground()
    steps = steps_of(playground, folder, "bfloat16")
    ended = [step for step in steps if step.stage in ("measured", "failed")]
    measured = {step.precision: step.tokens_per_second for step in ended if step.stage == "measured"}
    assert {"float32", "bfloat16"} <= set(measured)
    assert ended[-1].precision == "bfloat16"
    assert measured == figures(playground, folder)
    assert playground._store._target.key == (folder, "bfloat16")
    assert all(step.message for step in ended if step.stage == "failed")


def test_a_precision_that_cannot_be_measured_says_why_and_the_others_go_on(tmp_path):
    steps = steps_of(Playground(), str(save_gpt2(tmp_path / "gpt2")))
    ended = {step.precision: step for step in steps if step.stage in ("measured", "failed")}
    assert "lean decoder" in ended["int4"].message
    assert ended["float32"].tokens_per_second > 0


def test_a_measurement_waits_for_its_turn_and_closing_it_frees_the_models(folder):
    playground = Playground()
    ticket = playground._turns.join()
    batches = playground.measure(folder, wait_s=0.01)
    waiting = next(event for batch in batches for event in batch)
    assert isinstance(waiting, Progress)
    ticket.leave()
    next(event for batch in batches for event in batch if isinstance(event, Step))
    batches.close()
    done = []
    playground.run(RunSettings("The quick", target=folder, target_precision="float32", max_new_tokens=2), done.append)
    assert isinstance(done[-1], Finished)
    assert len(playground._turns) == 0


def test_all_torch_work_of_a_measurement_is_done_by_the_one_engine_thread(folder, monkeypatch):
    names = set()
    extend = LeanLM.extend

    def noted(self, *arguments, **named):
        names.add(threading.current_thread().name)
        return extend(self, *arguments, **named)

    monkeypatch.setattr(LeanLM, "extend", noted)
    steps_of(Playground(), folder)
    assert names == {"engine_0"}


def test_the_models_command_measures_and_shows_what_is_known(folder, capsys):
    assert main(["models", "--target", folder]) == 0
    assert "not measured here yet" in capsys.readouterr().out
    assert main(["models", "--measure", "--target", folder]) == 0
    shown = capsys.readouterr()
    assert "float32: " in shown.err
    assert "thread" in shown.out
    assert main(["models", "--json", "--target", folder]) == 0
    known = json.loads(capsys.readouterr().out)["speeds"]
    assert known["float32"]["tokens_per_second"] > 0
    assert main(["models", "--measure", "--target", "/no/such/folder"]) == 1
