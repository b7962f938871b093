"""The early script stands before gradio's scripts in the page, and nothing else is touched."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from playground.ui.early_script import EarlyScript


def served(path, body, method="GET"):
    async def app(scope, receive, send):
        headers = [(b"content-type", b"text/html"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body[:5], "more_body": True})
        await send({"type": "http.response.body", "body": body[5:]})

    sent = []

    async def send(message):
        sent.append(message)

    request = EarlyScript(app, "early()")({"type": "http", "method": method, "path": path}, None, send)
    with ThreadPoolExecutor(1) as pool:  # playwright leaves an event loop running in the main thread
        pool.submit(asyncio.run, request).result()
    return dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


def test_the_page_gets_the_script_first_and_its_length_is_right():
    headers, body = served("/", b"<html><head><script src=x></script></head></html>")
    assert body.startswith(b"<html><head><script>early()</script><script src=x>")
    assert headers[b"content-length"] == str(len(body)).encode()


def test_other_addresses_pass_untouched():
    assert served("/assets/x.html", b"<head></head>")[1] == b"<head></head>"
