"""Verification of trees: every outcome of small worlds counted exactly, then the edges and a frequency."""

from itertools import product

import pytest
import torch

from playground import verify
from playground.sampling import draw
from playground.verify import verify_chain, verify_tree

SHAPES = {
    "two siblings": [-1, -1],
    "three siblings": [-1, -1, -1],
    "fork after one": [-1, 0, 0],
    "one branch goes on": [-1, -1, 0],
    "both branches go on": [-1, -1, 0, 1],
    "siblings apart": [-1, 0, -1, 0],
    "fork, fork": [-1, -1, 0, 0, 1],
    "deep": [-1, 0, 1, -1],
}


def world(vocab, seed, zeros=0.0):
    """p and q as tables: row = last token. Some entries are 0."""
    generator = torch.Generator().manual_seed(seed)
    tables = torch.rand(2, vocab, vocab, generator=generator, dtype=torch.float64) ** 2
    tables[torch.rand(tables.shape, generator=generator) < zeros] = 0
    tables[:, :, 0] += 0.05
    return tables / tables.sum(-1, keepdim=True)


def drafted_from(q_table, ids, parents, law):
    """The distribution each token was drawn from, given what was drawn before it: (n, vocab)."""
    rows = []
    for node, parent in enumerate(parents):
        row = q_table[0 if parent < 0 else ids[parent]].clone()
        if law == "without replacement":
            row[[ids[other] for other in range(node) if parents[other] == parent]] = 0
        if row.sum() == 0 or (law == "mixed" and node % 2):
            row = torch.eye(len(row), dtype=row.dtype)[1]  # nothing left, or not drawn at all: token 1 for certain
        rows.append(row / row.sum())
    return torch.stack(rows)


def outcomes(p_probs, ids, parents, q_probs, monkeypatch):
    """Every path verification can take: (chance, accepted ids, distribution of the final token)."""
    found = {}
    for forced in product((0.0, 1 - 1e-12), repeat=len(ids)):  # accept whenever possible, refuse whenever possible
        real = torch.rand

        def rand(*size, forced=forced, real=real, **options):
            return torch.tensor(forced, dtype=torch.float64) if options.get("dtype") is None else real(*size, **options)

        with monkeypatch.context() as patch:
            patch.setattr(torch, "rand", rand)
            verdict = verify_tree(p_probs, ids, parents, q_probs, torch.Generator())
        chance = 1.0
        for item in verdict.judged:
            accept = min(1.0, item.p / item.q) if item.q > 0 else float(item.p > 0)
            chance *= accept if item.accepted else 1 - accept
        last = p_probs[verdict.path[-1] + 1 if verdict.path else 0]
        final = verdict.residual if verdict.final_kind == "residual" else last
        key = tuple((item.index, item.accepted) for item in verdict.judged)
        found[key] = chance, [ids[node] for node in verdict.path], final
    assert sum(chance for chance, _, _ in found.values()) == pytest.approx(1, abs=1e-9)
    return found.values()


def joint(p_table, start, length):
    """The target's distribution over sequences of `length` tokens after token `start`."""
    out = torch.ones(1, dtype=torch.float64)
    lasts = [start]
    for _ in range(length):
        out = (out[:, None] * p_table[lasts]).flatten()
        lasts = list(range(len(p_table))) * len(lasts)
    return out


def committed_law(p_table, ids, parents, q_probs, length, monkeypatch):
    """Distribution over the next `length` tokens when a round is verified and the target goes on alone."""
    vocab = len(p_table)
    rows = p_table[[0, *ids]]
    total = torch.zeros((vocab,) * length, dtype=torch.float64)
    for chance, path, final in outcomes(rows, ids, parents, q_probs, monkeypatch):
        for token in range(vocab):
            rest = joint(p_table, token, length - len(path) - 1)
            total[(*path, token)] += chance * final[token] * rest.reshape((vocab,) * (length - len(path) - 1))
    return total.flatten()


