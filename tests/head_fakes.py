"""Small heads fitted to a tiny model's own text, and what every proposer that uses the target is held to."""

from collections import Counter

import torch
from fakes import TINY_VOCAB, ids_of, lean, rounds_of, run

from playground.heads import EagleHead, ExitAdapters, MedusaHeads, output_rows
from playground.metrics import RunMetrics
from playground.proposers import Proposer
from playground.sampling import draw
from playground.verify import residual_of

PROMPT = [5, 17, 42, 5, 17, 42, 5, 17]
GAMMAS = (1, 2, 4, 7)
LENGTH = 60


def plain(model, prompt=PROMPT, length=LENGTH, limit=512):
    """The target's greedy text after the prompt."""
    return ids_of(run(lean(model, limit=limit), Proposer(), prompt, max_new_tokens=length))


def hidden_of(model, ids, layers):
    """layer → (n, hidden): the target's hidden states of a text, in one fresh pass."""
    lm = lean(model)
    lm.taps = frozenset(layers)
    lm.extend(ids)
    return lm.hidden


def draft_ids_of(text, vocab=TINY_VOCAB):
    """Half of all ids, and nearly all of those in the text."""
    return torch.tensor(sorted({*range(0, vocab, 2), *(token for token in text if token % 5)}))


def medusa_heads(model, text, num_heads=4, layers=(1, 2)):
    """Heads that know the text: each the best linear guess on it, disturbed a little."""
    torch.manual_seed(1)
    ids = draft_ids_of(text, model.config.vocab_size)
    heads = MedusaHeads(model.config.hidden_size, len(ids), num_heads, 16, layers)
    heads.draft_ids.copy_(ids)
    last = model.config.num_hidden_layers
    hidden = hidden_of(model, text, {*layers, last})
    before = {layer: hidden[layer][:-1] for layer in layers}
    embeds = model.get_input_embeddings().weight[torch.tensor(text[1:])]
    heads.start_from(model.model.norm.weight, before, hidden[last][:-1], embeds)
    torch.nn.init.normal_(heads.fall, std=0.02)
    return bound(heads, model)


def eagle_head(model, text, layers=(1, 2)):
    """A head started from the target's last layer, on the text."""
    torch.manual_seed(1)
    head = EagleHead.from_target(model, draft_ids_of(text, model.config.vocab_size), layers)
    last = model.config.num_hidden_layers
    hidden = hidden_of(model, text, {*layers, last - 1, last})
    embeds = model.get_input_embeddings().weight[torch.tensor(text[1:])]
    before = {layer: hidden[layer][:-1] for layer in layers}
    head.start_from(embeds, before, hidden[last - 1][1:], model.model.norm.weight)
    return bound(head, model)


def exit_adapters(model, text, layers):
    """Adapters that are the best linear guess on the text."""
    torch.manual_seed(1)
    ids, last = draft_ids_of(text, model.config.vocab_size), model.config.num_hidden_layers
    adapters = ExitAdapters(model.config.hidden_size, len(ids), layers, inner_size=16)
    adapters.draft_ids.copy_(ids)
    hidden = hidden_of(model, text, {*layers, last})
    for layer in layers:
        adapters.adapters[str(layer)].start_from(model.model.norm.weight, hidden[layer], hidden[last])
    return bound(adapters, model)


def bound(head, model):
    """The head with the target's output rows, ready to draft."""
    head.bind(output_rows(model, head.draft_ids))
    return head.eval().requires_grad_(False)


def metrics_of(events):
    metrics = RunMetrics()
    for event in events:
        metrics.update(event)
    return metrics


def branches(events):
    """Whether any round drafted a tree that is no chain."""
    return any(node.parent != i - 1 for proposed, _ in rounds_of(events) for i, node in enumerate(proposed.nodes))


def spy(proposer, before=None, after=None):
    """Call `before(context)` and `after(context, sampling, rng_state, proposal)` around each draft."""
    propose = proposer.propose

    def watched(context, gamma, sampling, rng):
        if before:
            before(context)
        state = rng.get_state()
        proposal = propose(context, gamma, sampling, rng)
        if after:
            after(list(context), sampling, state, proposal)
        return proposal

    proposer.propose = watched
    return proposer


