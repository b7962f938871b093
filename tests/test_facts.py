"""What a proposer is made of, told from files alone."""

import json

import torch
from safetensors.torch import save_file

from playground.config import PROPOSERS
from playground.facts import proposer_facts
from playground.registry import bundled


def test_every_proposer_says_what_it_is_made_of():
    for name in PROPOSERS:
        assert bool(proposer_facts(name, "smollm2-135m")) == (name != "none")


def test_a_head_tells_its_size_and_its_training(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "MANIFEST_PATH", tmp_path / "manifest.json")
    assert "python -m playground train early-exit --target me/you" in proposer_facts("early-exit", "me/you")
    folder = bundled.trained_folder("me/you", "early-exit")
    folder.mkdir()
    save_file({"a": torch.zeros(1000, 1500, dtype=torch.bfloat16)}, folder / "model.safetensors")
    (folder / "config.json").write_text('{"kind": "early-exit", "exit_layers": [2, 5]}')
    words = proposer_facts("early-exit", "me/you")
    assert words == "1.5M parameters, 3 MB, adapters after 2, 5 of the target's layers."
    making = {"minutes": 12.2, "corpus_tokens": 630_000}
    (folder / "figures.json").write_text(json.dumps({"making": making}))
    assert proposer_facts("early-exit", "me/you").endswith("trained 12 minutes on 0.63M tokens.")


def test_a_copy_tells_the_memory_of_its_precision():
    assert proposer_facts("quantized", "smollm2-135m", precision="int4").endswith("392 MB in int4.")
    assert "int8 or" in proposer_facts("quantized", "smollm2-135m")
    assert proposer_facts("quantized", "/some/folder") == ""


def test_a_draft_model_outside_the_list_says_nothing():
    assert proposer_facts("draft", "smollm2-135m", "/some/folder") == ""
