"""The training text of one target on disk: grown by the target's own writing, or read from files.

`corpus.jsonl` is only ever appended to, one conversation a line: {"ids", "answer_start",
"temperature", "source"}. What touches a held-out prompt never gets in. Knows no models: a Writer
hands conversations over.
"""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from playground.training.held_out import HeldOut
from playground.training.writer import Conversation, Template

MIN_TOKENS = 16  # shorter texts teach nothing

Report = Callable[[int], None]


class Corpus:
    """Attributes:
    texts: the conversations, in the order they came.
    num_tokens: in all of them.
    """

    def __init__(self, path: Path, tokenizer: Any, held_out: HeldOut | None = None, max_tokens: int = 320):
        """Read what is there. A half-written last line (a killed run) is dropped from the file."""
        self._path, self._tokenizer, self._max_tokens = Path(path), tokenizer, max_tokens
        self._held_out = held_out or HeldOut()
        self.texts: list[Conversation] = []
        self._sources: set[str] = set()
        self.num_tokens = 0
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._read()

    def _read(self) -> None:
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self._path.write_bytes(whole)
        for line in whole.splitlines():
            record = json.loads(line)
            self._sources.add(record["source"])
            self._keep(Conversation(record["ids"], record["answer_start"], record["temperature"]))

    def _keep(self, text: Conversation) -> None:
        self.texts.append(text)
        self.num_tokens += len(text.ids)

    def add(self, text: Conversation, source: str = "target") -> bool:
        """Append one text unless it is too short or touches a held-out prompt; say whether it was taken."""
        if len(text.ids) < MIN_TOKENS or self._held_out.touches(text.user or self._tokenizer.decode(text.ids)):
            return False
        record = {"ids": text.ids, "answer_start": text.answer_start, "temperature": text.temperature, "source": source}
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, separators=(",", ":")) + "\n")
        self._sources.add(source)
        self._keep(text)
        return True

    def export(self, path: Path) -> None:
        """Write everything to one compressed file, which another corpus can read."""
        with gzip.GzipFile(path, "wb", compresslevel=9, mtime=0) as stream:
            stream.write(self._path.read_bytes())

    def grow(self, conversations: Iterable[Conversation], num_tokens: int, report: Report) -> None:
        """Take conversations until the corpus holds `num_tokens`."""
        if self.num_tokens >= num_tokens:
            return
        for text in conversations:
            self.add(text)
            report(self.num_tokens)
            if self.num_tokens >= num_tokens:
                return

    def read_file(self, path: Path, max_new_tokens: int | None = None) -> int:
        """Take in a file once: .jsonl(.gz) lines with `ids`, `messages` or `text`; anything else is plain text.

        Args:
            path: the file; a second call with the same content does nothing.
            max_new_tokens: stop after about so many.

        Returns:
            Tokens taken.

        Raises:
            ValueError: the file cannot be read as what its name says.
        """
        path = Path(path)
        source = f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
        if source in self._sources:
            return 0
        before = self.num_tokens
        for text in self._texts_of(path):
            if max_new_tokens is not None and self.num_tokens - before >= max_new_tokens:
                break
            self.add(text, source)
        return self.num_tokens - before

    def _texts_of(self, path: Path) -> Iterator[Conversation]:
        opened = gzip.open if path.suffix == ".gz" else open
        try:
            with opened(path, "rt", encoding="utf-8") as stream:
                if ".jsonl" in path.suffixes:
                    for line in stream:
                        yield from self._cut(*self._record(json.loads(line)))
                else:
                    yield from self._cut(self._tokenizer(stream.read())["input_ids"], False)
        except (UnicodeDecodeError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} cannot be read as training text: {error}.") from error

    def _record(self, record: dict) -> tuple[list[int], bool]:
        """Ids of one line and whether it is a conversation."""
        if "ids" in record:
            if max(record["ids"]) >= len(self._tokenizer):
                raise KeyError("ids of another tokenizer")
            return record["ids"], True
        if "messages" in record:
            text = self._tokenizer.apply_chat_template(record["messages"], tokenize=False)
            return self._tokenizer(text, add_special_tokens=False)["input_ids"], True
        return self._tokenizer(record["text"])["input_ids"], False

    def _cut(self, ids: list[int], chat: bool) -> Iterator[Conversation]:
        start = 0
        if chat and getattr(self._tokenizer, "chat_template", None):
            start = Template(self._tokenizer).answer_start(ids)
        if start:
            yield Conversation(ids[: self._max_tokens], start if start < self._max_tokens else 0)
            return
        for begin in range(0, len(ids), self._max_tokens):
            yield Conversation(ids[begin : begin + self._max_tokens])

    def head(self, num_tokens: int) -> list[Conversation]:
        """The first texts, until they hold `num_tokens`."""
        total = 0
        for count, text in enumerate(self.texts, 1):
            total += len(text.ids)
            if total >= num_tokens:
                return self.texts[:count]
        return self.texts

    def counts(self, num_ids: int) -> torch.Tensor:
        """How often each id occurs, (num_ids,)."""
        counts = torch.zeros(num_ids, dtype=torch.long)
        for text in self.texts:
            counts += torch.bincount(torch.tensor(text.ids), minlength=num_ids)
        return counts