def check_cache(model, target, proposer, **options):
    """Before every draft, the target's cache goes on as a fresh pass over the context does."""
    seen = []

    def check(context):
        assert target.ids == context[:-1]
        logits = target.extend([context[-1], 1, 2])
        target.rollback(len(context) - 1)
        with torch.inference_mode():
            expected = model(torch.tensor([[*context, 1, 2]])).logits[0, -3:]
        seen.append(float((logits - expected).abs().max() / expected.abs().max()))

    events = run(target, spy(proposer, check), PROMPT, max_new_tokens=50, **options)
    del proposer.propose
    assert max(seen) < 1e-4
    return metrics_of(events)


def check_budget_and_end(model, wrap, make, gamma):
    """`make(target)` stops where plain decoding stops, wherever in its draft that falls."""
    truth = plain(model)
    for limit in (1, 2, 3, 7, 12):
        target = wrap(model)
        events = run(target, make(target), PROMPT, gamma=gamma, max_new_tokens=limit)
        assert ids_of(events) == truth[:limit]
    for place in range(4, 12):
        target = wrap(model)
        at = truth.index(truth[place])
        events = run(target, make(target), PROMPT, end_ids=(truth[at],), gamma=gamma, max_new_tokens=40)
        assert ids_of(events) == truth[: at + 1]
        assert target.ids == [*PROMPT, *truth[: at + 1]][:-1]
    prompt = (PROMPT * 8)[:60]
    expected = ids_of(run(wrap(model, limit=64), Proposer(), prompt, max_new_tokens=20))
    target = wrap(model, limit=64)
    assert ids_of(run(target, make(target), prompt, gamma=gamma, max_new_tokens=20)) == expected


def check_drawn(proposal, state, p_probs):
    """The rows are what the tokens were drawn from, and give the target's distribution after verification.

    Args:
        state: of the generator before the draft.
        p_probs: (n, vocab) any distributions of the target.
    """
    rng = torch.Generator()
    rng.set_state(state)
    assert [draw(row, rng) for row in proposal.probs] == proposal.ids
    torch.testing.assert_close(proposal.probs.sum(-1), torch.ones(len(proposal.ids)))
    for p, q in zip(p_probs, proposal.probs, strict=True):
        kept = torch.minimum(p, q)
        together = kept + (1 - kept.sum()) * residual_of(p, q, 0)
        torch.testing.assert_close(together, p, rtol=1e-5, atol=1e-6)


def check_frequencies(model, target, proposer, num_runs=500, **options):
    """End to end: the frequencies of the second and third token are those of plain sampling, to 4.5 deviations."""
    with torch.inference_mode():
        counts: Counter[tuple[int, ...]] = Counter()
        for seed in range(num_runs):
            settings = {"gamma": 3, "max_new_tokens": 3, "temperature": 1.0, "seed": seed} | options
            counts[tuple(ids_of(run(target, proposer, [3, 1, 4, 1, 5], **settings)))] += 1
        first = torch.softmax(model(torch.tensor([[3, 1, 4, 1, 5]])).logits[0, -1], -1)
        vocab = len(first)
        texts = torch.tensor([[3, 1, 4, 1, 5, a, b] for a in range(vocab) for b in range(vocab)])
        logits = model(texts).logits[:, -2:].reshape(vocab, vocab, 2, vocab)
    second = first[:, None] * torch.softmax(logits[:, 0, 0], -1)  # (a, b)
    third = (second[:, :, None] * torch.softmax(logits[:, :, 1], -1)).sum((0, 1))  # (c,)
    _within(Counter({ids[:2]: 0 for ids in counts}), counts, second, num_runs)
    seen = torch.zeros(vocab)
    for ids, count in counts.items():
        seen[ids[2]] += count
    deviation = (third * (1 - third) / num_runs).sqrt()
    assert ((seen / num_runs - third).abs() <= 4.5 * deviation + 1e-3).all()


def _within(pairs, counts, expected, num_runs):
    for ids, count in counts.items():
        pairs[ids[:2]] += count
    seen = torch.zeros_like(expected)
    for (a, b), count in pairs.items():
        seen[a, b] = count / num_runs
    deviation = (expected * (1 - expected) / num_runs).sqrt()
    assert ((seen - expected).abs() <= 4.5 * deviation + 4 / num_runs).all()
