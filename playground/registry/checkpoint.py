"""Reads a folder of weights without loading them: what is in it, and can this product run it?

Everything is decided from config.json and file headers, so that a model of the wrong kind is
refused before a large download or a long load. Each refusal is one sentence that names the reason.
Knows nothing of the Hub, devices or precisions.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playground.registry.errors import ModelError

CHOOSE_TEXT = "Choose a decoder-only text model with safetensors weights, such as SmolLM2, Qwen or Llama."
CHOOSE_ATTENTION = "Choose a model that uses full attention in every layer, such as SmolLM2, Qwen2.5 or Llama."
WINDOWED = {"sliding_attention", "chunked_attention"}
MAX_HEADER = 100_000_000  # bytes; the format's own limit
INDEX_NAME = "model.safetensors.index.json"
OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".h5", ".msgpack", ".ckpt")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder that passed all checks. `gguf_file` is set when the weights are a GGUF file in it."""

    folder: Path
    config: Any
    num_params: int
    num_bytes: int
    gguf_file: str | None = None


def open_checkpoint(path: Path, name: str) -> Checkpoint:
    """Check a local folder (or .gguf file) and return what a load needs to know.

    Args:
        path: folder with config.json and safetensors, or a GGUF file or a folder with just one.
        name: what the person typed, for the sentences.

    Raises:
        ModelError: no model, wrong kind of weights, or a family that cannot be used.
    """
    gguf = _gguf_in(path)
    if gguf is not None:
        return _open_gguf(gguf, name)
    if not path.is_dir():
        raise ModelError(f"{name} is a file, not a model folder.", "Give the folder that holds config.json.")
    if not (path / "config.json").is_file():
        adapter = (path / "adapter_config.json").is_file()
        what = "holds an adapter, not a whole model" if adapter else "is no model folder: it has no config.json"
        raise ModelError(f"{name} {what}.", "Give a folder with config.json, a tokenizer and safetensors weights.")
    config = read_config(path, name)
    files = weight_files(path, name)
    counts = [count_params(file, name) for file in files]
    return Checkpoint(path, config, sum(counts), sum(file.stat().st_size for file in files))


def read_config(folder: Path, name: str) -> Any:
    """Return the transformers config of a folder after checking that its family can be used.

    Raises:
        ModelError: custom code, unknown family, encoder-decoder, vision-language, quantized already,
            not a text generator, or a state that cannot be rolled back.
    """
    from transformers import CONFIG_MAPPING, AutoConfig

    try:
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        family = str(raw.get("model_type", ""))
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{name} is damaged: its config.json cannot be read.", "Download the model again.") from error
    if family not in CONFIG_MAPPING:
        if "auto_map" in raw:
            message = f"{name} needs code of its own to run, and code from a model is never executed here."
        else:
            message = (
                f"{name} is of the family {family or 'unnamed'}, which this version of transformers does not know."
            )
        raise ModelError(message, CHOOSE_TEXT)
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # anything a damaged config can raise
        raise ModelError(f"{name} has a config.json that cannot be used: {_first_line(error)}", CHOOSE_TEXT) from error
    check_family(config, name)
    return config


def check_family(config: Any, name: str) -> None:
    """Refuse, in one sentence, a config whose model cannot be run or rolled back.

    Raises:
        ModelError: with the first reason found.
    """
    from transformers import AutoModelForCausalLM

    declared = getattr(config, "architectures", None) or []
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(f"{name} is an encoder-decoder ({config.model_type}), which is not supported.", CHOOSE_TEXT)
    if _sees_or_hears(config):
        raise ModelError(f"{name} is a vision or audio model ({config.model_type}), not a text model.", CHOOSE_TEXT)
    if getattr(config, "quantization_config", None):
        hint = "Choose the original 16-bit weights: they are quantized here, at the precision you pick."
        raise ModelError(f"{name} is quantized already, so its precision cannot be chosen.", hint)
    if type(config) not in AutoModelForCausalLM._model_mapping:
        raise ModelError(f"{name} is no text generator ({config.model_type}).", CHOOSE_TEXT)
    model_class = AutoModelForCausalLM._model_mapping[type(config)]
    generates = [item for item in declared if item.endswith(("ForCausalLM", "LMHeadModel", model_class.__name__))]
    if declared and not generates:
        raise ModelError(f"{name} is no text generator: it was saved as {declared[0]}.", CHOOSE_TEXT)
    problem = rollback_problem(config, model_class)
    if problem:
        raise ModelError(f"{name} {problem}.", CHOOSE_ATTENTION)


