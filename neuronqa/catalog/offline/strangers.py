"""Entries that are no plain transformers models: other libraries, adapters, quantised, gated, unknown, damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from neuronqa.catalog.config import stored_text
from neuronqa.catalog.offline.bodies import Accepts
from neuronqa.catalog.offline.drafts import Draft
from neuronqa.catalog.offline.draws import Draws, Weighted
from neuronqa.catalog.status import Absence
from neuronqa.domain.identity import canonical_json

LIBRARY_TASKS: Final = {
    "diffusers": "text-to-image",
    "timm": "image-classification",
    "ultralytics": "object-detection",
    "open_clip": "zero-shot-image-classification",
    "stable-baselines3": "reinforcement-learning",
    "ml-agents": "reinforcement-learning",
    "sample-factory": "reinforcement-learning",
    "lerobot": "robotics",
    "sklearn": "tabular-classification",
    "nemo": "automatic-speech-recognition",
    "espnet": "text-to-speech",
    "speechbrain": "audio-classification",
    "pyannote-audio": "audio-classification",
    "mlx": "text-generation",
    "flair": "token-classification",
    "spacy": "token-classification",
    "transformers.js": "feature-extraction",
    "paddleocr": "image-text-to-text",
    "ctranslate2": "translation",
}
METHODS: Final = {"awq": 0.24, "gptq": 0.26, "bitsandbytes": 0.24, "fp8": 0.12, "compressed-tensors": 0.14}
"""Quantisation methods; own estimate, no count was found."""
CUSTOM_TYPES: Final = (
    "chatglm", "internlm2", "internlm", "baichuan", "qwen", "minicpm", "minicpmv", "internvl_chat", "nomic_bert", "new",
    "xlm-roberta-flash", "aquila", "orion", "deci", "molmo", "ovis", "plamo", "dnabert", "evo1", "telechat", "xverse",
    "yuan", "moss", "skywork", "refinedweb", "mpt_custom", "stablelm_epoch", "phi-msft", "hyenadna", "custom_bert",
)  # fmt: skip
"""Model types whose code lives in the repository."""
FOREIGN_TYPES: Final = (
    "llama_eagle3", "medusa_llama", "retnet", "hyena", "titans", "griffin_custom", "mygpt", "nanogpt",
    "custom_transformer", "bitllama", "mamba_moe", "slim_llama", "byte_latent", "toy_decoder", "arithmetic_circuit",
    "gpt_jax", "sparse_gpt", "delta_net", "rwkv7", "gla", "hgrn2", "ttt", "linear_llama", "moe_plus", "gemma99_unified",
)  # fmt: skip
"""Model types of research forks: no class in transformers, no code in the repository."""
GGUF: Final = "gguf"
MODELS: Final = 12
"""Plain models whose form invented ones take."""


class Strangers:
    """Draws entries that cannot be run, each from a plain model where it has one as its base."""

    def __init__(
        self, seed: int, bases: Sequence[int], drafts: list[Draft], known: Collection[str], accepts: Accepts
    ) -> None:
        self._draws = Draws(seed, "strangers")
        self._drafts = drafts
        self._custom = [name for name in CUSTOM_TYPES if name not in known]
        self._foreign = [name for name in FOREIGN_TYPES if name not in known]
        self._accepts = accepts
        self._models = [self._draws.one(bases) for _ in range(MODELS)]
        self._base_choice = Weighted({index: 2.0 ** min(drafts[index].popularity, 6.0) for index in bases})

    def libraries(self, count: int, shares: Mapping[str, float]) -> None:
        choice = Weighted(dict(shares))
        for _ in range(count):
            library = choice.draw(self._draws)
            self._drafts.append(
                Draft(
                    label=library.replace(".", "-"),
                    popularity=self._draws.bell() - 2.0,
                    library=library,
                    task=LIBRARY_TASKS.get(library, ""),
                    absence=Absence.NOT_ASKED,
                )
            )

    def adapters(self, count: int) -> None:
        self._derive(count, "adapter", lambda base: _like(base, library="peft", absence=Absence.NOT_ASKED))

    def ggufs(self, count: int) -> None:
        self._derive(count, GGUF, lambda base: _like(base, library=GGUF, absence=Absence.NOT_ASKED))

    def quantized(self, count: int) -> None:
        methods = Weighted(METHODS)

        def make(base: Draft) -> Draft:
            method = methods.draw(self._draws)
            block: dict[str, Any] = {"quant_method": method}
            if method != "fp8":
                block["bits"] = self._draws.one((4, 4, 4, 8))
            text = _with(base, quantization_config=block)
            return _like(base, text=text, quantization=method, class_name=base.class_name, parameters=base.parameters)

        self._derive(count, "quantized", make)

    def gated(self, count: int) -> None:
        self._derive(count, "gated", lambda base: _like(base, absence=Absence.GATED, class_name=base.class_name))

    def unreachable(self, count: int, absence: Absence) -> None:
        for _ in range(count):
            self._drafts.append(
                Draft(label=absence.value, popularity=self._draws.bell() - 2.5, library="", absence=absence.value)
            )

    def remote_code(self, count: int) -> None:
        def make(base: Draft) -> Draft:
            name = self._custom[min(self._draws.below(len(self._custom)), self._draws.below(len(self._custom)))]
            camel = "".join(part.capitalize() for part in name.replace("-", "_").split("_"))
            code = {
                "AutoConfig": f"configuration_{name}.{camel}Config",
                "AutoModelForCausalLM": f"modeling_{name}.{camel}Model",
            }
            text = _with(base, model_type=name, architectures=[f"{camel}Model"], auto_map=code)
            return _like(base, text=text, model_type=name, class_name=f"{camel}Model", custom_code=True)

        self._invent(count, "custom-code", make)

    def unknown_types(self, count: int) -> None:
        def make(base: Draft) -> Draft:
            name = self._draws.one(self._foreign)
            camel = "".join(part.capitalize() for part in name.split("_"))
            text = _with(base, model_type=name, architectures=[f"{camel}ForCausalLM"])
            return _like(base, text=text, model_type=name, class_name=f"{camel}ForCausalLM")

        self._invent(count, "fork", make)

    def draft_heads(self, count: int) -> None:
        def make(base: Draft) -> Draft:
            name = f"{base.class_name}Eagle3"
            return _like(base, text=_with(base, architectures=[name]), class_name=name)

        self._invent(count, "draft-head", make)

    def invalid(self, count: int) -> None:
        self._invent(count, "invalid", lambda base: _like(base, text=self._broken(base), class_name=base.class_name))

    def malformed(self, count: int) -> None:
        def make(base: Draft) -> Draft:
            body = (base.text or "{}").encode()
            damaged = self._draws.one(DAMAGE)(body)
            return _like(base, text=stored_text(damaged), model_type="", class_name="")

        self._invent(count, "malformed", make)

    def _broken(self, base: Draft) -> str:
        """A config the installed class refuses; a fault that a class puts up with is followed by another."""
        value = json.loads(base.text or "{}")
        while self._accepts(value):
            value |= self._draws.one(FAULTS)
        return canonical_json(value)

    def _derive(self, count: int, role: str, make: Callable[[Draft], Draft]) -> None:
        """Derivatives of plain models, popular bases more often; most name their base."""
        for _ in range(count):
            index = self._base_choice.draw(self._draws)
            base = self._drafts[index]
            draft = make(base)
            draft.label = f"{base.label.removesuffix('-base')}-{role}"
            draft.popularity = 0.3 * base.popularity + self._draws.bell() - 1.5
            draft.base = index if self._draws.chance(0.9) else None
            self._drafts.append(draft)

    def _invent(self, count: int, role: str, make: Callable[[Draft], Draft]) -> None:
        """Models of their own, made after the form of a plain one."""
        for _ in range(count):
            draft = make(self._drafts[self._draws.one(self._models)])
            draft.label = f"{draft.model_type or 'model'}-{role}"
            draft.popularity = self._draws.bell() - 2.5
            self._drafts.append(draft)


FAULTS: Final[tuple[dict[str, Any], ...]] = (
    {"hidden_size": "4096"},
    {"hidden_size": 768.5},
    {"layer_types": ["full_attention", "unknown_attention"]},
    {"rope_scaling": {"type": "su", "short_factor": [1.0] * 4, "long_factor": [1.0] * 4}},
    {"num_attention_heads": 0},
    {"num_hidden_layers": "all"},
    {"vocab_size": None},
    {"id2label": ["NEGATIVE", "POSITIVE"]},
)
"""What configs are refused for: a wrong type, an unknown word, an old block, a zero, a null."""


def _like(base: Draft, **changes: Any) -> Draft:
    facts: dict[str, Any] = {"library": base.library, "task": base.task, "model_type": base.model_type, **changes}
    return Draft(label="", popularity=0.0, **facts)


def _with(base: Draft, **changes: Any) -> str:
    return canonical_json({**json.loads(base.text or "{}"), **changes})


def _truncated(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _latin1(body: bytes) -> bytes:
    return body[:-1] + ',"author":"Jos\u00e9"}'.encode("latin-1")


def _pointer(body: bytes) -> bytes:
    return b"version https://git-lfs.github.com/spec/v1\noid sha256:%064x\nsize %d\n" % (len(body), len(body))


DAMAGE: Final[tuple[Callable[[bytes], bytes], ...]] = (
    _truncated,
    _latin1,
    _pointer,
    lambda _: b"",
    lambda _: b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n",
    lambda body: body.replace(b":", b"=", 1),
    lambda _: b"null",
    lambda body: b"[" + body + b"]",
)
"""How a config.json comes to be none: cut short, wrong encoding, a pointer, a page, another format."""
