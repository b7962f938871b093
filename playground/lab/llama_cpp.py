"""llama.cpp on the same GGUF, as arms of the benchmark, where llama-cpp-python is installed.

It runs in a process of its own, waiting idle between its turns, so that two runtimes never share
threads; the interpreter that has the package is this one, or the one that SPECPLAY_LLAMA_PYTHON
names. Greedy, prefill apart, the same tokens of the same prompts, the same number of threads.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from playground.lab.arms import Arm, Measured

CHILD = """
import json, sys, time
from llama_cpp import Llama
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

options = json.loads(sys.stdin.readline())
common = dict(
    model_path=options["gguf"], n_ctx=2048, n_threads=options["threads"], n_threads_batch=options["threads"],
    verbose=False,
)
lookup = LlamaPromptLookupDecoding(max_ngram_size=options["ngram_max"], num_pred_tokens=options["gamma"])
models = {"plain": Llama(**common), "lookup": Llama(**common, draft_model=lookup)}
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    task = json.loads(line)
    llama, made, start = models[task["arm"]], [], 0.0
    llama.reset()
    for token in llama.generate(task["ids"], top_k=1, temp=0.0, repeat_penalty=1.0, reset=True):
        made.append(token)
        if len(made) == 1:
            start = time.perf_counter()  # the first token belongs to the prefill
        if len(made) > task["num_tokens"]:
            break
    print(json.dumps({"ids": made[:-1], "seconds": time.perf_counter() - start}), flush=True)
"""


class LlamaCpp:
    """A llama.cpp process. Close it when done."""

    def __init__(self, python: str, gguf: Path, threads: int, gamma: int, ngram_max: int):
        """Start it and load the model.

        Raises:
            RuntimeError: the package is missing there, or the model does not load.
        """
        quiet = {"stderr": subprocess.DEVNULL, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._child = subprocess.Popen([python, "-c", CHILD], **quiet)
        options = {"gguf": str(gguf), "threads": threads, "gamma": gamma, "ngram_max": ngram_max}
        self._ask(options)

    def arm(self, name: str) -> Arm:
        """Return "plain" or "lookup" (its prompt lookup decoding) as an arm."""

        def run(ids: list[int], num_tokens: int) -> Measured:
            answer = self._ask({"arm": name, "ids": ids, "num_tokens": num_tokens})
            return Measured(tuple(answer["ids"]), len(answer["ids"]), answer["seconds"])

        return run

    def _ask(self, question: dict) -> dict:
        try:
            self._child.stdin.write(json.dumps(question) + "\n")
            self._child.stdin.flush()
            return json.loads(self._child.stdout.readline())
        except (OSError, ValueError) as error:
            raise RuntimeError("llama.cpp gave no answer: is llama-cpp-python installed?") from error

    def close(self) -> None:
        """End the process."""
        self._child.stdin.close()
        self._child.wait(timeout=30)


def start_llama_cpp(gguf: Path, threads: int, gamma: int, ngram_max: int, report: Callable[[str], None]):
    """Return a LlamaCpp, or None with a report of why where there is none."""
    python = os.environ.get("SPECPLAY_LLAMA_PYTHON", sys.executable)
    try:
        return LlamaCpp(python, gguf, threads, gamma, ngram_max)
    except (RuntimeError, OSError):
        report("llama.cpp is not compared: no llama-cpp-python here; SPECPLAY_LLAMA_PYTHON names a Python with it.")
        return None
