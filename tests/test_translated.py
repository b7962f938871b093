"""A draft with another tokenizer: text stays text, ids stay the target's, the output stays exact."""

import pytest
import torch
from fakes import ids_of, lean, rounds_of, run, tiny_llama
from tiny_checkpoints import OTHER_SENTENCES, SENTENCES, tiny_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from playground.gamma import ConfidencePolicy
from playground.proposers import AdaptiveProposer, Proposer, TranslatedProposer

MIXED = [*SENTENCES, *OTHER_SENTENCES, "Emoji 👩‍🚀 and 漢字, é and e\u0301."]


def spaced_tokenizer(sentences):
    """A SentencePiece-like BPE: ▁ for spaces, bytes as a fallback, a start token of its own."""
    backend = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", "<s>", "</s>", *fallback])
    backend.train_from_iterator(sentences, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


TOKENIZERS = {
    "bytes": tiny_tokenizer(SENTENCES),
    "other bytes": tiny_tokenizer(OTHER_SENTENCES, special=("<s>", "<|im_end|>")),
    "spaced": spaced_tokenizer(MIXED),
}
PAIRS = [("bytes", "other bytes"), ("other bytes", "bytes"), ("bytes", "spaced"), ("spaced", "bytes")]
TEXT = "The quick brown fox guesses 345 drafts. Zwölf Boxkämpfer jagen Viktor, def add(a): the lazy dog "


def build(target_name, draft_name, seed=3):
    """A target model and a draft that speaks another tokenizer's ids."""
    mine, other = TOKENIZERS[target_name], TOKENIZERS[draft_name]
    target = tiny_llama(seed=0, vocab=len(mine))
    draft = lean(tiny_llama(seed=seed, vocab=len(other)))
    return target, TranslatedProposer(draft, (other.eos_token_id,), other, mine, len(mine)), mine


def text_of(tokenizer, ids):
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


class Writing:
    """Stands for the draft model: continues any text with what a script says, in the draft's tokens."""

    def __init__(self, tokenizer, full):
        self.tokenizer, self.full, self.stops_after = tokenizer, full, None
        self.sources = []

    def reset(self):
        self.sources = []

    def distrust(self, length):
        pass

    def propose(self, source, gamma, sampling, rng):
        from playground.proposers import Proposal

        self.sources.append(list(source))
        text = text_of(self.tokenizer, [token for token in source if token != self.tokenizer.bos_token_id])
        rest = self.full[len(text) :] if self.full.startswith(text) else ""
        ids = self.tokenizer("?" + rest, add_special_tokens=False)["input_ids"]  # "?" merges with nothing, and
        while ids and "?" in text_of(self.tokenizer, ids):  # keeps a space from being put before the rest
            ids = ids[1:]
        return Proposal(ids[:gamma])


@pytest.mark.parametrize("gamma", [1, 2, 4, 7])
@pytest.mark.parametrize("pair", PAIRS, ids=" from ".join)
def test_greedy_output_equals_plain_decoding(pair, gamma):
    target, proposer, tokenizer = build(*pair)
    prompt = tokenizer(TEXT)["input_ids"]
    expected = ids_of(run(lean(target), Proposer(), prompt, tokenizer=tokenizer, max_new_tokens=40))
    for _ in range(2):
        events = run(lean(target), proposer, prompt, tokenizer=tokenizer, gamma=gamma, max_new_tokens=40)
        assert ids_of(events) == expected
    assert all(len(proposed.nodes) <= gamma for proposed, _ in rounds_of(events))


@pytest.mark.parametrize("pair", PAIRS, ids=" from ".join)
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_sampling_runs_and_drafts_are_certain(pair, temperature):
    target, proposer, tokenizer = build(*pair)
    prompt = tokenizer(TEXT)["input_ids"]
    events = run(lean(target), proposer, prompt, tokenizer=tokenizer, gamma=4, temperature=temperature)
    assert all(node.q == 1.0 for proposed, _ in rounds_of(events) for node in proposed.nodes)


@pytest.mark.parametrize("pair", PAIRS, ids=" from ".join)
@pytest.mark.parametrize("gamma", [1, 3, 8])
def test_a_draft_that_writes_what_comes_is_accepted_at_every_position(pair, gamma):
    """Growing the context by the text's own tokens one to three at a time, the draft always continues it."""
    mine, other = TOKENIZERS[pair[0]], TOKENIZERS[pair[1]]
    _, proposer, _ = build(*pair)
    full = TEXT * 3
    proposer._draft = Writing(other, text_of(mine, mine(full, add_special_tokens=False)["input_ids"]))
    ids = mine(full, add_special_tokens=False)["input_ids"]
    hits = tries = 0
    at = 5
    while at < len(ids) - 10:
        drafted = proposer.propose(ids[:at], gamma, None, None).ids
        tries += gamma
        hits += sum(a == b for a, b in zip(drafted, ids[at : at + gamma], strict=False))
        assert text_of(mine, ids[:at] + drafted).startswith(text_of(mine, ids[:at]))
        at += 1 + at % 3
    assert hits > 0.75 * tries


@pytest.mark.parametrize("pair", PAIRS, ids=" from ".join)
def test_the_source_is_the_contexts_text_and_only_its_tail_is_encoded_again(pair):
    mine, other = TOKENIZERS[pair[0]], TOKENIZERS[pair[1]]
    _, proposer, _ = build(*pair)
    ids = mine(TEXT * 20, add_special_tokens=False)["input_ids"]
    lengths = []

    class Measured:
        eos_token_id, bos_token_id = other.eos_token_id, other.bos_token_id

        def __call__(self, text, **options):
            lengths.append(len(text))
            return other(text, **options)

        def decode(self, *arguments, **options):
            return other.decode(*arguments, **options)

    proposer._from = Measured()
    for at in range(5, len(ids), 2):
        proposer._read(ids[:at])
    assert text_of(other, proposer._source[len(proposer._begin) :]).strip() == text_of(mine, ids[:at]).strip()
    assert max(lengths) < 600
    assert sum(lengths) / len(lengths) < 120


def test_nothing_is_drafted_inside_a_character():
    tokenizer = TOKENIZERS["bytes"]
    _, proposer, _ = build("bytes", "other bytes")
    ids = tokenizer("fox 👩", add_special_tokens=False)["input_ids"]
    assert proposer.propose(ids[:-1], 4, None, None).ids == []
    assert proposer.propose(ids, 4, None, torch.Generator()).ids


def test_an_end_written_by_the_draft_becomes_the_targets_end():
    _, proposer, tokenizer = build("bytes", "other bytes")
    other = TOKENIZERS["other bytes"]

    class Ends(Writing):
        def propose(self, source, gamma, sampling, rng):
            drafted = super().propose(source, 2, sampling, rng)
            drafted.ids.append(other.eos_token_id)
            return drafted

    proposer._draft = Ends(other, "The quick brown fox")
    drafted = proposer.propose(tokenizer("The quick", add_special_tokens=False)["input_ids"], 12, None, None).ids
    assert drafted[-1] == tokenizer.eos_token_id
    assert tokenizer.eos_token_id not in drafted[:-1]


def test_no_id_beyond_the_target_is_drafted():
    mine, other = TOKENIZERS["bytes"], TOKENIZERS["other bytes"]
    draft = lean(tiny_llama(seed=3, vocab=len(other)))
    proposer = TranslatedProposer(draft, (), other, mine, 200)
    for start in range(5):
        context = mine(TEXT, add_special_tokens=False)["input_ids"][start:]
        assert all(token < 200 for token in proposer.propose(context, 8, None, None).ids)
        proposer.reset()


def test_a_confidence_policy_ends_the_drafts_writing():
    target, proposer, tokenizer = build("bytes", "other bytes")
    adaptive = AdaptiveProposer(proposer, ConfidencePolicy(1.0))
    prompt = tokenizer(TEXT)["input_ids"]
    events = run(lean(target), adaptive, prompt, tokenizer=tokenizer, gamma=7, max_new_tokens=30)
    plain = run(lean(target), Proposer(), prompt, tokenizer=tokenizer, max_new_tokens=30)
    assert ids_of(events) == ids_of(plain)
    assert proposer.stops_after(0.5)


def test_a_prompt_too_long_for_the_draft_is_refused_in_words():
    mine, other = TOKENIZERS["bytes"], TOKENIZERS["other bytes"]
    draft = lean(tiny_llama(seed=3, vocab=len(other)), limit=16)
    proposer = TranslatedProposer(draft, (), other, mine, len(mine))
    with pytest.raises(ValueError, match="at most 16"):
        run(lean(tiny_llama(vocab=len(mine))), proposer, mine(TEXT)["input_ids"], tokenizer=mine)
