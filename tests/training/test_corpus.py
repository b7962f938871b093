"""The training text: written by the target, read from files, never touching a held-out prompt."""

import gzip
import json
import random

import pytest
import torch
from tiny_training import writer_of

from playground.lm import LeanLM
from playground.lm.batched import BatchedLM
from playground.training.corpus import Corpus
from playground.training.held_out import HELD_OUT, HeldOut
from playground.training.seeds import Seed, draw_seed
from playground.training.writer import Conversation


def test_many_texts_at_once_get_the_logits_of_one_at_a_time(target):
    texts = [[5, 9, 30, 7], [8, 2, 61, 4]]
    many = BatchedLM(target.weights, 2, 8)
    for column in zip(*texts, strict=True):
        logits = many.step(torch.tensor(column))
    for row, ids in enumerate(texts):
        alone = LeanLM(target.weights, target.num_ids, 64).extend(ids)[-1]
        torch.testing.assert_close(logits[row], alone, rtol=1e-4, atol=1e-4)


def test_a_slot_that_starts_anew_forgets_the_text_before(target):
    many = BatchedLM(target.weights, 2, 8)
    for column in ((5, 8), (9, 2), (30, 61)):
        many.step(torch.tensor(column))
    many.clear(0)
    logits = many.step(torch.tensor([11, 4]))
    alone = LeanLM(target.weights, target.num_ids, 64).extend([11])[-1]
    torch.testing.assert_close(logits[0], alone, rtol=1e-4, atol=1e-4)


def test_a_greedy_answer_is_the_target_s_own(target):
    writer = writer_of(target, temperatures=(0.0,), draw=lambda rng: Seed("The quick brown", complete=True))
    text = next(writer.write())
    lm, ids = LeanLM(target.weights, target.num_ids, 64), text.ids[: text.answer_start]
    while len(ids) < len(text.ids):
        lm.reset()
        ids.append(int(lm.extend(ids)[-1].argmax()))
    assert ids == text.ids


def test_conversations_have_the_template_around_the_user_s_turn(target, corpus):
    for text in corpus.texts:
        assert target.tokenizer.decode(text.ids[: text.answer_start]).endswith("<|im_start|>assistant\n")
        assert len(text.ids) <= 64


def test_a_held_out_prompt_never_enters_the_corpus(target, tmp_path):
    corpus = Corpus(tmp_path / "corpus.jsonl", target.tokenizer)
    prompt = HELD_OUT["story"][0]
    ids = target.tokenizer(f"Please do this now. {prompt}")["input_ids"]
    assert not corpus.add(Conversation(ids, 0))
    assert not corpus.add(Conversation(ids, 0, user=prompt.upper()))
    assert corpus.add(Conversation(target.tokenizer("The quick brown fox jumps over the lazy dog again.")["input_ids"]))
    assert len(corpus.texts) == 1


def test_no_seed_touches_a_held_out_prompt():
    rng, held_out = random.Random(0), HeldOut()
    assert not [seed.text for seed in (draw_seed(rng) for _ in range(2000)) if held_out.touches(seed.text)]


def test_every_task_has_five_held_out_prompts():
    assert all(len(prompts) == 5 for prompts in HELD_OUT.values()) and len(HELD_OUT) >= 6


def test_a_file_is_read_once_and_survives_a_restart(target, tmp_path):
    ids = target.tokenizer("<|im_start|>user\nhello there fox<|im_end|>\n<|im_start|>assistant\nA dog.<|im_end|>")
    lines = [{"ids": ids["input_ids"]}, {"messages": [{"role": "user", "content": "The quick brown fox jumps"}]}]
    with gzip.open(tmp_path / "old.jsonl.gz", "wt") as stream:
        stream.write("\n".join(json.dumps(line) for line in lines))
    (tmp_path / "own.txt").write_text("The lazy dog keeps what it likes. " * 40)
    corpus = Corpus(tmp_path / "corpus.jsonl", target.tokenizer, max_tokens=64)
    assert corpus.read_file(tmp_path / "old.jsonl.gz") > 0
    assert corpus.texts[0].answer_start > 0
    assert corpus.read_file(tmp_path / "old.jsonl.gz") == 0
    assert 0 < corpus.read_file(tmp_path / "own.txt", max_new_tokens=100) < 200
    with (tmp_path / "corpus.jsonl").open("a") as stream:
        stream.write('{"ids": [1, 2')  # a run killed while writing
    again = Corpus(tmp_path / "corpus.jsonl", target.tokenizer, max_tokens=64)
    assert [text.ids for text in again.texts] == [text.ids for text in corpus.texts]
    assert again.read_file(tmp_path / "own.txt") == 0


def test_a_file_of_another_tokenizer_is_refused(target, tmp_path):
    (tmp_path / "other.jsonl").write_text(json.dumps({"ids": [99_999] * 20}))
    with pytest.raises(ValueError, match="another tokenizer"):
        Corpus(tmp_path / "corpus.jsonl", target.tokenizer).read_file(tmp_path / "other.jsonl")


def test_an_exported_corpus_is_read_by_another(target, corpus, tmp_path):
    corpus.export(tmp_path / "shipped.jsonl.gz")
    other = Corpus(tmp_path / "corpus.jsonl", target.tokenizer)
    assert other.read_file(tmp_path / "shipped.jsonl.gz") == corpus.num_tokens
    assert [text.ids for text in other.texts] == [text.ids for text in corpus.texts]
