"""FlexAttention on the device: one graph, right numbers and gradients, and a cost that grows with the square."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from neuronqa.device.neuron.adapter import NeuronDevice
from neuronqa.domain.workload import AttentionSpec, Modification, Workload
from neuronqa.workload.build import build

pytestmark = pytest.mark.device(profile="trn3-sdk2.33")

SPEC = AttentionSpec(
    modification=Modification.CAPTURED,
    batch=1,
    sequence=2048,
    heads=4,
    kv_heads=4,
    head_dim=16,
    executed_batch=1,
    executed_sequence=64,
    compile_budget_s=0.0,
)


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: one.grad.cpu().clone() for name, one in module.named_parameters() if one.grad is not None}


def test_compiled_attention_is_one_graph_with_the_references_gradients(device: NeuronDevice) -> None:
    made = build(Workload(SPEC))
    expected = made.module(**made.inputs)["output"]
    made.loss({"output": expected}).backward()
    wanted = gradients(made.module)
    made.module.zero_grad()
    module = made.module.to("neuron")
    output = torch.compile(module, backend="neuron")(made.inputs["document"].to("neuron"))["output"]
    made.loss({"output": output}).backward()
    torch.testing.assert_close(output.cpu(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients(module), wanted, rtol=1e-4, atol=1e-6)
    assert device.graph_use().graphs == 1
    assert device.graph_use().breaks == ()


def test_a_longer_sequence_takes_longer_to_compile(device: NeuronDevice) -> None:
    from neuronqa.device.neuron.compiler.examine import examine

    def seconds(sequence: int) -> float:
        made = build(Workload(replace(SPEC, sequence=sequence)))
        assert made.whole is not None
        return examine(made.whole, torch.bfloat16, made.loss, device.torch_device, device.profile)

    short, double, longest = (seconds(length) for length in (2048, 4096, 8192))
    assert 2 < (longest - double) / (double - short) < 5
