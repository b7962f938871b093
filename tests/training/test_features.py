"""Features on disk equal a fresh pass, and only what is missing is computed."""

import torch

from playground.lm import LeanLM
from playground.training.batches import PROMPT_WEIGHT, Batches
from playground.training.features import FeatureStore
from playground.training.losses import SoftCrossEntropy


def test_features_equal_a_fresh_pass(target, store):
    lm = LeanLM(target.weights, target.num_ids, 64)
    lm.taps = frozenset((1, 2))
    for index in (0, len(store.texts) - 1):
        lm.reset()
        probs = lm.extend(store.texts[index].ids).softmax(-1)
        found = store.read(index)
        torch.testing.assert_close(found["hidden-2"].float(), lm.hidden[2], rtol=0.01, atol=0.01)
        torch.testing.assert_close(found["top_probs"], probs.gather(1, found["top_ids"]), rtol=0.01, atol=1e-3)
        assert torch.equal(found["top_ids"][:, 0], probs.argmax(-1))


def test_a_second_pass_computes_only_the_missing_layer(target, corpus, tmp_path):
    FeatureStore(tmp_path, corpus.texts, (2,)).build(target.weights, target.num_ids, lambda done: None)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npy")}
    more = FeatureStore(tmp_path, corpus.texts, (1, 2))
    more.build(target.weights, target.num_ids, lambda done: None)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert set(more.read(0)) == {"top_ids", "top_probs", "hidden-1", "hidden-2"}
    lm = LeanLM(target.weights, target.num_ids, 64)
    lm.taps = frozenset((1,))
    lm.extend(corpus.texts[0].ids)
    torch.testing.assert_close(more.read(0)["hidden-1"].float(), lm.hidden[1], rtol=0.01, atol=0.01)


def test_other_texts_than_before_are_computed_anew(target, corpus, tmp_path):
    FeatureStore(tmp_path, corpus.texts[:3], (2,)).build(target.weights, target.num_ids, lambda done: None)
    grown = FeatureStore(tmp_path, corpus.texts[:5], (2,))
    grown.build(target.weights, target.num_ids, lambda done: None)
    assert len(grown.read(4)["hidden-2"]) == len(corpus.texts[4].ids)


def test_an_epoch_holds_every_text_once_in_an_order_of_its_own(store):
    batches = Batches(store, 256, seed=3)
    first, second = batches.epoch(0), batches.epoch(1)
    assert sorted(n for batch in first for n in batch) == list(range(len(store.texts)))
    assert first != second and first == Batches(store, 256, seed=3).epoch(0)


def test_padding_and_last_tokens_do_not_count_and_prompts_count_little(store):
    batch = Batches(store, 256, seed=0).load([0, 1])
    for row, text in enumerate((store.texts[0], store.texts[1])):
        count = len(text.ids)
        assert batch.weight[row, count - 1 :].sum() == 0
        assert (batch.weight[row, text.answer_start - 1 : count - 1] == 1).all()
        assert torch.allclose(batch.weight[row, : text.answer_start - 1], torch.tensor(PROMPT_WEIGHT))


def test_the_loss_is_soft_cross_entropy_over_the_draft_vocabulary():
    rows, states = torch.randn(4, 8), torch.randn(3, 8)
    top_ids, top_probs = torch.tensor([[2, 9], [5, 2], [0, 7]]), torch.tensor([[0.6, 0.4], [0.9, 0.1], [0.5, 0.3]])
    score = SoftCrossEntropy(torch.tensor([0, 2, 5, 7]), rows, 10)(states, top_ids, top_probs, torch.ones(3))
    q = (states @ rows.T).softmax(-1)
    by_hand = -(
        0.6 * q[0, 1].log() + 0.9 * q[1, 2].log() + 0.1 * q[1, 1].log() + 0.5 * q[2, 0].log() + 0.3 * q[2, 3].log()
    )
    torch.testing.assert_close(score.loss, by_hand / 3)
    overlap = q[0, 1].clamp(max=0.6) + q[1, 2].clamp(max=0.9) + q[1, 1].clamp(max=0.1)
    overlap = (overlap + q[2, 0].clamp(max=0.5) + q[2, 3].clamp(max=0.3)) / 3
    assert abs(score.overlap - float(overlap)) < 1e-6


def test_drawn_tokens_stand_for_all_that_are_left_out():
    rows, states = torch.randn(10, 8), torch.randn(3, 8)
    top_ids, top_probs = torch.tensor([[2], [1], [0]]), torch.ones(3, 1)
    whole = SoftCrossEntropy(torch.arange(10), rows, 10)(states, top_ids, top_probs, torch.ones(3))
    parts = SoftCrossEntropy(torch.arange(4), rows[:4], 10)
    joined = parts(states, top_ids, top_probs, torch.ones(3), extra=(rows[4:], 1.0))
    torch.testing.assert_close(joined.loss, whole.loss)
