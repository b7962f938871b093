"""Token ids to text as they arrive: never half a character, always the same text as one big decode.

Joined pieces equal `tokenizer.decode(ids, skip_special_tokens=True)` character for character.
Labels are for display: a token alone, bytes as ⟨E2 80⟩ where it is not whole characters, special
tokens by their name. Works with any transformers tokenizer; knows no models. The window of two
offsets follows vLLM's and text-generation-inference's incremental decoding.
"""

import re
from typing import Any

HALF = "\ufffd"  # what a decoder shows for incomplete bytes
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_of_char() -> dict[str, int]:
    """The printable stand-ins that byte-level BPE (GPT-2) uses for bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    return table | {chr(256 + index): byte for index, byte in enumerate(rest)}


_BYTES = _byte_of_char()


class Decoder:
    """Decodes for one tokenizer; keeps labels it has made."""

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer
        self.special_ids = frozenset(tokenizer.all_special_ids) | _added_special_ids(tokenizer)
        self._labels: dict[int, str] = {}

    def decode(self, ids: list[int]) -> str:
        """The text of `ids`, special tokens left out."""
        return self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def label(self, token_id: int) -> str:
        """One token for display."""
        label = self._labels.get(token_id)
        if label is None:
            label = self._labels[token_id] = self._make_label(token_id)
        return label

    def _make_label(self, token_id: int) -> str:
        token = self._tokenizer.convert_ids_to_tokens(token_id)
        if token is None:
            return f"⟨id {token_id}⟩"
        if token_id in self.special_ids:
            return token
        if match := _BYTE_TOKEN.fullmatch(token):
            return f"⟨{match[1].upper()}⟩"
        if "▁" in token:
            return token.replace("▁", " ")
        text = self._tokenizer.decode([token_id], clean_up_tokenization_spaces=False)
        if HALF in text and all(char in _BYTES for char in token):
            return "⟨" + " ".join(f"{_BYTES[char]:02X}" for char in token) + "⟩"
        return text


def _added_special_ids(tokenizer: Any) -> frozenset[int]:
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return frozenset(index for index, token in added.items() if getattr(token, "special", False))


class TextStream:
    """The text of one run, grown token by token, ending at the first stop string."""

    def __init__(self, decoder: Decoder, stop_strings: tuple[str, ...] = ()):
        self._decoder = decoder
        self._stops = stop_strings
        self._ids: list[int] = []
        self._done, self._read = 0, 0  # ids before _done are out; _done.._read is the overlap decoded with
        self.text = ""
        self.stopped = False  # a stop string is complete: the text ends with it

    def push(self, token_id: int) -> str:
        """Add a token and return the new text, "" while a character is incomplete."""
        if token_id in self._decoder.special_ids:
            return ""
        self._ids.append(token_id)
        before = self._decoder.decode(self._ids[self._done : self._read])
        after = self._decoder.decode(self._ids[self._done :])
        if len(after) <= len(before) or after.endswith(HALF):
            return ""
        self._done, self._read = self._read, len(self._ids)
        return self._append(after[len(before) :])

    def flush(self) -> str:
        """Return what is left at the end of a run: an incomplete character decodes to U+FFFD."""
        before = self._decoder.decode(self._ids[self._done : self._read])
        after = self._decoder.decode(self._ids[self._done :])
        self._done = self._read = len(self._ids)
        return self._append(after[len(before) :])

    def _append(self, piece: str) -> str:
        """Add a piece, cut right after the first stop string that it completes."""
        text = self.text + piece
        ends = []
        for stop in self._stops:
            start = text.find(stop, max(0, len(self.text) - len(stop) + 1))
            if start >= 0:
                ends.append(start + len(stop))
        if ends:
            self.stopped = True
            piece = piece[: min(ends) - len(self.text)]
        self.text += piece
        return piece
