"""The cache: extend, roll back, keep a path, grow; both backends against transformers itself."""

import pytest
import torch
from fakes import generic, lean, static, tiny_llama
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from playground.lm import LeanLM, LeanWeights, TransformersLM, release, unsupported_reason, wrap

SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "initializer_range": 0.2,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def family(name):
    torch.manual_seed(3)
    if name == "gpt2":
        return GPT2LMHeadModel(GPT2Config(vocab_size=96, n_embd=32, n_layer=2, n_head=4, n_positions=2048)).eval()
    if name == "llama":
        return tiny_llama(num_hidden_layers=3, max_position_embeddings=2048)
    if name == "llama biases":
        return tiny_llama(attention_bias=True, max_position_embeddings=2048)
    if name == "llama3 rope":
        return LlamaForCausalLM(tiny_llama(max_position_embeddings=2048, rope_parameters=LLAMA3_ROPE).config).eval()
    if name == "mistral":
        return MistralForCausalLM(MistralConfig(**SIZES, sliding_window=None, head_dim=16)).eval()
    if name == "qwen2":
        return Qwen2ForCausalLM(Qwen2Config(**SIZES, tie_word_embeddings=True)).eval()
    return Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=16)).eval()


LEAN = ("llama", "llama biases", "llama3 rope", "mistral", "qwen2", "qwen3")
BACKENDS = [
    *((name, lean) for name in LEAN),
    ("llama", static),
    ("qwen3", static),
    ("llama", generic),
    ("qwen3", generic),
    ("gpt2", generic),
]
IDS = [(7 * i * i + 3 * i + 5) % 96 for i in range(700)]


@pytest.fixture(params=BACKENDS, ids=lambda item: f"{item[0]}-{item[1].__name__}")
def pair(request):
    name, backend = request.param
    model = family(name).requires_grad_(False)
    return model, backend(model, limit=2048)


def reference(model, ids):
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0]


def assert_close(found, expected):
    scale = expected.abs().max()
    assert (found - expected).abs().max() < 1e-4 * max(1, scale)


def test_logits_equal_transformers_in_any_split_of_the_text(pair):
    model, lm = pair
    expected = reference(model, IDS[:60])
    parts = [lm.extend(IDS[start:end]) for start, end in ((0, 37), (37, 38), (38, 44), (44, 60))]
    assert_close(torch.cat(parts), expected)
    assert lm.ids == IDS[:60]


def test_rolling_back_and_extending_again_gives_the_same_logits(pair):
    model, lm = pair
    lm.extend(IDS[:50])
    lm.extend([1, 2, 3, 4, 5])
    lm.rollback(47)
    assert_close(lm.extend(IDS[47:60]), reference(model, IDS[:60])[47:])


def test_growing_past_the_first_buffer_keeps_what_was_there(pair):
    model, lm = pair
    for _ in lm.prefill(IDS):
        pass
    assert_close(lm.extend([9, 8]), reference(model, [*IDS, 9, 8])[-2:])


def test_a_tree_pass_sees_only_ancestors_and_keeps_one_path(pair):
    model, lm = pair
    lm.extend(IDS[:20])
    #        0 ── 1 ── 3        two branches from token 0
    #          └─ 2 ── 4
    tree, parents = [11, 22, 33, 44, 55], [-1, 0, 0, 1, 2]
    logits = lm.extend(tree, parents)
    assert_close(logits[3], reference(model, [*IDS[:20], 11, 22, 44])[-1])
    assert_close(logits[4], reference(model, [*IDS[:20], 11, 33, 55])[-1])
    lm.keep(20, [0, 2, 4])
    assert lm.ids == [*IDS[:20], 11, 33, 55]
    assert_close(lm.extend([66]), reference(model, [*IDS[:20], 11, 33, 55, 66])[-1:])


def test_the_draft_cache_stays_right_through_thirty_random_rejections(pair):
    model, lm = pair
    generator = torch.Generator().manual_seed(5)
    text = IDS[:10]
    lm.extend(text)
    for _ in range(30):
        drafted = torch.randint(0, 96, (4,), generator=generator).tolist()
        lm.extend(drafted)
        kept = int(torch.randint(0, 4, (1,), generator=generator))
        lm.rollback(len(text) + kept)
        text = [*text, *drafted[:kept], (kept * 31) % 96]
        logits = lm.extend(text[-1:])
    assert (logits[-1] - reference(model, text)[-1]).abs().max() < 1e-3


