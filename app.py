"""Start the page: read flags and environment, build it, serve it. Also the entry point of a Space.

No logic of the product lives here. Models and torch are loaded in the background, so that the page
opens at once.
"""

import argparse
import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# An idle OpenMP thread soon stops spinning, so that the browser beside it gets the core: no cost to the engine.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

DEFAULT_PORT = 7860


def parse_flags(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; defaults come from the environment."""
    on_space = "SPACE_ID" in os.environ
    host = os.environ.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if on_space else "127.0.0.1")
    port = int(os.environ.get("GRADIO_SERVER_PORT") or DEFAULT_PORT)
    flags = argparse.ArgumentParser(description="Speculative Decoding Playground")
    flags.add_argument("--host", default=host, help="address to listen on (default: %(default)s)")
    flags.add_argument("--port", default=port, type=int, help="port to listen on (default: %(default)s)")
    flags.add_argument("--share", action="store_true", help="also open a public link through gradio's own service")
    return flags.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Serve the page until it is interrupted."""
    flags = parse_flags(arguments)
    print("Starting the page …", flush=True)
    from playground.session import Playground
    from playground.ui.layout import build, launch_options

    playground = Playground()
    page = build(playground)
    address = {"server_name": flags.host, "server_port": flags.port, "share": flags.share}
    page.launch(**address, **launch_options(), prevent_thread_lock=True)
    playground.start_loading()  # after the page is up: it imports torch, which would slow the first paint
    try:
        page.block_thread()
    finally:
        playground.close()


if __name__ == "__main__":
    main()
