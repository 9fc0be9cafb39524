"""Small modules that misbehave in one way each, most of them only once their tensors are off the CPU.

So the CPU reference is sound, and what is found speaks of the device. Each factory returns a module, its inputs, and a
loss over its outputs; the module is a classifier of 8 points in 16 dimensions that learns quickly. Needs torch only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 16
POINTS = 8
GAIN = 8.0
"""Makes the loss fall far enough in a few steps to be seen above the rounding of bfloat16."""
Made = tuple[nn.Module, dict[str, Any], Callable[[Any], Tensor]]


def abroad(x: Tensor) -> bool:
    """Is this tensor anywhere but on the CPU?"""
    return x.device.type != "cpu"


class Classifier(nn.Module):
    """Two linear layers and a cross entropy. Subclasses and `twist` change one step of it."""

    def __init__(self, twist: Callable[[Tensor], Tensor] = lambda h: h) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, 4)
        self.twist = twist

    def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
        logits = GAIN * self.second(self.twist(torch.tanh(self.first(x))))
        return {"logits": logits, "loss": functional.cross_entropy(logits, label)}


def own_loss(outputs: Any) -> Tensor:
    loss: Tensor = outputs["loss"]
    return loss


def points() -> dict[str, Any]:
    return {"x": torch.randn(POINTS, WIDTH), "label": torch.arange(POINTS) % 4}


def classifier(twist: Callable[[Tensor], Tensor]) -> Made:
    return Classifier(twist), points(), own_loss


# ---- death ---------------------------------------------------------------------------------------------------------


def crash(name: str, where: str = "device") -> Made:
    """Dies of the signal `name` in forward: on the device, or `everywhere`."""

    def twist(h: Tensor) -> Tensor:
        if where == "everywhere" or abroad(h):
            _die(name)
        return h

    return classifier(twist)


def crash_in_backward(name: str) -> Made:
    """Dies of the signal `name` in backward, on the device."""

    def twist(h: Tensor) -> Tensor:
        return Scaled.apply(h, 1.0, name) if abroad(h) else h  # type: ignore[no-any-return,no-untyped-call]

    return classifier(twist)


@torch.compiler.disable
def _die(name: str) -> None:
    os.kill(os.getpid(), getattr(signal, name))
    time.sleep(60)  # a signal to oneself may take a moment; nothing may run past it


def leave(code: int) -> Made:
    """The process leaves without a word, with exit code `code`."""

    @torch.compiler.disable
    def twist(h: Tensor) -> Tensor:
        if abroad(h):
            os._exit(code)
        return h

    return classifier(twist)


def leave_politely() -> Made:
    """Raises SystemExit, which no `except Exception` catches."""

    @torch.compiler.disable
    def twist(h: Tensor) -> Tensor:
        if abroad(h):
            sys.exit(0)
        return h

    return classifier(twist)


# ---- hanging and growing -------------------------------------------------------------------------------------------


def hang_in_c(where: str = "device") -> Made:
    """Sleeps in C and never gives the interpreter lock back, so that no Python code can stop it."""

    @torch.compiler.disable
    def twist(h: Tensor) -> Tensor:
        if where == "everywhere" or abroad(h):
            ctypes.PyDLL(None).sleep(3600)
        return h

    return classifier(twist)


def run_away(where: str = "device") -> Made:
    """Allocates and touches memory without end."""

    @torch.compiler.disable
    def twist(h: Tensor) -> Tensor:
        kept = []
        while where == "everywhere" or abroad(h):
            kept.append(bytearray(os.urandom(1 << 12) * (1 << 13)))
            time.sleep(0.01)
        return h

    return classifier(twist)


# ---- exceptions ----------------------------------------------------------------------------------------------------


class StrangeError(Exception):
    """An exception nobody knows."""


def throw(where: str = "device") -> Made:
    """Raises in forward."""

    @torch.compiler.disable
    def twist(h: Tensor) -> Tensor:
        if where == "everywhere" or abroad(h):
            raise StrangeError("this model does not like the place it is in")
        return h

    return classifier(twist)


def throw_at_length() -> Made:
    """Raises a megabyte of terminal escapes and text that runs from right to left."""

    @torch.compiler.disable
    def twist(h: Tensor) -> Tensor:
        if abroad(h):
            raise RuntimeError("\x1b[2J\u202e<script>alert(1)</script>\x00" * 20_000)
        return h

    return classifier(twist)


def refuse_to_move() -> Made:
    """Raises when it is moved off the CPU."""

    class Homebody(Classifier):
        def _apply(self, fn: Any, recurse: bool = True) -> Any:
            if abroad(fn(torch.zeros(1))):
                raise StrangeError("this model stays at home")
            return super()._apply(fn, recurse)

    return Homebody(), points(), own_loss


# ---- operators and graphs ------------------------------------------------------------------------------------------


def fall_back() -> Made:
    """Uses an operator that the device has no kernel for, and that changes nothing here."""
    return classifier(lambda h: h.fmod(10.0))


def fall_back_without_gradient() -> Made:
    """Uses an operator without a kernel on a path that needs no gradient."""

    def twist(h: Tensor) -> Tensor:
        with torch.no_grad():
            scale = torch.cummax(h.detach().abs(), dim=-1).values.amax()
        return h / (1 + scale)

    return classifier(twist)


def transform() -> Made:
    """Uses a Fourier transform, which the compiler refuses and eager execution moves to the CPU."""
    return classifier(lambda h: h + 0.1 * torch.fft.rfft(h.detach().float(), n=2 * WIDTH - 2).real.to(h.dtype))


def break_graph() -> Made:
    """Branches on a value, which no tracer can follow."""

    def twist(h: Tensor) -> Tensor:
        if (h == 0).any():
            h = h * 2
        return h

    return classifier(twist)


def recompile() -> Made:
    """Grows a list in its first calls, so that compiled code does not fit the next one."""

    class Growing(Classifier):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[float] = []

        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            if len(self.seen) < 4:
                self.seen.append(1.0)
            return super().forward(x, label)

    return Growing(), points(), own_loss


def refuse_to_compile() -> Made:
    """Keeps dynamo out of its forward, so that nothing is ever compiled."""

    class Opaque(Classifier):
        @torch.compiler.disable
        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            return super().forward(x, label)

    return Opaque(), points(), own_loss


# ---- state ---------------------------------------------------------------------------------------------------------


class Tied(nn.Module):
    """An embedding whose weight is also the head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.head = nn.Linear(WIDTH, 32, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor, label: Tensor) -> dict[str, Tensor]:
        logits = 4 * GAIN * self.head(torch.tanh(self.embedding(tokens)))
        return {"logits": logits, "loss": functional.cross_entropy(logits, label)}


