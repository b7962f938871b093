"""Stand-ins for tests: a model that is a table, a proposer that follows a script, a tokenizer of letters.

They keep the real contracts (CachedLM, Proposer, tokenizer) so that what is tested is the engine.
"""

from collections.abc import Sequence

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from playground.config import SamplingConfig, SpecConfig
from playground.engine import generate
from playground.events import Finished, Proposed, Verified
from playground.lm import CachedLM, LeanLM, LeanWeights, TransformersLM
from playground.proposers import DraftModelProposer, NgramProposer, Proposal, Proposer
from playground.text import Decoder

TINY_VOCAB = 96


class LetterTokenizer:
    """Token i is the i-th of a list of strings; those in `special` are left out of decoded text."""

    def __init__(self, texts: Sequence[str] | None = None, special: Sequence[int] = ()):
        self.texts = list(texts or (chr(33 + i) for i in range(TINY_VOCAB)))
        self.all_special_ids = list(special)

    def decode(self, ids, skip_special_tokens=False, clean_up_tokenization_spaces=False):
        return "".join(self.texts[i] for i in ids if not (skip_special_tokens and i in self.all_special_ids))

    def convert_ids_to_tokens(self, token_id):
        return self.texts[token_id]


class TableLM(CachedLM):
    """Next-token probabilities are row `last token` of a table: exact distributions to test against."""

    def __init__(self, table: Sequence[Sequence[float]], context_limit: int = 4096):
        super().__init__(len(table[0]), context_limit, torch.device("cpu"))
        self.logits = torch.tensor(table, dtype=torch.float32).clamp(min=1e-30).log()
        self.passes: list[int] = []

    def _forward(self, ids, parents, logits):
        self.passes.append(len(ids))
        return self.logits[torch.tensor(ids)]

    def _truncate(self, length):
        pass

    def _move(self, start, indices):
        pass


class ScriptProposer(Proposer):
    """Proposes what `script(context, gamma)` returns; a list is proposed in full every round."""

    name = "script"

    def __init__(self, script, probs=None):
        self.script, self.probs = script, probs
        self.asked: list[int] = []

    def propose(self, context, gamma, sampling, rng):
        self.asked.append(gamma)
        ids = self.script(context, gamma) if callable(self.script) else list(self.script)[:gamma]
        return Proposal(ids, None if self.probs is None else self.probs[: len(ids)])


def continuation(output: Sequence[int], prompt_length: int, wrong_at: Sequence[int] = ()):
    """A script that proposes the true continuation `output`, with a wrong token at the given positions."""

    def script(context, gamma):
        start = len(context) - prompt_length
        ids = list(output[start : start + gamma])
        return [(i + 1) % TINY_VOCAB if start + j in wrong_at else i for j, i in enumerate(ids)]

    return script


def tiny_llama(seed: int = 0, vocab: int = TINY_VOCAB, **settings) -> LlamaForCausalLM:
    """A random 2-layer Llama in float32, peaked enough that greedy text varies."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(
        **sizes | {"num_key_value_heads": 2, "max_position_embeddings": 512, "initializer_range": 0.3} | settings,
        vocab_size=vocab,
    )
    return LlamaForCausalLM(config).eval().requires_grad_(False)


def lean(model, num_tokens: int | None = None, limit: int = 512) -> LeanLM:
    """The model behind the lean decoder."""
    return LeanLM(LeanWeights(model, "float32"), num_tokens or model.config.vocab_size, limit)


def static(model, num_tokens: int | None = None, limit: int = 512) -> LeanLM:
    """The lean decoder with passes of fixed shape, as they are replayed on a GPU."""
    return LeanLM(LeanWeights(model, "float32"), num_tokens or model.config.vocab_size, limit, static=True)


def generic(model, num_tokens: int | None = None, limit: int = 512) -> TransformersLM:
    """The model behind transformers' forward pass."""
    return TransformersLM(model, num_tokens or model.config.vocab_size, limit)


def run(target, proposer, context, end_ids=(), tokenizer=None, **options):
    """Run the engine to its end and return all events."""
    sampling = SamplingConfig(**{k: options.pop(k) for k in ("temperature", "top_k", "top_p", "seed") if k in options})
    config = SpecConfig(sampling=sampling, **options)
    decoder = Decoder(tokenizer or LetterTokenizer())
    return list(generate(target, proposer, context, config, end_ids, decoder))


def finish(events) -> Finished:
    """The last event of a run."""
    assert isinstance(events[-1], Finished)
    return events[-1]


def ids_of(events) -> list[int]:
    """The output's token ids, as the rounds committed them (checked against Finished)."""
    committed = [token.id for event in events if isinstance(event, Verified) for token in event.committed]
    assert committed == list(finish(events).token_ids)
    return committed


def rounds_of(events) -> list[tuple[Proposed, Verified]]:
    """The rounds of a run as (Proposed, Verified) pairs."""
    proposed = [event for event in events if isinstance(event, Proposed)]
    verified = [event for event in events if isinstance(event, Verified)]
    return list(zip(proposed, verified, strict=True))


def every_proposer(model, wrap=lean) -> dict[str, Proposer]:
    """One of each proposer for a tiny target, always with a "same" and a "random" draft."""
    return {
        "none": Proposer(),
        "ngram": NgramProposer(1, 3),
        "same": DraftModelProposer(wrap(model), (), model.config.vocab_size),
        "random": DraftModelProposer(wrap(tiny_llama(seed=7)), (), model.config.vocab_size),
        "wrong": ScriptProposer(lambda context, gamma: [context[-1]] * gamma),
    }
