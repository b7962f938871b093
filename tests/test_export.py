"""Snippets for other engines: every cell has a text or a reason, and every text is what it claims to be."""

import ast
import dataclasses
import json
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from tiny_checkpoints import save_llama

from playground import trace
from playground.__main__ import main
from playground.acceptance import vllm_metrics
from playground.config import GAMMA_POLICIES, PRECISIONS, PROPOSERS, RunSettings
from playground.lab.export import ENGINES, export
from playground.metrics import RoundRecord, RunMetrics
from playground.report import Recorder

NASTY = "It's \"x\" $HOME `id` $(id) \\ %s {y}\nEOF\n'''\u2028\x00 --flag"
EXAMPLE = Path(__file__).parent / "traces" / "version-1.jsonl"
SHELL_ENGINES = [name for name in ENGINES if name != "transformers"]


def settings(proposer, **given):
    base = {"proposer": proposer, "target": "qwen3-8b", "draft": "qwen3-0.6b", "tree_nodes": 6, "corpus": "x"}
    return RunSettings(**{"prompt": NASTY} | base | given)


def commands(text):
    """The commands of a shell snippet as lists of words, split as a shell would."""
    return [shlex.split(line, comments=True) for line in text.replace("\\\n", " ").split("\n") if line.strip()]


def option(text, name):
    """The value of an option anywhere in a snippet."""
    words = [word for command in commands(text) for word in command]
    return words[words.index(name) + 1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("proposer", PROPOSERS)
def test_every_cell_has_a_snippet_or_a_reason(engine, proposer):
    found = export(settings(proposer), engine)
    assert bool(found.text) != bool(found.reason)
    assert found.source and not (found.reason and not found.reason.endswith((".", ".)")))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("precision", [*PRECISIONS, "auto"])
def test_every_precision_has_a_snippet_or_a_reason_too(engine, precision):
    target = "bfloat16" if precision == "auto" else precision
    for proposer in ("none", "draft", "quantized"):
        chosen = settings(proposer, target_precision=target, draft_precision=target, quantized_precision=precision)
        found = export(chosen, engine)
        assert bool(found.text) != bool(found.reason)
        if found.language == "python" and found.text:
            ast.parse(found.text)


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("proposer", PROPOSERS)
def test_python_compiles_and_holds_the_prompt_exactly(proposer, chat):
    text = export(settings(proposer, chat_template=chat, stop_strings=("'\"\n",)), "transformers").text
    if text:
        constants = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
        assert NASTY in constants and "'\"\n" in constants
        compile(text, "snippet", "exec")


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("proposer", PROPOSERS)
@pytest.mark.parametrize("engine", SHELL_ENGINES)
def test_shell_survives_and_json_in_it_parses(engine, proposer, chat):
    text = export(settings(proposer, chat_template=chat, system_prompt="s", stop_strings=("'",)), engine).text
    if not text:
        return
    parts = shlex.split(text.replace("\\\n", " "), comments=True)
    if "-d" not in parts:
        assert proposer == "lookahead" and NASTY.splitlines()[0] in text.replace("'\"'\"'", "'")
        return
    body = json.loads(parts[parts.index("-d") + 1])
    assert (body["messages"][-1]["content"] if chat else body["prompt"]) == NASTY
    assert body["model"] == "Qwen/Qwen3-8B" and body["stop"] == ["'"] and body["max_tokens"] == 160


def test_a_real_shell_sees_the_words_that_were_meant():
    text = export(settings("ngram"), "vllm").text
    shown = subprocess.run(
        ["bash", "-c", 'vllm() { printf "%s\\0" "$@"; }; curl() { :; }\n' + text], capture_output=True, check=True
    ).stdout
    words = shown.decode().split("\0")
    assert words[:2] == ["serve", "Qwen/Qwen3-8B"]
    assert json.loads(words[words.index("--speculative-config") + 1])["method"] == "ngram"


def test_vllm_has_the_fields_of_its_configuration():
    chosen = settings("ngram", gamma=4, ngram_min=2, ngram_max=3)
    config = {"method": "ngram", "prompt_lookup_min": 2, "prompt_lookup_max": 3, "num_speculative_tokens": 4}
    assert json.loads(option(export(chosen, "vllm").text, "--speculative-config")) == config
    suffix = json.loads(option(export(settings("suffix", min_share=0.2), "vllm").text, "--speculative-config"))
    assert suffix["method"] == "suffix" and suffix["suffix_decoding_min_token_prob"] == 0.2
    drawn = settings("draft", temperature=1.0)
    draft = json.loads(option(export(drawn, "vllm").text, "--speculative-config"))
    assert draft["model"] == "Qwen/Qwen3-0.6B" and draft["draft_sample_method"] == "probabilistic"


def test_sglang_counts_the_last_committed_token_in_its_width():
    text = export(settings("draft", gamma=4), "sglang").text
    assert option(text, "--speculative-num-steps") == "4" and option(text, "--speculative-num-draft-tokens") == "5"
    assert option(text, "--speculative-algorithm") == "STANDALONE"


def test_tensorrt_llm_gets_a_file_that_is_yaml():
    text = export(settings("eagle", gamma=3, tree_nodes=20, tree_top_k=2), "tensorrt-llm").text
    written = yaml.safe_load(
        subprocess.run(["bash", "-c", text.split(" > ")[0]], capture_output=True, check=True, text=True).stdout
    )["speculative_config"]
    assert written["decoding_type"] == "Eagle3" and written["max_draft_len"] == 3
    assert written["max_draft_len"] <= written["max_total_draft_tokens"] <= 2 * 3


def test_llama_cpp_has_the_new_names_of_its_options():
    for proposer in ("ngram", "draft", "quantized", "eagle"):
        text = export(settings(proposer), "llama.cpp").text
        assert "--draft-max" not in text and "--spec-ngram-size" not in text and "--spec-type" in text
    assert option(export(settings("draft", gamma=7), "llama.cpp").text, "--spec-draft-n-max") == "7"


def test_models_go_by_their_hub_names_and_what_cannot_be_read_elsewhere_is_said():
    bundled = export(settings("ngram", target="smollm2-135m"), "vllm")
    assert "HuggingFaceTB/SmolLM2-135M-Instruct" in bundled.text and "4-bit" in bundled.notes[0]
    own = export(settings("draft", target="smollm2-135m", draft="smollm2-135m-draft"), "vllm")
    assert "only this project reads" in own.reason
    assert "No draft model" in export(settings("draft", draft=""), "sglang").reason
    assert "./-rf" in export(settings("ngram", target="-rf"), "vllm").text
    assert "none is known" in export(settings("eagle", target="qwen2.5-7b"), "vllm").reason


def test_what_is_not_carried_over_is_said():
    notes = " ".join(export(settings("ngram", gamma_policy="cost-model"), "vllm").notes)
    assert "cost-model" in notes and "look up" in notes
    assert "tree" in " ".join(export(settings("eagle"), "vllm").notes)


@pytest.mark.parametrize("policy", GAMMA_POLICIES)
def test_transformers_has_two_of_the_policies(policy):
    found = export(settings("draft", gamma_policy=policy, confidence_threshold=0.3), "transformers")
    assert ('schedule = "heuristic"' in found.text) == (policy == "heuristic")
    assert ("threshold = 0.3" in found.text) == (policy == "confidence")
    assert any(f"“{policy}”" in note for note in found.notes) == (policy in ("moving-average", "cost-model"))


def record(drafted, accepted, number=1):
    return RoundRecord(number, drafted, min(drafted, accepted + 1), accepted, accepted + 1, "bonus", 1, 1, 1, 10)


def test_acceptance_in_vllms_schema_is_the_example_of_its_documentation():
    rounds = [record(3, 0)] * 39 + [record(3, 1)] + [record(3, 3)] * 3
    found = vllm_metrics(rounds, 3)
    assert found["mean_acceptance_length"] == 1.2325581395348837
    assert found["draft_acceptance_rate"] == 0.07751937984496124
    assert found["acceptance_histogram"] == [39, 1, 0, 3]
    assert found["acceptance_histogram_by_draft_length"] == {"3": [39, 1, 0, 3]}
    assert (found["num_spec_steps"], found["num_accepted_draft_tokens"], found["num_draft_tokens"]) == (43, 10, 129)
    assert sum(found["per_step_accepted"]) == 10 and found["per_step_drafted"] == [3] * 43


def test_rounds_that_drafted_nothing_are_left_out_as_in_vllm():
    found = vllm_metrics([record(0, 0), record(2, 1), record(0, 0)], 5)
    assert found["num_spec_steps"] == 1 and found["acceptance_histogram"] == [0, 1, 0, 0, 0, 0]
    assert vllm_metrics([], 2)["mean_acceptance_length"] == 1.0


def test_the_record_of_a_run_carries_it_and_agrees():
    recorder, metrics = Recorder(), RunMetrics()
    for event in trace.load(EXAMPLE):
        recorder(event)
        metrics.update(event)
    found = recorder.report()["vllm"]
    assert found["draft_acceptance_rate"] == pytest.approx(metrics.draft_efficiency)
    assert found["num_accepted_draft_tokens"] == metrics.num_accepted


def test_the_command_prints_the_snippet_alone(capsys):
    assert main(["export", "--engine", "transformers", "--prompt", "hi", "--gamma", "3"]) == 0
    shown = capsys.readouterr()
    compile(shown.out, "snippet", "exec")
    assert "prompt_lookup_num_tokens=3" in shown.out and "Field names" in shown.err
    assert main(["export", "--engine", "vllm", "--prompt", "hi", "--proposer", "medusa"]) == 1
    assert main(["export", "--engine", "vllm", "--prompt", "hi", "--gamma", "99"]) == 2


@pytest.mark.parametrize("proposer", ["none", "ngram", "draft", "early-exit"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_snippet_for_transformers_runs_as_it_is(tmp_path, proposer, temperature):
    folder = str(save_llama(tmp_path))
    chosen = settings(proposer, target=folder, draft=folder, prompt="The quick", temperature=temperature)
    chosen = dataclasses.replace(chosen, max_new_tokens=4, exit_layers=1, target_precision="float32", gamma=2)
    names = {}
    exec(compile(export(chosen, "transformers").text, "snippet", "exec"), names)
    assert 1 <= names["output"].shape[1] - names["inputs"]["input_ids"].shape[1] <= 4