def test_prefill_takes_over_what_an_earlier_prefill_of_the_same_text_left(pair):
    _, lm = pair
    list(lm.prefill(IDS[:300]))
    first = lm.extend([5])
    assert next(lm.prefill(IDS[:300])) == 300
    assert torch.equal(lm.extend([5]), first)
    assert next(lm.prefill([*IDS[:299], 1])) == 256
    assert next(lm.prefill([1, *IDS[1:300]])) == 0
    assert lm.length == 0


def test_hidden_states_of_named_layers_are_those_of_transformers(pair):
    model, lm = pair
    with torch.inference_mode():
        expected = model(torch.tensor([IDS[:30]]), output_hidden_states=True).hidden_states
    lm.taps = frozenset((0, 1, lm.num_layers))
    lm.extend(IDS[:24])
    lm.extend(IDS[24:30])
    assert set(lm.hidden) == {0, 1, lm.num_layers}
    assert_close(lm.hidden[0], expected[0][0, 24:])
    assert_close(lm.hidden[1], expected[1][0, 24:])
    norm = model.model.norm if hasattr(model, "model") else model.transformer.ln_f
    with torch.inference_mode():
        assert_close(norm(lm.hidden[lm.num_layers]), expected[-1][0, 24:])


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_a_pass_can_stop_after_some_layers_and_be_completed_later(name):
    model = family(name).requires_grad_(False)
    lm = lean(model, limit=2048)
    lm.extend(IDS[:20])
    for drafted in ([1, 2, 3], [4, 5], [6]):  # what an early-exit draft does, round after round
        base = lm.length
        with torch.inference_mode():
            expected = model(torch.tensor([[*lm.ids, *drafted]]), output_hidden_states=True).hidden_states[2][0]
        for index, token in enumerate(drafted):
            assert_close(lm.extend_partly([token], 2), expected[base + index : base + index + 1])
        assert lm.length == base
        logits = lm.extend([*drafted, 9])
        assert_close(logits, reference(model, lm.ids)[base:])
        lm.rollback(base + 1)
    lm.extend_partly([7, 8], 1)
    assert_close(lm.extend([5, 6]), reference(model, lm.ids)[-2:])  # other tokens: the partial pass is dropped


def test_a_partial_pass_refuses_nonsense():
    lm = lean(tiny_llama())
    for ids, layers in (([], 1), ([1], 0), ([1], 2)):
        with pytest.raises(ValueError, match="1 to 1 layers"):
            lm.extend_partly(ids, layers)


def test_passes_of_fixed_shape_say_why_they_are_not_recorded_and_forget_old_capacities():
    lm = static(tiny_llama(), limit=2048)
    assert lm.static.reason == "the device is cpu"
    lm.extend(IDS[:3])
    lm.extend(IDS[3:5])
    assert {key[:2] for key in lm.static._passes} == {(3, 512), (2, 512)}
    list(lm.prefill(IDS))
    lm.extend([1, 2])
    assert {key[:2] for key in lm.static._passes} == {(2, 1024)}


def test_caches_that_share_weights_do_not_mix():
    weights = LeanWeights(tiny_llama(), "float32")
    first, second = LeanLM(weights, 96, 512), LeanLM(weights, 96, 512)
    first.extend(IDS[:9])
    second.extend(IDS[40:60])
    assert_close(first.extend(IDS[9:12]), reference(tiny_llama(), IDS[:12])[9:])


def test_misuse_is_refused_and_leaves_the_cache_usable(pair):
    model, lm = pair
    lm.extend(IDS[:5])
    for wrong in (lambda: lm.extend([]), lambda: lm.extend([96]), lambda: lm.extend([-1]), lambda: lm.rollback(6)):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(ValueError, match="parents come first"):
        lm.extend([1, 2], [1, -1])
    assert_close(lm.extend([7]), reference(model, [*IDS[:5], 7])[-1:])


