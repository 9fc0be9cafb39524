"""What a submitted kernel may say."""

from __future__ import annotations

import pytest

from neuronqa.fixqueue import policy
from neuronqa.fixqueue.reason import Reason

HEADER = "import torch\nfrom neuronqa.device.neuron.overlay import kernel\n\n"
KERNEL = '@kernel("aten::maximum")\ndef maximum(a, b):\n    {}\n'
TARGETS = ("aten::maximum",)


def reasons(text: str, targets: tuple[str, ...] = TARGETS) -> set[Reason]:
    return {one.reason for one in policy.objections(text, targets)}


def body(statement: str) -> str:
    return HEADER + KERNEL.format(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "return torch.where(a > b, a, b)",
        "c = a.to(torch.float32) + torch.finfo(a.dtype).eps\n    return c.to(a.dtype)",
        "return torch.ops.aten.where.self(a > b, a, b)",
        "out = torch.zeros_like(a)\n    out[a > b] = 1\n    return out",
        "if a.dim() == 0:\n        raise NotImplementedError('no dimension')\n    return sum((x for x in [a, b]), a)",
        "n = math.prod(a.shape)\n    return F.pad(a, (0, n)) if isinstance(a, Tensor) else b",
        "f = partial(torch.add, b)\n    return reduce(lambda x, y: x + y, [f(a)], EPS)",
    ],
)
def test_a_kernel_of_tensor_operators_passes(statement: str) -> None:
    more = "import math\nfrom functools import partial, reduce\nimport torch.nn.functional as F\n"
    more += "from torch import Tensor\n"
    text = "from __future__ import annotations\n" + more + HEADER + "EPS = 1e-6 * 2\n\n" + KERNEL.format(statement)
    assert policy.objections(text, TARGETS) == ()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("return a.cpu()", Reason.FALLS_BACK),
        ("return a.to('cpu')", Reason.FALLS_BACK),
        ("return a.to('cuda:0')", Reason.FALLS_BACK),
        ("return torch.tensor(a.tolist())", Reason.FALLS_BACK),
        ("return open('/etc/passwd')", Reason.SURROUNDINGS),
        ("import os\n    return os.environ", Reason.SURROUNDINGS),
        ("return __import__('os').getcwd()", Reason.NAME_REFUSED),
        ("return __builtins__", Reason.NAME_REFUSED),
        ("return eval('1')", Reason.NAME_REFUSED),
        ("return getattr(a, 'cp' + 'u')()", Reason.NAME_REFUSED),
        ("return globals()", Reason.NAME_REFUSED),
        ("return type(a)", Reason.NAME_REFUSED),
        ("return a.__class__", Reason.NAME_REFUSED),
        ("return (lambda: 0).__globals__", Reason.NAME_REFUSED),
        ("return (x for x in ()).gi_frame", Reason.NAME_REFUSED),
        ("return '{0.__class__}'.format(a)", Reason.NAME_REFUSED),
        ("return torch.load('x')", Reason.NAME_REFUSED),
        ("return torch.from_file('x')", Reason.NAME_REFUSED),
        ("return torch.ops.aten.from_file('x')", Reason.NAME_REFUSED),
        ("return torch.ops.load_library('x')", Reason.NAME_REFUSED),
        ("return torch._C._dispatch_dump()", Reason.NAME_REFUSED),
        ("return torch.ops.aten.add.Tensor.py_impl(0)(1)", Reason.NAME_REFUSED),
        ("f = torch.ops.aten.add.Tensor\n    return f.py_impl", Reason.NAME_REFUSED),
        ("t = torch\n    return t", Reason.NAME_REFUSED),
        ("return list(map(str, [torch]))", Reason.NAME_REFUSED),
        ("return torch.utils", Reason.NAME_REFUSED),
        ("return a.set_(b)", Reason.NAME_REFUSED),
        ("return a.data", Reason.NAME_REFUSED),
        ("return a.grad_fn", Reason.NAME_REFUSED),
        ("return a.register_hook(print)", Reason.NAME_REFUSED),
        ("torch.add = torch.sub\n    return a", Reason.PATCHES_OTHERS),
        ("setattr(a, 'x', b)\n    return a", Reason.PATCHES_OTHERS),
        ("torch = 3\n    return a", Reason.PATCHES_OTHERS),
        ("kernel = 3\n    return a", Reason.PATCHES_OTHERS),
        ("try:\n        return a + b\n    except Exception:\n        return a", Reason.SWALLOWS_EXCEPTIONS),
        ("with torch.no_grad():\n        return a", Reason.SWALLOWS_EXCEPTIONS),
        ("global SEEN\n    SEEN = 1\n    return a", Reason.KEEPS_STATE),
        ("def f(x, kept=[]):\n        return kept\n    return f(a)", Reason.KEEPS_STATE),
        ("class A:\n        pass\n    return a", Reason.STATEMENT_REFUSED),
        ("match a:\n        case object(__class__=c):\n            return c", Reason.STATEMENT_REFUSED),
        ("yield a", Reason.STATEMENT_REFUSED),
    ],
)
def test_every_way_out_is_refused_for_its_reason(statement: str, reason: Reason) -> None:
    assert reason in reasons(body(statement))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("import os", Reason.SURROUNDINGS),
        ("import torch.utils", Reason.IMPORT_REFUSED),
        ("import torch.nn.functional", Reason.IMPORT_REFUSED),
        ("from torch import *", Reason.IMPORT_REFUSED),
        ("from torch import _C", Reason.IMPORT_REFUSED),
        ("from . import kernels", Reason.IMPORT_REFUSED),
        ("from functools import cache", Reason.IMPORT_REFUSED),
        ("from transformers import AutoConfig", Reason.SURROUNDINGS),
        ("import inspect", Reason.SURROUNDINGS),
        ("from unittest import mock", Reason.PATCHES_OTHERS),
        ("from neuronqa.checks import parity", Reason.TOUCHES_CHECKER),
        ("from neuronqa.device.neuron import overlay", Reason.TOUCHES_CHECKER),
        ("from neuronqa.device.neuron.overlay import install", Reason.TOUCHES_CHECKER),
        ("SEEN = {}", Reason.KEEPS_STATE),
        ("SEEN = torch.zeros(3)", Reason.KEEPS_STATE),
        ("torch.add(1, 2)", Reason.STATEMENT_REFUSED),
        ("for x in range(3):\n    pass", Reason.STATEMENT_REFUSED),
        ("torch.add = 3", Reason.PATCHES_OTHERS),
    ],
)
def test_the_top_of_the_file_holds_imports_constants_and_functions_only(line: str, reason: Reason) -> None:
    assert reason in reasons(HEADER + line + "\n" + KERNEL.format("return a"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(:", Reason.NOT_PYTHON),
        ("\0", Reason.NOT_PYTHON),
        ("x = " + "(" * 5000 + ")" * 5000, Reason.NOT_PYTHON),
        ("x = " + "-" * 100_000 + "1", Reason.NOT_PYTHON),
        ("# " + "x" * policy.SIZE_LIMIT, Reason.NOT_PYTHON),
        (HEADER + "def maximum(a, b):\n    return a\n", Reason.NO_KERNEL),
        (HEADER + "OP = 'aten::maximum'\n@kernel(OP)\ndef f(a, b):\n    return a\n", Reason.NO_KERNEL),
        (body("return a").replace("aten::maximum", "aten::add.Tensor"), Reason.UNRELATED_KERNEL),
        (body("return a").replace('maximum"', 'maximum", dtypes=NAMES'), Reason.NO_KERNEL),
        (HEADER + "@torch.add\n@kernel('aten::maximum')\ndef f(a, b):\n    return a\n", Reason.STATEMENT_REFUSED),
    ],
)
def test_what_is_no_overlay_for_the_item_is_refused(text: str, reason: Reason) -> None:
    assert reason in reasons(text)


@pytest.mark.parametrize(
    ("one", "other", "related"),
    [
        ("aten::_softmax", "aten::_softmax_backward_data", True),
        ("aten::native_layer_norm", "aten::native_layer_norm_backward", True),
        ("aten::max_pool2d_with_indices", "aten::max_pool2d_with_indices_backward", True),
        ("aten::embedding", "aten::embedding_dense_backward", True),
        ("aten::add.Tensor", "aten::add_.Tensor", True),
        ("aten::div.Tensor", "aten::div.out_mode", True),
        ("aten::softmax.int", "aten::_log_softmax", False),
        ("aten::maximum", "aten::max.dim", False),
    ],
)
def test_variants_and_backward_of_an_operator_are_its_kin(one: str, other: str, related: bool) -> None:
    assert (policy.kin(one) == policy.kin(other)) is related


def test_every_reason_has_one_sentence_that_names_no_case() -> None:
    assert all(reason.text and "\n" not in reason.text for reason in Reason)
    assert policy.declared(body("return a")) == {"aten::maximum": policy.DEFAULT_DTYPES}
