"""A language model of 120 kB, made on the spot: whole in its format, random in what it says."""

from __future__ import annotations

import random
from array import array
from math import prod
from struct import pack
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_U32, _I32, _F32, _STRING, _ARRAY = 4, 5, 6, 8, 9
_WIDTH, _INNER, _HEADS, _WINDOW = 32, 64, 2, 4096
_LETTERS: Final = "▁abcdefghijklmnopqrstuvwxyz"
_TOKENS: Final = ("<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *_LETTERS)
_KINDS: Final = (2, 3, 3, *[6] * 256, *[1] * len(_LETTERS))
_ALIGNED: Final = 32


def write_model(file: Path, *, seed: int = 1) -> Path:
    """Write one that answers anything with some bytes."""
    chance = random.Random(seed)  # noqa: S311 - no secret comes of it
    infos, data = b"", b""
    for name, shape in _shapes().items():
        sizes = b"".join(pack("<Q", size) for size in shape)
        infos += _text(name) + pack("<I", len(shape)) + sizes + pack("<IQ", 0, len(data))
        data += _padded(_numbers(chance, shape, even="norm" in name))
    fields = [_text(key) + pack("<I", kind) + value for key, (kind, value) in _fields().items()]
    head = pack("<4sIQQ", b"GGUF", 3, len(_shapes()), len(fields)) + b"".join(fields) + infos
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(_padded(head) + data)
    return file


def _shapes() -> Mapping[str, tuple[int, ...]]:
    """One layer of the architecture `llama`."""
    square = (_WIDTH, _WIDTH)
    layer = {
        "attn_norm": (_WIDTH,),
        **dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), square),
        "ffn_norm": (_WIDTH,),
        **dict.fromkeys(("ffn_gate", "ffn_up"), (_WIDTH, _INNER)),
        "ffn_down": (_INNER, _WIDTH),
    }
    words = (_WIDTH, len(_TOKENS))
    return {
        "token_embd.weight": words,
        "output_norm.weight": (_WIDTH,),
        "output.weight": words,
        **{f"blk.0.{name}.weight": shape for name, shape in layer.items()},
    }


def _fields() -> Mapping[str, tuple[int, bytes]]:
    numbers = {
        "llama.context_length": _WINDOW,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": _INNER,
        "llama.attention.head_count": _HEADS,
        "llama.rope.dimension_count": _WIDTH // _HEADS,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    return {
        "general.architecture": (_STRING, _text("llama")),
        "tokenizer.ggml.model": (_STRING, _text("llama")),
        **{key: (_U32, pack("<I", number)) for key, number in numbers.items()},
        "llama.attention.layer_norm_rms_epsilon": (_F32, pack("<f", 1e-5)),
        "tokenizer.ggml.tokens": _list(_STRING, [_text(token) for token in _TOKENS]),
        "tokenizer.ggml.scores": _list(_F32, [pack("<f", 0.0)] * len(_TOKENS)),
        "tokenizer.ggml.token_type": _list(_I32, [pack("<i", kind) for kind in _KINDS]),
    }


def _text(text: str) -> bytes:
    data = text.encode()
    return pack("<Q", len(data)) + data


def _list(kind: int, items: Sequence[bytes]) -> tuple[int, bytes]:
    return _ARRAY, pack("<IQ", kind, len(items)) + b"".join(items)


def _numbers(chance: random.Random, shape: Sequence[int], *, even: bool) -> bytes:
    return array("f", (1.0 if even else chance.gauss(0, 1) for _ in range(prod(shape)))).tobytes()


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGNED)