def _sees_or_hears(config: Any) -> bool:
    parts = ("vision_config", "audio_config", "vision_tower", "image_token_id", "audio_token_id")
    return any(getattr(config, part, None) is not None for part in parts)


def rollback_problem(config: Any, model_class: type) -> str:
    """Say why a model's cache cannot be cut back after a rejection, or return "".

    Only full attention can: its cache holds every token. transformers' own reading of the config
    says what each layer keeps; a kind of layer that is not known counts as one that cannot.
    """
    from transformers.cache_utils import get_layer_types_and_kwargs

    kind = f"({config.model_type})"
    recurrent = f"keeps a recurrent state {kind} that cannot be rolled back after a rejection"
    if model_class._is_stateful:
        return recurrent
    try:
        layer_types = set(get_layer_types_and_kwargs(config.get_text_config(decoder=True))[0])
    except (KeyError, AttributeError, TypeError, ValueError):
        return recurrent
    other = sorted(layer_types - {"full_attention"})
    if not other:
        return ""
    if set(other) <= WINDOWED:
        return f"forgets tokens outside a window {kind}, so its cache cannot be rolled back after a rejection"
    return f"has layers of the kind {other[0]} {kind}, whose state cannot be rolled back after a rejection"


def weight_files(folder: Path, name: str) -> list[Path]:
    """Return the safetensors files a load of `folder` reads, all of them present, or raise ModelError."""
    hint = "Download the folder again, or point to a complete one."
    index = folder / INDEX_NAME
    if index.is_file():
        try:
            listed = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, AttributeError) as error:
            raise ModelError(f"{name} is damaged: its list of weight files cannot be read.", hint) from error
        missing = [file for file in listed if not (folder / file).is_file()]
        if missing:
            raise ModelError(f"{name} is incomplete: {len(missing)} of {len(listed)} weight files are missing.", hint)
        return [folder / file for file in listed]
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    if any(file.suffix in OTHER_WEIGHTS for file in folder.iterdir()):
        raise ModelError(
            f"{name} has weights in an unsafe format only (such as .bin), and only safetensors are loaded.",
            "Convert it with transformers' save_pretrained, or choose a copy with safetensors.",
        )
    raise ModelError(f"{name} holds no weights: there is no model.safetensors in it.", hint)


def count_params(file: Path, name: str) -> int:
    """Add up the parameters named in the header of a safetensors file."""
    try:
        with file.open("rb") as stream:
            header_size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(min(header_size, MAX_HEADER)))
        tensors = [entry for key, entry in header.items() if key != "__metadata__"]
        end = max(entry["data_offsets"][1] for entry in tensors)
        whole = file.stat().st_size >= 8 + header_size + end
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        raise ModelError(f"{name} is damaged: {file.name} is no safetensors file.", "Download it again.") from error
    if not whole:
        raise ModelError(f"{name} is damaged: {file.name} is shorter than its header says.", "Download it again.")
    return sum(_product(entry["shape"]) for entry in tensors)


def _product(shape: list[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _gguf_in(path: Path) -> Path | None:
    if path.is_file() and path.suffix.lower() == ".gguf":
        return path
    if not path.is_dir() or (path / "model.safetensors").is_file() or (path / INDEX_NAME).is_file():
        return None
    found = sorted(path.glob("*.gguf"))
    return found[0] if len(found) == 1 else None


def _open_gguf(file: Path, name: str) -> Checkpoint:
    from gguf import GGUFReader
    from transformers import AutoConfig
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    try:
        reader = GGUFReader(file)
        family = str(reader.get_field("general.architecture").contents())
        num_params = sum(int(tensor.n_elements) for tensor in reader.tensors)
    except Exception as error:  # the reader raises whatever a damaged file makes it trip over
        raise ModelError(f"{name} is damaged: it is no readable GGUF file.", "Download it again.") from error
    supported = sorted(set(GGUF_SUPPORTED_ARCHITECTURES) - {"general", "tokenizer"})
    if family not in supported:
        hint = f"Families that can be unpacked: {', '.join(supported)}."
        raise ModelError(f"{name} is a GGUF file of the family {family}, which cannot be unpacked here.", hint)
    try:
        config = AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    except Exception as error:
        raise ModelError(f"{name} is a GGUF file that cannot be used: {_first_line(error)}", CHOOSE_TEXT) from error
    check_family(config, name)
    return Checkpoint(file.parent, config, num_params, file.stat().st_size, file.name)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