def tokens() -> dict[str, Any]:
    return {"tokens": torch.arange(POINTS), "label": torch.arange(POINTS) + 3}


def untie() -> Made:
    """Comes apart when it is moved: the head gets a weight of its own."""

    class Fragile(Tied):
        def _apply(self, fn: Any, recurse: bool = True) -> Any:
            moved = super()._apply(fn, recurse)
            if abroad(self.head.weight):
                self.head.weight = nn.Parameter(self.head.weight.detach().clone())
            return moved

    return Fragile(), tokens(), own_loss


def leave_a_buffer_behind() -> Made:
    """Keeps one buffer on the CPU when it is moved."""

    class Forgetful(Classifier):
        offset: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("offset", torch.full((), 0.5))

        def _apply(self, fn: Any, recurse: bool = True) -> Any:
            moved = super()._apply(fn, recurse)
            self.offset = self.offset.cpu()
            return moved

        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            return super().forward(x + self.offset, label)

    return Forgetful(), points(), own_loss


def forget_a_tensor() -> Made:
    """Holds a tensor that is neither parameter nor buffer, so no move takes it along."""

    class Careless(Classifier):
        def __init__(self) -> None:
            super().__init__()
            self.offset = torch.full((WIDTH,), 0.5)

        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            return super().forward(x + self.offset.to(x.dtype), label)

    return Careless(), points(), own_loss


# ---- numbers -------------------------------------------------------------------------------------------------------


