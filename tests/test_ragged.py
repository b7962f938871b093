"""Many sequences at once: ragged passes give each the logits it gets alone, whatever its neighbours do."""

import pytest
import torch
from fakes import lean, tiny_llama

from playground.lm.ragged import RaggedLM

TEXTS = ([5, 6, 7, 8, 9], [10, 11], [12, 13, 14, 15, 16, 17, 18, 19, 20])


def alone(model, ids):
    return lean(model).extend(ids)


@pytest.mark.parametrize("settings", [{}, {"num_key_value_heads": 4}, {"num_key_value_heads": 1}])
def test_rows_of_unequal_number_get_the_logits_they_get_alone(settings):
    model = tiny_llama(**settings)
    many = RaggedLM(lean(model).weights, 3, 32)
    logits = many.extend(TEXTS)
    assert torch.allclose(logits, torch.cat([alone(model, ids) for ids in TEXTS]), atol=1e-4)
    assert many.lengths.tolist() == [5, 2, 9]
    logits = many.extend([[1], [2, 3, 4], []])
    expected = torch.cat([alone(model, [*TEXTS[0], 1])[-1:], alone(model, [*TEXTS[1], 2, 3, 4])[-3:]])
    assert torch.allclose(logits, expected, atol=1e-4)


@pytest.mark.parametrize("counts", [(1, 5, 1), (1, 1, 1), (4, 4, 4), (0, 1, 3), (2, 0, 1), (0, 7, 0), (3, 1, 0)])
def test_every_mix_of_widths_is_equal_however_it_is_cut_into_blocks(model, counts):
    many = RaggedLM(lean(model).weights, 3, 32)
    many.extend(TEXTS)
    rows = [[30 + slot + i for i in range(count)] for slot, count in enumerate(counts)]
    expected = [alone(model, text + row)[-len(row) :] for text, row in zip(TEXTS, rows, strict=True) if row]
    assert torch.allclose(many.extend(rows), torch.cat(expected), atol=1e-4)


def test_a_rolled_back_slot_forgets_and_the_others_do_not(model):
    many = RaggedLM(lean(model).weights, 3, 32)
    many.extend(TEXTS)
    many.rollback(2, 3)
    logits = many.extend([[1], [], [2, 3]])
    expected = torch.cat([alone(model, [*TEXTS[0], 1])[-1:], alone(model, [*TEXTS[2][:3], 2, 3])[-2:]])
    assert torch.allclose(logits, expected, atol=1e-4)


def test_a_slot_is_prefilled_anew_while_others_hold_their_text():
    model = tiny_llama()
    many = RaggedLM(lean(model).weights, 2, 400)
    many.extend([[3, 4], [5]])
    long = [7 + i % 80 for i in range(300)]  # longer than one chunk
    many.prefill(1, long)
    assert many.lengths.tolist() == [2, 300]
    logits = many.extend([[9], [9]])
    expected = torch.cat([alone(model, [3, 4, 9])[-1:], alone(model, [*long, 9])[-1:]])
    assert torch.allclose(logits, expected, atol=1e-3)


def test_a_ragged_pass_without_tokens_room_or_slots_is_refused(model):
    many = RaggedLM(lean(model).weights, 2, 4)
    for ids in ([[], []], [[1]], [[1] * 5, [2]]):
        with pytest.raises(ValueError, match="slot"):
            many.extend(ids)
    assert many.lengths.tolist() == [0, 0]
