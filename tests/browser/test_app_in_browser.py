"""The real thing: `python app.py` with the bundled target, as a visitor meets it."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from browser.conftest import copied, output, run_id, status, wait_end

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def app():
    """The address of the running app."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"GRADIO_SERVER_PORT": str(port), "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "Running on" in line:
            break
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(10)


def test_the_page_is_usable_soon_after_the_start_and_answers_the_preset_prompt(visit, app):
    url = app
    page = visit(url, ready=False)
    page.wait_for_selector("#generate:enabled")
    page.wait_for_selector("#ready .ready.ok", timeout=180_000)
    page.click("#generate")
    page.wait_for_selector(".strip .tok.out", timeout=60_000)
    page.wait_for_selector("#generate:enabled", timeout=120_000)
    wait_end(page)
    assert status(page).startswith("Finished")
    assert len(output(page)) > 100
    assert output(page) == copied(page)
    assert page.locator(".strip .accepted").count() > 10
    assert re.fullmatch(r"\d+\.\d\d×", page.inner_text(".figure.speedup strong"))
    assert "�" not in page.inner_text(".spec")


def test_a_second_run_starts_quickly_and_can_be_stopped(visit, app):
    page = visit(app)
    page.click("#generate")
    page.wait_for_selector(".strip .tok.out")
    before = run_id(page)
    page.click("#stop")
    page.wait_for_selector("#generate:enabled")
    wait_end(page)
    assert run_id(page) == before
    assert output(page)


def test_settings_the_engine_refuses_are_said_in_one_sentence(visit, app):
    page = visit(app)
    field = page.locator("#set-target input")
    field.fill("/nowhere/at/all")
    field.press("Enter")
    page.click("#generate")
    page.wait_for_selector(".spec .status[data-state=failed]")
    assert len(status(page)) < 400
    assert "Traceback" not in page.content()
    page.wait_for_selector("#generate:enabled")
