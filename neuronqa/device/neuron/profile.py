"""What a simulated device can and cannot do, as data: `catalogs/devices/*.toml`, a source on every line.

A profile may extend another: its values replace those of the same name, and its operator lists add to them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from neuronqa import bundled
from neuronqa.device.neuron import codes
from neuronqa.domain.identity import content_hash
from neuronqa.errors import BadInput

DEFAULT: Final = "trn2-sdk2.33"
SCHEMA: Final = 1


class Where(StrEnum):
    """In which kind of execution a refusal holds."""

    EAGER = "eager"
    GRAPH = "graph"


class Mechanism(StrEnum):
    """How a refused operator comes to run on the CPU in eager execution."""

    ARGUMENTS = "arguments"
    """No implementation accepts the arguments."""
    RECOVERED = "recovered"
    """The compiler fails, and the runtime recovers on the CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The device itself, per logical device unless said otherwise; a limit of 0 means none."""

    logical_devices: int
    """Visible to one process."""
    memory_bytes: int
    target: str
    instance_devices: int
    """Of the largest machine: how far a model may be sharded."""
    cores_per_device: int
    """Physical cores that make one logical device. The figures below are per physical core."""
    tensor_ghz: float
    float32_passes: int
    vector_ghz: float
    scalar_ghz: float
    gpsimd_ghz: float
    memory_gbps: float
    dma_gbps: float
    instruction_limit: int
    compile_limit_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Rules that hold for every operator."""

    everything_native: bool = False
    int64: str = "int64"
    float64: str = "float64"
    memory_format: str = "any"
    keeps_parameters: bool = True
    fallback_on_refusal: bool = True
    whole_graph_fallback: bool = False
    decompose_complex: bool = False
    matmul_tile: int = 0
    """How many products the tensor engine sums at a time, in float32; 0: as the CPU does."""
    function_tables: bool = False
    """Do transcendental functions come from piecewise polynomials?"""
    stochastic_rounding: bool = False
    """Are results in half precision rounded stochastically, unless NEURON_RT_STOCHASTIC_ROUNDING_EN says?"""


class Effect(StrEnum):
    """What a quirk does to an operator."""

    NAN_BECOMES_ZERO = "nan-becomes-zero"
    NAN_BECOMES_LOWER_BOUND = "nan-becomes-lower-bound"
    NAN_STAYS_NAN = "nan-stays-nan"
    LOSES_NEGATIVE_INFINITY = "loses-negative-infinity"
    NOT_FINITE_BECOMES_LOWEST_INT32 = "not-finite-becomes-lowest-int32"
    INDEX_OUT_OF_RANGE_READS_NAN = "index-out-of-range-reads-nan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """An oddity of some operators on values that are hardly ever met. A name without overload means every overload."""

    name: str
    operators: tuple[str, ...]
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What the compiler or a kernel refuses, and what it says then.

    `operators` empty means every operator; a name without overload means every overload. `dtypes` are looked for in the
    first tensor, or in any tensor of a rule for every operator. `when` names a predicate over the arguments.
    """

    name: str
    text: str
    where: tuple[Where, ...]
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    when: str = ""
    mechanism: Mechanism = Mechanism.RECOVERED
    code: str = ""

    @property
    def message(self) -> str:
        return f"[{self.code}] {self.text}" if self.code else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A resolved profile."""

    name: str
    summary: str
    hardware: Hardware
    behaviour: Behaviour
    native: tuple[str, ...] = ()
    """Operators with a device kernel, with overload: `mm.out`."""
    hidden: tuple[str, ...] = ()
    """Base names of operators whose device kernel itself copies to the CPU."""
    unsupported: tuple[str, ...] = ()
    """Base names of operators that are refused with an error."""
    composite: tuple[str, ...] = ()
    """Operators the device implements whole although PyTorch composes them of others."""
    primitive: tuple[str, ...] = ()
    """Base names of what an overlay may be made of."""
    refusals: tuple[Refusal, ...] = ()
    quirks: tuple[Quirk, ...] = ()

    @property
    def sha256(self) -> str:
        """Names what the profile says; comments and sources do not count."""
        return content_hash(asdict(self))


def names() -> tuple[str, ...]:
    """The bundled profiles, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def load(name_or_path: str = DEFAULT) -> Profile:
    """Read a bundled profile, or a file. Raises BadInput with one line that says what is wrong and where."""
    return _profile(_merged(_find(name_or_path), ()), str(name_or_path))


def _folder() -> Path:
    return bundled.folder("catalogs") / "devices"


def _find(name_or_path: str) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise BadInput("no such profile file", where=name_or_path)
        return path
    if name_or_path in names():
        return _folder() / f"{name_or_path}.toml"
    raise BadInput(f"unknown device profile {name_or_path!r}", hint=f"one of {', '.join(names())}, or a .toml file")