class Scaled(torch.autograd.Function):
    """The identity forward; backward multiplies the gradient, and first dies if a signal is named."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, factor: float, name: str) -> Tensor:
        ctx.factor, ctx.name = factor, name
        return h.clone()

    @staticmethod
    def backward(ctx: Any, *grad: Any) -> Any:
        if ctx.name:
            _die(ctx.name)
        return grad[0] * ctx.factor, None, None


def wrong_gradient(factor: float) -> Made:
    """Right forward; on the device the gradient of the first layer is off by a factor."""

    def twist(h: Tensor) -> Tensor:
        return Scaled.apply(h, factor, "") if abroad(h) else h  # type: ignore[no-any-return,no-untyped-call]

    return classifier(twist)


def wrong_output(kind: str) -> Made:
    """On the device the logits shown are wrong in the way `kind` names; the loss is computed from the right ones."""
    change = {
        "scale": lambda h: h * 1.5,
        "sign": lambda h: -h,
        "offset": lambda h: h + 1.0,
        "zero": lambda h: h * 0,
        "nan": lambda h: h * float("nan"),
        "inf": lambda h: h.abs() / 0.0,
        "scatter": lambda h: h + torch.cos(1000 * h),
    }[kind]

    class Wrong(Classifier):
        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            logits = GAIN * self.second(torch.tanh(self.first(x)))
            shown = change(logits.detach()) if abroad(x) else logits.detach()
            return {"logits": shown, "loss": functional.cross_entropy(logits, label)}

    return Wrong(), points(), own_loss


def other_shape() -> Made:
    """On the device one row of the logits is missing."""

    class Short(Classifier):
        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            made = super().forward(x, label)
            return {**made, "logits": made["logits"][1:]} if abroad(x) else made

    return Short(), points(), own_loss


def other_dtype() -> Made:
    """On the device the logits come back narrower."""

    class Narrow(Classifier):
        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            made = super().forward(x, label)
            return {**made, "logits": made["logits"].to(torch.float16)} if abroad(x) else made

    return Narrow(), points(), own_loss


def other_structure() -> Made:
    """On the device the logits are missing from the outputs."""

    class Silent(Classifier):
        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            made = super().forward(x, label)
            return {"loss": made["loss"]} if abroad(x) else made

    return Silent(), points(), own_loss


class Stepping(Classifier):
    """Counts its steps and remembers its first loss, so that it can be right in the first step and wrong later."""

    step: Tensor
    initial: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        self.register_buffer("initial", torch.zeros(()))

    def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
        self.step += 1
        made = super().forward(x, label)
        loss = made["loss"]
        self.initial.copy_(torch.where(self.step > 1, self.initial, loss.detach()))
        return {**made, "loss": self.later(loss) if abroad(x) else loss}

    def later(self, loss: Tensor) -> Tensor:
        """The loss as the device shows it."""
        return loss


def drifting_loss(kind: str) -> Made:
    """From the second step on the device's loss rises, stands still, or becomes NaN."""

    class Drifting(Stepping):
        def later(self, loss: Tensor) -> Tensor:
            if kind == "rise":
                return loss * (1 + (self.step - 1)).to(loss.dtype)
            wrong = self.initial if kind == "stand" else loss.detach() * float("nan")
            return loss + torch.where(self.step > 1, wrong - loss.detach(), torch.zeros_like(loss))

    return Drifting(), points(), own_loss


def drifting_gradient(factor: float, last: int = 1000) -> Made:
    """From the second step to the `last` the device multiplies every gradient by a factor."""

    class Drifting(Stepping):
        def later(self, loss: Tensor) -> Tensor:
            bend = torch.where((self.step > 1) & (self.step <= last), factor, 1.0).to(loss.dtype)
            return loss.detach() + (loss - loss.detach()) * bend

    return Drifting(), points(), own_loss


# ---- what the CPU cannot do either ---------------------------------------------------------------------------------


def nan_reference() -> Made:
    """NaN everywhere, and so equal to itself only for a comparison that calls NaN equal."""
    return classifier(lambda h: h * float("nan"))


def no_gradient() -> Made:
    """A loss that depends on no parameter."""

    class Detached(Classifier):
        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            return {name: value.detach() for name, value in super().forward(x, label).items()}

    return Detached(), points(), own_loss


def never_learns() -> Made:
    """A loss that no step can lower: it is the same for every input."""

    class Constant(Classifier):
        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            made = super().forward(x, label)
            return {**made, "loss": made["loss"] - made["loss"].detach() + made["loss"].detach() * 0 + 1}

    return Constant(), points(), own_loss


def vacuous() -> Made:
    """Nothing to train."""

    class Nothing(nn.Module):
        def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
            return {"logits": x, "loss": functional.cross_entropy(x, label)}

    return Nothing(), points(), own_loss


def wrong_inputs() -> Made:
    """Inputs of another width than the model takes."""
    return Classifier(), {**points(), "x": torch.randn(POINTS, WIDTH + 1)}, own_loss


def missing_inputs() -> Made:
    """One input too few."""
    return Classifier(), {"x": torch.randn(POINTS, WIDTH)}, own_loss


def broken_factory() -> Made:
    """Raises instead of making anything."""
    raise ValueError("this factory makes nothing")


def no_module() -> tuple[str, dict[str, Any]]:
    """Makes something that is no module."""
    return "a module", points()


def crash_while_building(name: str) -> Made:
    """Dies of the signal `name` before there is a module."""
    _die(name)
    return classifier(lambda h: h)


def hang_while_building() -> Made:
    """Never returns."""
    ctypes.PyDLL(None).sleep(3600)
    return classifier(lambda h: h)


# ---- bad neighbours ------------------------------------------------------------------------------------------------


def leave_a_process() -> Made:
    """Starts a process that would outlive it, and is otherwise sound."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
    return classifier(lambda h: h)
