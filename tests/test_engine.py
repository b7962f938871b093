"""The engine on fakes: same text as plain decoding, ends and budgets, counts, seeds, edges."""

from itertools import pairwise

import pytest
import torch
from fakes import (
    TINY_VOCAB,
    LetterTokenizer,
    ScriptProposer,
    TableLM,
    continuation,
    every_proposer,
    finish,
    generic,
    ids_of,
    lean,
    rounds_of,
    run,
    static,
    tiny_llama,
)

from playground.metrics import RunMetrics
from playground.proposers import DraftModelProposer, NgramProposer, Proposer

PROMPT = [5, 17, 42, 5, 17, 42, 5, 17]
GAMMAS = (1, 2, 4, 7)


def plain(model, prompt=PROMPT, **options):
    return run(lean(model), Proposer(), prompt, **{"max_new_tokens": 40} | options)


def metrics_of(events):
    metrics = RunMetrics()
    for event in events:
        metrics.update(event)
    return metrics


@pytest.mark.parametrize("backend", [lean, generic, static])
@pytest.mark.parametrize("gamma", [*GAMMAS, 0])
@pytest.mark.parametrize("name", ["none", "ngram", "same", "random", "wrong"])
def test_greedy_output_equals_plain_decoding(model, name, gamma, backend):
    expected = ids_of(plain(model))
    proposer = every_proposer(model, backend)[name]
    for prompt in (PROMPT, [3]):
        expected = ids_of(plain(model, prompt))
        assert ids_of(run(backend(model), proposer, prompt, gamma=gamma, max_new_tokens=40)) == expected


@pytest.mark.parametrize("settings", [{"temperature": 1e-6}, {"temperature": 1.0, "top_k": 1}])
@pytest.mark.parametrize("name", ["none", "ngram", "same", "random"])
def test_tiny_temperature_and_top_k_1_equal_greedy(model, name, settings):
    events = run(lean(model), every_proposer(model)[name], PROMPT, gamma=4, max_new_tokens=40, **settings)
    assert ids_of(events) == ids_of(plain(model))
    assert name == "none" or metrics_of(events).num_drafted > 0