@pytest.mark.parametrize("law", ["independent", "without replacement", "mixed"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("vocab", "zeros"), [(2, 0.0), (3, 0.0), (3, 0.3)])
def test_drawn_trees_give_exactly_the_targets_joint_distribution(vocab, zeros, shape, law, monkeypatch):
    """Summed over everything that can be drafted, accepted and refused; duplicates of siblings included."""
    parents = SHAPES[shape]
    p_table, q_table = world(vocab, 3 * vocab + len(parents), zeros)
    total = 0
    for ids in map(list, product(range(vocab), repeat=len(parents))):
        q_probs = drafted_from(q_table, ids, parents, law)
        chance = float(torch.stack([q_probs[i, token] for i, token in enumerate(ids)]).prod())
        if chance > 0:
            total = total + chance * committed_law(p_table, ids, parents, q_probs, 4, monkeypatch)
    assert torch.allclose(total, joint(p_table, 0, 4), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("vocab", [2, 3])
def test_every_certain_tree_gives_exactly_the_targets_joint_distribution(vocab, shape, monkeypatch):
    """Deterministic siblings, equal ones among them: each single tree is exact by itself."""
    parents = SHAPES[shape]
    p_table, _ = world(vocab, 17, zeros=0.2)
    choices = list(product(range(vocab), repeat=len(parents)))
    for ids in choices[:: max(1, len(choices) // 24)]:
        found = committed_law(p_table, list(ids), parents, None, 4, monkeypatch)
        assert torch.allclose(found, joint(p_table, 0, 4), atol=1e-9)


def test_siblings_that_cover_the_vocabulary_always_have_one_accepted(monkeypatch):
    p_table, _ = world(3, 5)
    for chance, path, _ in outcomes(p_table[[0, 0, 1, 2]], [0, 1, 2], [-1, -1, -1], None, monkeypatch):
        assert path or chance == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("certain", [False, True])
@pytest.mark.parametrize("count", range(5))
def test_a_chain_is_judged_as_by_the_chain_rule_with_the_same_draws(count, certain):
    generator = torch.Generator().manual_seed(count)
    p = torch.softmax(torch.randn(count + 1, 12, generator=generator), -1)
    q = torch.softmax(torch.randn(count, 12, generator=generator), -1)
    for seed in range(60):
        ids = [draw(row, generator) for row in q]
        q_probs, chain = None if certain else q, list(range(-1, count - 1))
        found = []
        for judge in (verify_chain, verify_tree, verify_tree, verify._walk):
            rng = torch.Generator().manual_seed(seed)
            shape = {verify_chain: (), verify_tree: (chain if seed % 2 else None,), verify._walk: (chain,)}[judge]
            verdict = judge(p, ids, *shape, q_probs, rng)
            decided = verdict.path, verdict.final_id, [item.accepted for item in verdict.judged]
            found.append((*decided, verdict.final_kind if count else "plain", torch.rand(1, generator=rng).item()))
        assert all(item == found[0] for item in found)


def test_after_a_refusal_a_sibling_is_held_against_the_residual():
    """p = (.5, .3, .2), both drawn from q = (.2, .6, .2): token 1 refused leaves (1, 0, 0)."""
    p = torch.tensor([[0.5, 0.3, 0.2]]).repeat(3, 1)
    q = torch.tensor([[0.2, 0.6, 0.2]]).repeat(2, 1)
    for seed in range(40):
        verdict = verify_tree(p, [1, 0], [-1, -1], q, torch.Generator().manual_seed(seed))
        if not verdict.judged[0].accepted:
            assert verdict.judged[1].p == pytest.approx(1.0)
            assert verdict.judged[1].overlap == pytest.approx(0.2)
            assert verdict.path == [1]
            return
    raise AssertionError("never refused")


def test_an_exhausted_residual_falls_back_to_what_it_was_left_of(monkeypatch):
    """Rounding can refuse with no mass left: the next sibling and the final draw still have the target."""
    p = torch.tensor([[0.25, 0.75]], dtype=torch.float64).repeat(3, 1)

    real = torch.rand

    def rand(*size, **options):  # u = 1, which a generator never gives, refuses even p = q
        return torch.ones(*size, dtype=torch.float64) if "dtype" not in options else real(*size, **options)

    monkeypatch.setattr(torch, "rand", rand)
    verdict = verify_tree(p, [0, 0], [-1, -1], p[:2], torch.Generator())
    assert [item.p for item in verdict.judged] == [0.25, 0.25]
    assert verdict.final_kind == "residual"
    assert verdict.residual.tolist() == [0.25, 0.75]


def test_greedy_follows_the_one_branch_that_agrees_wherever_it_stands():
    one_hot = torch.eye(5)
    p = one_hot[[2, 0, 0, 4, 0, 1]]  # after the context 2, after node 2 (token 2) 4, after node 4 (token 4) 1
    verdict = verify_tree(p, [0, 1, 2, 3, 4], [-1, -1, -1, 2, 2], None, torch.Generator().manual_seed(0))
    assert verdict.path == [2, 4]
    assert (verdict.final_id, verdict.final_kind) == (1, "bonus")
    assert [item.index for item in verdict.judged] == [0, 1, 2, 3, 4]


def test_frequencies_of_drawn_siblings_are_those_of_the_target():
    p, q = torch.tensor([0.5, 0.3, 0.15, 0.05]), torch.tensor([0.1, 0.2, 0.3, 0.4])
    generator, counts, num_draws = torch.Generator().manual_seed(0), torch.zeros(4), 6000
    rows = p.repeat(3, 1)
    for _ in range(num_draws):
        first = draw(q, generator)
        rest = q.clone()
        rest[first] = 0
        rest /= rest.sum()
        ids = [first, draw(rest, generator)]
        verdict = verify_tree(rows, ids, [-1, -1], torch.stack((q, rest)), generator)
        counts[ids[verdict.path[0]] if verdict.path else verdict.final_id] += 1
    deviation = (p * (1 - p) / num_draws).sqrt()
    assert ((counts / num_draws - p).abs() <= 4.5 * deviation).all()
