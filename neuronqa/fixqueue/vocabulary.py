"""The names a kernel may use, read from the installed PyTorch's own stubs: no operator of another version slips in, and
nothing is imported.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from neuronqa.errors import EnvironmentFault


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


DTYPES: Final = words(
    "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128 "
    "float int long half double short float8_e4m3fn float8_e5m2"
)
_PLAIN: Final = words(
    "Tensor Size dtype finfo iinfo inf nan pi e contiguous_format preserve_format channels_last strided "
    "split einsum broadcast_tensors broadcast_shapes meshgrid norm tensordot atleast_1d atleast_2d block_diag "
    "cartesian_prod sym_int sym_max sym_min sym_float"
)
"""Of `torch`, beside what its generated stubs list."""
_OUTWARD: Final = words(
    "from_file from_numpy frombuffer set_num_threads set_num_interop_threads init_num_threads set_flush_denormal "
    "apply_ map_ map2_ set_ data grad grad_fn requires_grad_ retain_grad as_subclass type storage_type untyped_storage "
    "data_ptr cpu cuda xpu numpy tolist item record_stream pin_memory is_pinned is_set_to new new_tensor observer "
    "output_nr get_device storage_offset"
)
"""What leaves the device, reaches a file or a thread pool, or changes what a tensor is."""
_OF_VALUES: Final = words(
    "eps max min tiny smallest_normal bits resolution append extend insert pop index count sort reverse copy items "
    "keys get is_floating_point is_signed is_complex itemsize numel"
)
"""Attributes of the plain values a kernel works with: what `finfo` says, lists, mappings, dtypes and sizes."""
_REFUSED = words(
    "from_file set set_data record_stream pin_memory local_scalar_dense item print data assert_async assert_scalar "
    "assert_tensor_metadata functional_assert_async functional_assert_scalar resize_storage_bytes to_cpu lift_fresh "
    "retain_grad retains_grad backward requires_grad version output_nr is_leaf fw_primal make_dual unpack_dual sync "
    "enter_dual_level exit_dual_level propagate_xla_data has_compatible_shallow_copy_type"
)
"""Of `torch.ops.aten`, underscores aside: the same of operators, and what tells or changes how a gradient is made."""
_OPERATOR = re.compile(r"^- func: ([A-Za-z_]\w*)", re.MULTILINE)
_FUNCTION = re.compile(r"^def ([A-Za-z]\w*)\(", re.MULTILINE)
_MEMBER = re.compile(r"^    (?:def ([A-Za-z]\w*)\(|([A-Za-z]\w*): [A-Z_])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names by where they may stand."""

    functions: frozenset[str]
    """After `torch.`"""
    functional: frozenset[str]
    """After `torch.nn.functional.`"""
    operators: frozenset[str]
    """After `torch.ops.aten.`: PyTorch's native ones, so nothing that a scripted program alone has."""
    attributes: frozenset[str]
    """After any value."""


@cache
def vocabulary() -> Vocabulary:
    """Read it from the stubs of the installed PyTorch. Raises EnvironmentFault where there are none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise EnvironmentFault("PyTorch is not installed", hint="pip install neuronqa")
    home = Path(spec.origin).parent
    try:
        functions = _FUNCTION.findall((home / "_C" / "_VariableFunctions.pyi").read_text("utf-8"))
        functional = _FUNCTION.findall((home / "nn" / "functional.pyi").read_text("utf-8"))
        functional += _FUNCTION.findall((home / "_C" / "_nn.pyi").read_text("utf-8"))
        native = home.parent / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"
        operators = _OPERATOR.findall(native.read_text("utf-8"))
        tensor = (home / "_C" / "__init__.pyi").read_text("utf-8").partition("\nclass TensorBase")[2]
    except OSError as error:
        raise EnvironmentFault(f"PyTorch has no stubs: {error.strerror}", where=str(error.filename)) from error
    members = {method or field for method, field in _MEMBER.findall(tensor.partition("\nclass ")[0])}
    return Vocabulary(
        functions=(frozenset(functions) | _PLAIN | DTYPES) - _OUTWARD,
        functional=frozenset(functional) - _OUTWARD,
        operators=frozenset(one for one in operators if one.strip("_") not in _REFUSED and not one.startswith("__")),
        attributes=(frozenset(members) - _OUTWARD) | _OF_VALUES,
    )