@pytest.mark.parametrize("gamma", range(1, 7))
def test_the_target_as_its_own_draft_has_every_token_accepted(model, gamma):
    events = run(lean(model), every_proposer(model)["same"], PROMPT, gamma=gamma, max_new_tokens=60)
    metrics = metrics_of(events)
    assert metrics.alpha == 1.0
    assert metrics.num_rounds == -(-60 // (gamma + 1))
    assert all(v.final_kind in ("bonus", "plain") for _, v in rounds_of(events))
    assert all(len(p.nodes) == gamma for p, _ in rounds_of(events)[:-1])


@pytest.mark.parametrize(("limit", "gamma"), [(3, 4), (1, 4), (7, 5), (2, 16)])
@pytest.mark.parametrize("name", ["none", "ngram", "same", "random", "wrong"])
def test_the_budget_is_met_exactly_and_nothing_useless_is_drafted(model, name, limit, gamma):
    events = run(lean(model), every_proposer(model)[name], PROMPT, gamma=gamma, max_new_tokens=limit)
    assert ids_of(events) == ids_of(plain(model, max_new_tokens=limit))
    assert finish(events).reason == "length"
    left = limit
    for proposed, verified in rounds_of(events):
        assert len(proposed.nodes) < left
        left -= len(verified.committed)


def first_new(ids, start):
    """An index >= start whose token did not occur before."""
    return next(i for i in range(start, len(ids)) if ids[i] not in ids[:i])


@pytest.mark.parametrize("position", range(6))
def test_an_end_token_ends_the_output_wherever_in_the_round_it_falls(model, position):
    """Draft slots 1 … 5 and the bonus slot; a draft of what follows is never tested or shown."""
    full = ids_of(plain(model))
    at = first_new(full, position)
    prompt = [*PROMPT, *full[: at - position]]  # so that the end falls on draft position `position`
    expected = full[at - position : at + 1]
    script = continuation(full[at - position :], len(prompt))
    events = run(lean(model), ScriptProposer(script), prompt, end_ids=(full[at],), gamma=5, max_new_tokens=40)
    assert ids_of(events) == expected == ids_of(plain(model, prompt, end_ids=(full[at],)))
    assert finish(events).reason == "end_token"
    verified = rounds_of(events)[-1][1]
    assert verified.final_kind == ("" if position < 5 else "bonus")
    assert len(verified.tested) == min(position + 1, 5)
    assert len(verified.committed) == position + 1
    assert metrics_of(events).num_committed == len(expected)


def test_a_refused_end_token_does_not_end_the_run(model):
    full = ids_of(plain(model))
    end = next(i for i in range(TINY_VOCAB) if i not in full)
    script = ScriptProposer(lambda context, gamma: [full[len(context) - len(PROMPT)], end, 1][:gamma])
    events = run(lean(model), script, PROMPT, end_ids=(end,), gamma=3, max_new_tokens=20)
    assert ids_of(events) == full[:20]
    assert finish(events).reason == "length"
    assert any(test.id == end and not test.accepted for _, v in rounds_of(events) for test in v.tested)


@pytest.mark.parametrize("name", ["none", "ngram", "same", "random"])
def test_whichever_of_two_end_tokens_comes_first_ends_the_run_and_is_no_text(model, name):
    full = ids_of(plain(model))
    at = first_new(full, 6)
    never = next(i for i in range(TINY_VOCAB) if i not in full)
    tokenizer = LetterTokenizer(special=(full[at],))
    events = run(
        lean(model), every_proposer(model)[name], PROMPT, (never, full[at]), tokenizer, gamma=4, max_new_tokens=40
    )
    assert ids_of(events) == full[: at + 1]
    assert finish(events).text == tokenizer.decode(full[:at])
    last = rounds_of(events)[-1][1].committed[-1]
    assert (last.text, last.label) == ("", tokenizer.texts[full[at]])


@pytest.mark.parametrize("name", ["none", "ngram", "same", "random"])
@pytest.mark.parametrize("span", ["inside one token", "across two tokens"])
def test_a_stop_string_ends_the_text_at_the_same_character_as_in_plain_decoding(model, name, span):
    tokenizer = LetterTokenizer([f"<{i:02d}>" for i in range(TINY_VOCAB)])
    text = finish(plain(model, tokenizer=tokenizer)).text
    start = 4 * 9 if span == "inside one token" else 4 * 9 + 2
    stop = text[start : start + (3 if span == "inside one token" else 4)]
    expected = text[: text.index(stop) + len(stop)]
    events = run(
        lean(model),
        every_proposer(model)[name],
        PROMPT,
        tokenizer=tokenizer,
        gamma=6,
        max_new_tokens=40,
        stop_strings=(stop,),
    )
    assert finish(events).text == expected
    assert finish(events).reason == "stop_string"
    assert len(ids_of(events)) == -(-len(expected) // 4)
    assert "".join(token.text for _, v in rounds_of(events) for token in v.committed) == expected
    for _, verified in rounds_of(events):
        assert len([t for t in verified.tested if t.accepted]) <= len(verified.committed)


def test_only_tokens_up_to_the_first_rejection_count_as_tested(model):
    """Positions 1, 2 and 4 match, 3 and 5 do not: accepted 2, tested 3, emitted 3."""
    full = ids_of(plain(model))
    script = continuation(full, len(PROMPT), wrong_at=(2, 4))
    events = run(lean(model), ScriptProposer(script), PROMPT, gamma=5, max_new_tokens=6)
    proposed, verified = rounds_of(events)[0]
    assert [len(proposed.nodes), len(verified.tested), len(verified.committed)] == [5, 3, 3]
    assert [test.accepted for test in verified.tested] == [True, True, False]
    assert [token.kind for token in verified.committed] == ["accepted", "accepted", "residual"]
    metrics = metrics_of([proposed, verified])
    assert (metrics.num_drafted, metrics.num_tested, metrics.num_accepted) == (5, 3, 2)


@pytest.mark.parametrize("gamma", [1, 5, 8])
def test_the_chosen_gamma_and_proposer_reach_the_engine(model, gamma):
    proposer = ScriptProposer(lambda context, asked: [1] * asked)
    run(lean(model), proposer, PROMPT, gamma=gamma, max_new_tokens=30)
    assert proposer.asked[0] == gamma
    assert all(not p.nodes for p, _ in rounds_of(run(lean(model), Proposer(), PROMPT, gamma=gamma, max_new_tokens=9)))


def test_rounds_without_a_draft_commit_plain_tokens(model):
    events = plain(model, max_new_tokens=5)
    assert {token.kind for _, v in rounds_of(events) for token in v.committed} == {"plain"}
    assert metrics_of(events).alpha is None


def test_a_seed_fixes_the_run_and_seeds_differ(model):
    def sampled(seed):
        return run(
            lean(model), every_proposer(model)["random"], PROMPT, gamma=3, max_new_tokens=40, temperature=1.0, seed=seed
        )

    def shown(events):
        return [(v.committed, [t.accepted for t in v.tested]) for _, v in rounds_of(events)]

    assert shown(sampled(42)) == shown(sampled(42))
    assert len({tuple(ids_of(sampled(seed))) for seed in range(1, 11)}) >= 5


def test_another_run_in_between_does_not_disturb_a_seeded_run(model):
    from fakes import Decoder, generate

    from playground.config import SamplingConfig, SpecConfig

    def start(seed):
        config = SpecConfig(gamma=3, max_new_tokens=30, sampling=SamplingConfig(temperature=1.0, seed=seed))
        return generate(lean(model), every_proposer(model)["same"], PROMPT, config, (), Decoder(LetterTokenizer()))

    alone = ids_of(list(start(7)))
    first, second, events = start(7), start(99), []
    for event in first:
        events.append(event)
        next(second, None)
    assert ids_of(events) == alone


TABLE = [
    [0.05, 0.45, 0.2, 0.2, 0.1],
    [0.3, 0.05, 0.4, 0.15, 0.1],
    [0.1, 0.2, 0.1, 0.5, 0.1],
    [0.25, 0.25, 0.2, 0.1, 0.2],
    [0.4, 0.1, 0.1, 0.3, 0.1],
]
DRAFT_TABLE = [[0.2, 0.1, 0.3, 0.3, 0.1]] * 3 + [[0.7, 0.1, 0.1, 0.05, 0.05]] * 2


@pytest.mark.parametrize("name", ["draft", "ngram", "script"])
@pytest.mark.parametrize("filters", [{}, {"top_k": 3}, {"temperature": 0.7, "top_p": 0.9}])
def test_sampled_frequencies_are_those_of_the_target(name, filters):
    """End to end: every pair of successive tokens within 4.5 standard deviations of the exact chain."""
    from playground.config import SamplingConfig
    from playground.sampling import to_probs

    settings = {"temperature": 1.0} | filters
    target = TableLM(TABLE, context_limit=100_000)
    proposer = {
        "draft": DraftModelProposer(TableLM(DRAFT_TABLE, context_limit=100_000), (), 5),
        "ngram": NgramProposer(1, 2),
        "script": ScriptProposer([1, 2, 3]),
    }[name]
    tokenizer = LetterTokenizer("abcde")
    ids = []
    for seed in range(8):
        events = run(target, proposer, [0], (), tokenizer, gamma=3, max_new_tokens=1500, seed=seed, **settings)
        ids.append(ids_of(events))
    probs = to_probs(target.logits, SamplingConfig(**settings))
    counts = torch.zeros(5, 5)
    for run_ids in ids:
        for before, after in pairwise(run_ids):
            counts[before, after] += 1
    for row, expected in zip(counts, probs, strict=True):
        deviation = (expected * (1 - expected) / row.sum()).sqrt()  # 0 where a token is impossible
        assert ((row / row.sum() - expected).abs() <= 4.5 * deviation).all()


def test_shown_probabilities_are_those_of_a_separate_pass(model):
    """p of every committed token equals a fresh forward pass over the same prefix."""
    events = run(lean(model), every_proposer(model)["random"], PROMPT, gamma=3, max_new_tokens=25, temperature=1.0)
    text = list(PROMPT)
    seen = []
    for _, verified in rounds_of(events):
        for token in verified.committed:
            with torch.inference_mode():
                expected = torch.softmax(model(torch.tensor([text])).logits[0, -1], -1)[token.id]
            assert token.p == pytest.approx(float(expected), abs=1e-3)
            seen.append(token.p)
            text.append(token.id)
    assert min(seen) < 0.99


def test_positions_show_full_vocabulary_probabilities_of_target_draft_and_residual(model):
    events = run(lean(model), every_proposer(model)["random"], PROMPT, gamma=4, max_new_tokens=40, temperature=1.0)
    for proposed, verified in rounds_of(events):
        residual = verified.final_kind == "residual"
        assert len(verified.positions) == len(verified.tested) + (not residual)
        assert bool(verified.positions[-1].residual) == residual
        for test, position in zip(verified.tested, verified.positions, strict=False):
            assert len(position.target) == 5
            assert position.draft
            assert proposed.nodes[test.node].q == pytest.approx(test.q)
            shown = {c.id: c.prob for c in position.target}
            assert shown.get(test.id, test.p) == pytest.approx(test.p, abs=1e-6)


def test_the_context_limit_ends_a_run_in_words_and_the_longest_prompt_still_gives_a_token(model):
    for name in ("none", "ngram", "same", "random"):
        target = lean(model, limit=64)
        prompt = (PROMPT * 8)[:64]
        events = run(target, every_proposer(model)[name], prompt, gamma=4, max_new_tokens=20)
        assert finish(events).reason == "context_full"
        assert len(ids_of(events)) == 1
        events = run(target, every_proposer(model)[name], prompt[:56], gamma=4, max_new_tokens=20)
        assert finish(events).reason == "context_full"
        with pytest.raises(ValueError, match="at most 64"):
            run(target, every_proposer(model)[name], [*prompt, 1], gamma=4, max_new_tokens=20)
        assert len(ids_of(run(target, every_proposer(model)[name], [3], gamma=4, max_new_tokens=20))) == 20


def test_an_empty_context_is_refused():
    with pytest.raises(ValueError, match="empty"):
        run(TableLM(TABLE), Proposer(), [])


def test_closing_a_run_leaves_model_and_proposer_usable(model):
    from fakes import Decoder, generate

    from playground.config import SpecConfig

    target, proposer = lean(model), every_proposer(model)["same"]
    expected = ids_of(plain(model))
    for stop_after in (1, 2, 3, 4, 5, 8):
        config = SpecConfig(gamma=4, max_new_tokens=40)
        events = generate(target, proposer, PROMPT, config, (), Decoder(LetterTokenizer()))
        for _ in range(stop_after):
            next(events)
        events.close()
        assert ids_of(run(target, proposer, PROMPT, gamma=4, max_new_tokens=40)) == expected


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_padded_vocabularies_pair_and_no_id_beyond_the_tokenizer_appears(swap, temperature):
    wide = tiny_llama(vocab=TINY_VOCAB + 128)
    narrow = tiny_llama(vocab=TINY_VOCAB)
    narrow.load_state_dict({k: v[:TINY_VOCAB] if v.shape[0] > 200 else v for k, v in wide.state_dict().items()})
    first, second = (narrow, wide) if swap else (wide, narrow)
    proposer = DraftModelProposer(lean(second, TINY_VOCAB), (), TINY_VOCAB)
    target = lean(first, TINY_VOCAB)
    events = run(target, proposer, PROMPT, gamma=3, max_new_tokens=60, temperature=temperature)
    assert max(ids_of(events)) < TINY_VOCAB
    assert max(node.id for p, _ in rounds_of(events) for node in p.nodes) < TINY_VOCAB
    assert metrics_of(events).alpha > 0.99
    if temperature == 0:
        assert ids_of(events) == ids_of(run(target, Proposer(), PROMPT, max_new_tokens=60))


def test_a_draft_with_a_shorter_context_stops_drafting_instead_of_failing(model):
    proposer = DraftModelProposer(lean(model, limit=20), (), TINY_VOCAB)
    events = run(lean(model), proposer, PROMPT, gamma=4, max_new_tokens=40)
    assert ids_of(events) == ids_of(plain(model))
