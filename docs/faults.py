"""Print the table of faults from the code: `python docs/faults.py > docs/faults.md`. A test holds the two equal."""

from neuronqa.device.neuron.faults import KINDS
from neuronqa.device.plantable import plants, unguarded
from neuronqa.domain.case import Mode, Variant

HEAD = """# What can be planted

`neuronqa controls` plants each of these into many workloads and counts what was noticed. *Has to notice* is the check a
kind proves able to fail; a *good twin* changes nothing that may matter, and nobody may notice it. An operator's fault
acts where the workload calls one of the operators named (a control may name others). A fault counts as *effective*
where it moves a deciding tensor or curve by twice its tolerance or more. This page is printed from the code.

## In the simulated device

| kind | what it does | has to notice | modes | operators |
|---|---|---|---|---|"""

OUTSIDE = """
## In any other device, from outside

A dispatch mode on the device's child spoils what operators return; compiled graphs are spoilt where they are called.

| kind | has to notice | mode |
|---|---|---|"""


def _cell(text: str) -> str:
    return text.replace("|", ", ")


def simulated() -> list[str]:
    out = []
    for kind in KINDS.values():
        check = kind.check.value if kind.check else "nobody (good twin)"
        modes = ", ".join(mode.value for mode in kind.modes)
        op = f"`{_cell(kind.op)}`" if kind.op else ""
        out.append(f"| `{kind.name}` | {_cell(kind.summary)} | {check} | {modes} | {op} |")
    return out


def outside() -> list[str]:
    return [
        f"| `{plant.kind}` | {plant.check or 'nobody (good twin)'} | {mode.value} |"
        for mode in Mode
        for plant in plants("cpu", Variant.parse(f"{mode.value}/fp32/train"))
    ]


def gaps() -> list[str]:
    return [
        "\n## Guarded by nothing that can be planted\n",
        *(
            f"- {name}: {', '.join(unguarded(device))}"
            for name, device in (("simulated device", "neuron"), ("any other", "cpu"))
        ),
    ]


if __name__ == "__main__":
    print("\n".join([HEAD, *simulated(), OUTSIDE, *outside(), *gaps()]))
