"""The page's Generate as programs see it: one named endpoint, streamed, with sentences for bad values."""

import inspect
import json
import time
from dataclasses import fields

import pytest
from browser.double import Double
from gradio_client import Client
from gradio_client.exceptions import AppError

from playground.config import DEFAULTS, GAMMA_POLICIES, PROPOSER_OPTIONS, PROPOSERS, RunSettings
from playground.presets import DEFAULT_PRESET, preset, preset_settings
from playground.ui.layout import build, launch_options


@pytest.fixture(scope="module")
def served():
    double = Double(round_s=0.01)
    page = build(double)
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    yield double, url
    page.close()


@pytest.fixture(scope="module")
def client(served):
    return Client(served[1], verbose=False)


def last_line(text):
    return json.loads(text.rstrip("\n").split("\n")[-1])


def test_generate_is_the_only_public_endpoint_and_its_parameters_are_the_settings(client):
    endpoints = client.view_api(return_format="dict")["named_endpoints"]
    assert list(endpoints) == ["/generate"]
    names = [parameter["parameter_name"] for parameter in endpoints["/generate"]["parameters"]]
    assert names == [item.name for item in fields(RunSettings)]
    assert "JSON lines" in endpoints["/generate"]["description"]


def test_the_defaults_are_what_the_page_starts_with(client):
    parameters = client.view_api(return_format="dict")["named_endpoints"]["/generate"]["parameters"]
    first = DEFAULTS | preset_settings(preset(DEFAULT_PRESET)) | {"stop_strings": ""}
    assert {item["parameter_name"]: item["parameter_default"] for item in parameters[1:]} == first


def test_generate_streams_a_growing_log_whose_last_line_has_everything(client):
    seen = ""
    for text in client.submit(prompt="a story", max_new_tokens=40, api_name="/generate"):
        assert text.startswith(seen)
        seen = text
    end = last_line(seen)
    assert end["reason"] == "length"
    assert len(end["token_ids"]) == 40
    assert end["text"] and end["figures"]["speedup"]


def test_settings_arrive_as_sent(client, served):
    client.predict(
        prompt="x", proposer="none", gamma=0, seed=9, stop_strings="END", max_new_tokens=3, api_name="/generate"
    )
    sent = served[0].settings[-1]
    assert (sent.proposer, sent.gamma, sent.seed, sent.stop_strings, sent.max_new_tokens) == ("none", 0, 9, ("END",), 3)


@pytest.mark.parametrize("proposer", PROPOSERS)
def test_every_proposer_is_taken_with_its_options(client, served, proposer):
    samples = {"ngram_min": 1, "ngram_max": 3, "corpus": "a b c", "min_share": 0.3, "draft": "tiny"}
    samples |= {"draft_precision": "float32", "quantized_precision": "int8", "noise_alpha": 0.5}
    samples |= {"exit_layers": 4, "adapter": False, "tree_nodes": 9, "tree_top_k": 2, "window": 3}
    samples |= {"ngram_size": 5, "num_guesses": 2, "guess_tree": False, "greedy_draft": True, "typical_epsilon": 0.1}
    options = {name: samples[name] for name in PROPOSER_OPTIONS[proposer]}
    client.predict(prompt="x", proposer=proposer, max_new_tokens=3, **options, api_name="/generate")
    sent = served[0].settings[-1].to_dict()
    assert sent["proposer"] == proposer
    assert {name: sent[name] for name in options} == options


@pytest.mark.parametrize("policy", GAMMA_POLICIES)
def test_every_policy_is_taken(client, served, policy):
    changes = {"gamma_policy": policy, "confidence_threshold": 0.7, "max_new_tokens": 3}
    client.predict(prompt="x", **changes, api_name="/generate")
    sent = served[0].settings[-1]
    assert (sent.gamma_policy, sent.confidence_threshold) == (policy, 0.7)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"gamma": 1000}, "gamma must be a whole number from 0 to 16"),
        ({"gamma": -1}, "gamma must be a whole number"),
        ({"gamma": 1.5}, "gamma must be a whole number"),
        ({"max_new_tokens": 10_000_000}, "max_new_tokens must be a whole number from 1 to 2048"),
        ({"temperature": -0.1}, "temperature must be a number from 0 to 2"),
        ({"proposer": "magic"}, "proposer must be one of"),
        ({"target_precision": "int3"}, "target_precision must be one of"),
        ({"ngram_min": 5, "ngram_max": 2}, "must not exceed"),
        ({"gamma_policy": "magic"}, "gamma_policy must be one of"),
        ({"confidence_threshold": 2}, "confidence_threshold must be a number from 0 to 1"),
        ({"noise_alpha": 1.5}, "noise_alpha must be a number from 0 to 1"),
        ({"corpus": "x" * 100_001}, "at most 100,000 characters"),
        ({"prompt": ""}, "prompt is empty"),
        ({"prompt": " \n "}, "prompt is empty"),
        ({"stop_strings": "x" * 500}, "stop string"),
    ],
)
def test_a_bad_value_is_one_clear_sentence(client, changes, sentence):
    with pytest.raises(AppError, match=sentence) as caught:
        client.predict(**{"prompt": "x"} | changes, api_name="/generate")
    assert "Traceback" not in str(caught.value)
    assert str(caught.value).count(".") <= 2


def test_the_next_run_works_after_a_refused_one(client):
    with pytest.raises(AppError):
        client.predict(prompt="", api_name="/generate")
    assert last_line(client.predict(prompt="x", max_new_tokens=3, api_name="/generate"))["text"]


def test_a_failing_run_is_a_log_not_an_exception(client):
    end = last_line(client.predict(prompt="#fail", api_name="/generate"))
    assert end["reason"] == "failed"
    assert "memory" in end["message"]


def test_cancelling_frees_the_engine(client, served):
    job = client.submit(prompt="long", max_new_tokens=2000, api_name="/generate")
    while not job.outputs():
        time.sleep(0.02)
    job.cancel()
    deadline = time.monotonic() + 3
    while served[0].running and time.monotonic() < deadline:
        time.sleep(0.02)
    assert served[0].running == 0


def test_five_runs_at_once_take_turns(client, served):
    jobs = [client.submit(prompt=f"run {i}", max_new_tokens=30, api_name="/generate") for i in range(5)]
    ends = [last_line(job.result(timeout=30)) for job in jobs]
    assert [end["reason"] for end in ends] == ["length"] * 5
    assert len({end["text"] for end in ends}) == 5
    assert served[0].most_running == 1


def test_the_endpoint_has_a_description_for_every_reader():
    from playground.ui import generate

    assert "JSON lines" in generate.API_DESCRIPTION
    assert inspect.getdoc(generate)