def _merged(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """The file's tables with what it extends below them. Sources are checked here, where the file is known."""
    if path in seen:
        raise BadInput("profiles extend each other in a circle", where=str(path))
    try:
        own = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"the profile cannot be read: {error}", where=str(path)) from error
    if own.get("schema") != SCHEMA:
        raise BadInput(f"the profile's schema is {own.get('schema')!r}, not {SCHEMA}", where=str(path))
    base = _merged(_find(own["extends"]), (*seen, path)) if "extends" in own else {}
    tags = {*base.get("sources", {}), *own.get("sources", {})}
    _check_sources(own, tags, path)
    return {
        **base,
        **own,
        "sources": base.get("sources", {}) | own.get("sources", {}),
        "device": base.get("device", {}) | own.get("device", {}),
        "behaviour": base.get("behaviour", {}) | own.get("behaviour", {}),
        "refuse": _merged_rules(base.get("refuse", {}), own.get("refuse", {})),
        "quirk": _merged_rules(base.get("quirk", {}), own.get("quirk", {})),
        **{key: base.get(key, []) + own.get(key, []) for key in _LISTS},
    }


_LISTS: Final = ("native", "hidden", "unsupported", "composite", "primitive")
_TABLES: Final = ("device", "behaviour", "refuse", "quirk")
_TOP: Final = {"schema", "name", "extends", "summary", "sources", *_LISTS, *_TABLES}


def _merged_rules(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**base.get(name, {}), **own.get(name, {})} for name in {**base, **own}}


def _check_sources(own: Mapping[str, Any], tags: set[str], path: Path) -> None:
    """Every value, list and rule names its source, and begins it with a tag of [sources]."""
    unknown = set(own) - _TOP
    if unknown:
        raise BadInput(f"unknown key {min(unknown)!r} in a profile", where=str(path))
    lines = [(f"[{table}] {key}", line) for table in _TABLES for key, line in own.get(table, {}).items()]
    lines += [(f"[[{key}]]", line) for key in _LISTS for line in own.get(key, [])]
    for where, line in lines:
        source = line.get("source") if isinstance(line, dict) else None
        if not isinstance(source, str) or not source.strip():
            raise BadInput(f"{where} has no source", where=str(path), hint="every line of a profile names its source")
        if source.replace(":", " ").split()[0] not in tags:
            raise BadInput(f"{where}: its source begins with no tag of [sources]", where=str(path))


def _profile(data: Mapping[str, Any], where: str) -> Profile:
    try:
        return Profile(
            name=str(data["name"]),
            summary=str(data["summary"]),
            hardware=_values(Hardware, data["device"]),
            behaviour=_values(Behaviour, data["behaviour"]),
            refusals=tuple(_refusal(name, rule) for name, rule in sorted(data["refuse"].items())),
            quirks=tuple(_quirk(name, rule) for name, rule in sorted(data["quirk"].items())),
            **{key: tuple(sorted({op for group in data[key] for op in group["operators"]})) for key in _LISTS},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"the profile is incomplete or malformed: {error}", where=where) from error


def _values(cls: type[Any], table: Mapping[str, Any]) -> Any:
    """Build `cls` of `{name: {value, source}}`, checking names and types."""
    wanted = {field.name: field.type for field in fields(cls)}
    for name, line in table.items():
        if name not in wanted:
            raise ValueError(f"{cls.__name__.lower()} has no {name!r}")
        if type(line["value"]).__name__ != wanted[name]:
            raise ValueError(f"{name} must be {wanted[name]}, not {line['value']!r}")
    return cls(**{name: line["value"] for name, line in table.items()})


def _refusal(name: str, rule: Mapping[str, Any]) -> Refusal:
    plain: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in rule.items() if key != "source"
    }
    plain["where"] = tuple(Where(place) for place in plain["where"])
    code = plain.get("code", "")
    if code and code not in codes.texts():
        raise ValueError(f"the rule {name!r} has the code {code!r}, which nobody documents")
    plain.setdefault("text", codes.texts().get(code, ""))
    if not plain["text"]:
        raise ValueError(f"the rule {name!r} has neither a text nor a code that has one")
    if "mechanism" in plain:
        plain["mechanism"] = Mechanism(plain["mechanism"])
    return Refusal(name=name, **plain)


def _quirk(name: str, rule: Mapping[str, Any]) -> Quirk:
    known = {key: value for key, value in rule.items() if key != "source"}
    operators = tuple(known.pop("operators"))
    return Quirk(name=name, operators=operators, effect=Effect(known.pop("effect")), **known)
