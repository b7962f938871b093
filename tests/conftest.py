"""Shared fixtures: a tiny random target, and the rule that CI never skips for want of a tool."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # tests reach no hub; those about the hub say otherwise
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import pytest
import torch
from fakes import tiny_llama

torch.set_num_threads(1)  # tiny models: more threads only wait for each other


@pytest.fixture(scope="session", autouse=True)
def speeds_elsewhere(tmp_path_factory):
    """Runs of tests leave the figures they measure in a folder of their own."""
    path = tmp_path_factory.mktemp("cache") / "speeds.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("playground.speeds.speeds_path", lambda: path)
        yield


@pytest.fixture(scope="session")
def model():
    """A random 2-layer Llama, float32, vocabulary 96."""
    return tiny_llama()
