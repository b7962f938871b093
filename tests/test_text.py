"""Incremental decoding: joined pieces are the text, half characters never show, stops cut exactly."""

import pytest
from tiny_checkpoints import tiny_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from playground.text import HALF, Decoder, TextStream

TEXT = (
    "List<int> x; if a < b > c; <think>hm</think>\n\n    def f():\n\treturn 'ü'\n"
    "Emoji 👩\u200d🚀 done, 漢字かな, e\u0301 and ${x} \\n `code`   three  spaces "
)


def sentencepiece_tokenizer():
    """A SentencePiece-like BPE: ▁ for spaces, bytes as <0x..> for what it does not know."""
    vocab = {"<s>": 0, "</s>": 1} | {f"<0x{byte:02X}>": 2 + byte for byte in range(256)}
    for token in ["▁", *"abcdefghijklmnopqrstuvwxyz<>;'", "▁a", "▁b", "▁th", "re", "▁three", "▁done"]:
        vocab.setdefault(token, len(vocab))
    merges = [("▁", "a"), ("▁", "b"), ("r", "e")]
    backend = Tokenizer(models.BPE(vocab, merges, byte_fallback=True, unk_token=None))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")


TOKENIZERS = {"byte-level": tiny_tokenizer, "sentencepiece": sentencepiece_tokenizer}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_joined_pieces_equal_one_decode_and_no_frame_shows_half_a_character(kind):
    tokenizer = TOKENIZERS[kind]()
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    stream = TextStream(Decoder(tokenizer))
    pieces = []
    for token in ids:
        pieces.append(stream.push(token))
        assert HALF not in stream.text
    pieces.append(stream.flush())
    expected = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert "".join(pieces) == stream.text == expected == TEXT


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_run_cut_inside_a_character_flushes_to_what_one_decode_gives(kind):
    tokenizer = TOKENIZERS[kind]()
    ids = tokenizer.encode("ab👩", add_special_tokens=False)
    for end in range(1, len(ids) + 1):
        stream = TextStream(Decoder(tokenizer))
        text = "".join(stream.push(token) for token in ids[:end]) + stream.flush()
        assert text == tokenizer.decode(ids[:end], clean_up_tokenization_spaces=False)


def test_special_tokens_are_no_text_but_have_a_label():
    tokenizer = tiny_tokenizer()
    decoder = Decoder(tokenizer)
    stream = TextStream(decoder)
    assert stream.push(tokenizer.eos_token_id) == ""
    assert decoder.label(tokenizer.eos_token_id) == "<|im_end|>"


def test_labels_show_half_characters_as_bytes_and_keep_spaces():
    byte_level = tiny_tokenizer()
    labels = [Decoder(byte_level).label(token) for token in byte_level.encode("👩", add_special_tokens=False)]
    assert labels == ["⟨F0⟩", "⟨9F⟩", "⟨91⟩", "⟨A9⟩"]
    pieces = sentencepiece_tokenizer()
    assert [Decoder(pieces).label(t) for t in pieces.encode(" a b", add_special_tokens=False)][-1] == " b"
    assert Decoder(pieces).label(pieces.convert_tokens_to_ids("<0xF0>")) == "⟨F0⟩"


@pytest.mark.parametrize("stop", ["x", "done", "漢字", "${x} \\", "</think>\n\n"])
def test_the_text_ends_with_the_first_stop_string(stop):
    tokenizer = tiny_tokenizer()
    stream = TextStream(Decoder(tokenizer), ("never there", stop))
    for token in tokenizer.encode(TEXT, add_special_tokens=False):
        stream.push(token)
        if stream.stopped:
            break
    assert stream.stopped
    assert stream.text == TEXT[: TEXT.index(stop) + len(stop)]