def test_the_context_limit_is_named_when_it_is_passed():
    with pytest.raises(ValueError, match="limit is 16"):
        lean(tiny_llama(), limit=16).extend(IDS[:17])


@pytest.mark.parametrize("backend", [lean, generic])
def test_rows_beyond_the_tokenizer_give_no_logits(backend):
    assert backend(tiny_llama(vocab=128), num_tokens=96).extend([1, 2]).shape == (2, 96)


def test_sliding_windows_and_recurrent_states_are_refused():
    config = MistralConfig(**SIZES, sliding_window=8)
    model = MistralForCausalLM(config).eval()
    assert "sliding" in unsupported_reason(model)
    with pytest.raises(ValueError, match="rolled back"):
        TransformersLM(model, 96, 512)


@pytest.mark.parametrize(("precision", "worst"), [("bfloat16", 0.05), ("int8", 0.1), ("int4", 0.4)])
def test_lower_precisions_stay_near_the_full_one(precision, worst):
    model = tiny_llama(hidden_size=64, intermediate_size=128)
    expected = torch.softmax(reference(model, IDS[:40]), -1)
    rounded = tiny_llama(hidden_size=64, intermediate_size=128).to(torch.bfloat16)
    found = torch.softmax(wrap(rounded, precision, 96, 512).extend(IDS[:40]), -1)
    assert (1 - torch.minimum(expected, found).sum(-1)).mean() < worst


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_cache_in_half_precision_as_on_a_gpu_stays_near_the_full_one(dtype):
    expected = torch.softmax(reference(tiny_llama(), IDS[:40]), -1)
    lm = LeanLM(LeanWeights(tiny_llama().to(dtype), "bfloat16"), 96, 512, cache_dtype=dtype)
    found = torch.softmax(torch.cat((lm.extend(IDS[:36]), lm.extend(IDS[36:40]))), -1)
    assert (1 - torch.minimum(expected, found).sum(-1)).mean() < 0.05


def test_packed_precisions_need_the_lean_decoder():
    with pytest.raises(ValueError, match=r"int4 .* needs the lean decoder"):
        wrap(family("gpt2"), "int4", 96, 512)


def test_a_cache_that_cannot_grow_stays_as_it_was(monkeypatch):
    model = tiny_llama(max_position_embeddings=2048)
    lm = lean(model, limit=2048)
    list(lm.prefill(IDS[:500]))
    zeros, calls = torch.zeros, []

    def full_memory(*shape, **options):
        calls.append(shape)
        if len(calls) == 2:  # the second layer's buffer
            raise MemoryError
        return zeros(*shape, **options)

    monkeypatch.setattr(torch, "zeros", full_memory)
    with pytest.raises(MemoryError):
        lm.extend(IDS[500:520])
    monkeypatch.undo()
    assert_close(lm.extend(IDS[500:520]), reference(model, IDS[:520])[500:])


def test_timing_may_take_over_rows_that_decoding_made_but_other_runs_do_not():
    lm = lean(tiny_llama())
    list(lm.prefill(IDS[:10]))
    lm.extend(IDS[10:12])
    assert next(lm.prefill(IDS[:12], keep_any=True)) == 12
    assert next(lm.prefill(IDS[:12])) == 0


def test_releasing_frees_the_packed_weights_and_keeps_the_decoder_right():
    model = tiny_llama()
    lm, expected = lean(model), reference(model, IDS[:9])
    release(model)
    assert sum(p.numel() for p in model.parameters()) == model.get_input_embeddings().weight.numel()
    assert_close(lm.extend(IDS[:9]), expected)


def test_keys_shared_by_several_heads_are_read_once_in_wide_passes_and_long_contexts(monkeypatch):
    monkeypatch.setattr("playground.lm.lean.MIN_GROUPED_CONTEXT", 20)
    monkeypatch.setattr("playground.lm.lean.MAX_GROUPED_WIDTH", 6)
    target = lean(tiny_llama())
    shared = target.weights.num_heads // target.weights.num_kv
    assert shared > 1
    groups = [target._group(count, end) for count, end in ((1, 19), (1, 20), (6, 8), (7, 8))]
    assert groups == [1, shared, shared, 1]
