#!/usr/bin/env python3
"""Records one training step of a PyTorch module as a `profile:` workload of Plimsoll.

    from plimsoll_torch import export
    export(model, images, labels, path="mynet.yaml")

or, where MODULE:FUNCTION returns what is to be exported as `(model, inputs, target)`:

    tools/export/plimsoll_torch.py mynet:make --out mynet.yaml

An operator is one call of a function of `torch` or of a method of a tensor, as the module makes it; what views
storages without copying belongs to the operator before it. Recorded, in passes of their own:
  - storages: what each operator reads, makes, changes in place and keeps for its backward (saved-tensor hooks), and
    the gradients that pass between backward nodes (hooks of the nodes); storages are told apart, not tensors;
  - memory: the most that is alive while each operator runs, from the allocator's own events in torch.profiler;
  - times: medians of `repeats` steps after one to warm up, the device synchronised around every operator;
  - the allocator's peak in a step that nothing watches but the allocator.
Gradients of parameters are reset to None before each step. There is no optimizer: a scenario adds its state.

For PyTorch 1.13 and 2.x, on a CPU or one CUDA device (run on CPUs, with 1.13.1, 2.6.0 and 2.14.1). What a module does
to tensors without calling `torch` from Python (TorchScript, functions in C++) is refused, and so are sparse gradients
and modules with hooks for saved tensors of their own: export checkpointed segments as they are without. The backward
of a custom autograd function belongs to the operator after it. What an operator of many backward nodes (an LSTM) frees
on its way counts until its end, so that its peak may come out a little high. What a variable of the module's Python
code, or an attribute, still holds after its last use is not counted.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set

import torch

from plimsoll_meters import Clock, allocations, allocator_peak, marked, measure_peaks, measure_times
from plimsoll_recorder import Names, Recorder, Step, tensors_in

VERSION = 1

Loss = Callable[[Any], torch.Tensor]


class Writer:
    """Writes a recording as YAML; texts are JSON's, which YAML contains."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._storages = recorder.storages
        self._has_gradient: Set[str] = set()

    def _sizes(self, storages: Sequence[int]) -> str:
        return "{" + ", ".join(f"{self._storages.names[s]}: {self._storages.bytes[s]} B" for s in storages) + "}"

    def _list(self, storages: Sequence[int]) -> str:
        return "[" + ", ".join(self._storages.names[s] for s in storages) + "]"

    def _gradient_bytes(self, step: Step) -> int:
        """Of the gradients of parameters that this step is the first to make."""
        sizes = dict(zip(self._storages.names, self._storages.bytes))
        fresh = [name for name in step.gradients if name not in self._has_gradient]
        self._has_gradient.update(fresh)
        return sum(sizes[name] for name in fresh)

    def _step(self, step: Step) -> str:
        left = sum(self._storages.bytes[s] for s in step.makes + step.keeps) + self._gradient_bytes(step)
        parts = [f"time: {step.nanoseconds} ns"]
        for key, storages in (("reads", step.reads), ("updates", step.updates)):
            if storages:
                parts.append(f"{key}: {self._list(storages)}")
        for key, storages in (("makes", step.makes), ("keeps", step.keeps)):
            if storages:
                parts.append(f"{key}: {self._sizes(storages)}")
        if step.gradients:
            parts.append(f"gradients: [{', '.join(step.gradients)}]")
        if step.peak > left:
            parts.append(f"workspace: {step.peak - left} B")
        return "{" + ", ".join(parts) + "}"

    def _backwards(self) -> Dict[str, str]:
        """In the order in which they run, which says who makes a parameter's gradient first."""
        return {op.name: self._step(op.backward) for op in reversed(self._recorder.operators)
                if op.backward and op in self._recorder.node_order}

    def lines(self, name: str, batch: int, recorded: str) -> Iterator[str]:
        yield f"workload: {name}"
        yield f"batch: {batch}"
        yield "profile:"
        yield f"  version: {VERSION}"
        yield f"  recorded: {json.dumps(recorded)}"
        for key in ("inputs", "parameters", "buffers"):
            yield f"  {key}: {self._sizes(getattr(self._recorder, key))}"
        yield "  operators:"
        backwards = self._backwards()
        for operator in self._recorder.operators:
            yield f"    - name: {operator.name}"
            yield f"      class: {operator.kind}"
            yield f"      forward: {self._step(operator.forward)}"
            if operator.name in backwards:
                yield f"      backward: {backwards[operator.name]}"


def describe(device: torch.device, repeats: int, peak: int) -> str:
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else \
        f"{platform.machine()} CPU, threads: {torch.get_num_threads()}"
    return f"PyTorch {torch.__version__}, {where}; times: median of {repeats} steps; allocator's peak: {peak} B"


def refuse_compiled(module: torch.nn.Module) -> None:
    """What torch.compile has made of a module, or Module.compile in place, is not made of calls of torch."""
    for name, part in module.named_modules():
        if hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None:
            raise ValueError(f"{name or 'the module'} is compiled; export it without torch.compile")


@contextmanager
def without_compiled_functions() -> Iterator[None]:
    """Of functions that the module calls, only PyTorch says as they run that they are compiled, and since 2.6."""
    set_stance = getattr(getattr(torch, "compiler", None), "set_stance", None)
    try:
        with set_stance("fail_on_recompile") if set_stance else nullcontext():
            yield
    except RuntimeError as error:
        if "fail_on_recompile" not in str(error):
            raise
        raise ValueError("the module calls a function that is compiled; export it without torch.compile") from None


def samples_of(first_input: torch.Tensor, batch: Optional[int]) -> int:
    if batch is None and first_input.dim() == 0:
        raise ValueError("the first input is a single number, whose samples cannot be counted; give `batch`")
    return first_input.shape[0] if batch is None else batch


def export(module: torch.nn.Module, inputs: Any, target: Optional[torch.Tensor] = None, *, path: str,
           loss: Optional[Loss] = None, name: Optional[str] = None, batch: Optional[int] = None,
           repeats: int = 5) -> Dict[str, Any]:
    """Records a training step of `module` on `inputs` (a tensor, or a list of arguments) and writes it to `path`.

    `loss` makes the loss of the module's output; by default it is the cross entropy with `target`, or without one the
    sum. `batch` is by default the first dimension of the first input. Returns the figures that were written: `batch`,
    `operators`, `peak_bytes` (of the allocator, all of the module and its inputs included), `forward_s`, `backward_s`.
    """
    arguments = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    given = list(tensors_in(arguments))
    if not given:
        raise ValueError("there is no tensor among the inputs")
    batch = samples_of(given[0], batch)
    if repeats < 1 or batch < 1:
        raise ValueError("expected at least one sample and one repeat")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise ValueError(f"{path}: there is no such folder")
    device = given[0].device
    if loss is None:
        loss = (lambda y: torch.nn.functional.cross_entropy(y, target)) if target is not None else (lambda y: y.sum())

    refuse_compiled(module)

    def step() -> torch.Tensor:
        return loss(module(*arguments))

    def fresh(run: Callable[[], Any]) -> Any:
        module.zero_grad(set_to_none=True)
        return run()

    with without_compiled_functions():
        fresh(lambda: step().backward())
        recorder = Recorder(module, given, list(tensors_in(target)))
        fresh(lambda: recorder.run(step))
    fresh(lambda: measure_peaks(recorder, allocations(marked(step), device)))
    clocks = [Clock(device) for _ in range(repeats)]
    for clock in clocks:
        fresh(lambda c=clock: c.run(step))
    measure_times(recorder, clocks)
    resident = sum(recorder.storages.bytes[s] for s in recorder.inputs + recorder.parameters + recorder.buffers)
    peak = resident + fresh(lambda: allocator_peak(step, device))
    module.zero_grad(set_to_none=True)
    name = Names().unique(name or type(module).__name__.lower())
    with open(path, "w", encoding="utf-8") as file:
        for line in Writer(recorder).lines(name, batch, describe(device, repeats, peak)):
            print(line, file=file)
    return {
        "batch": batch,
        "operators": len(recorder.operators),
        "peak_bytes": peak,
        "forward_s": sum(op.forward.nanoseconds for op in recorder.operators) / 1e9,
        "backward_s": sum(op.backward.nanoseconds for op in recorder.operators if op.backward) / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a `profile:` workload of a PyTorch module.")
    parser.add_argument("what", metavar="MODULE:FUNCTION", help="FUNCTION() returns (model, inputs, target)")
    parser.add_argument("--out", required=True, metavar="FILE", help="the workload to write")
    parser.add_argument("--name", help="of the workload; default: the model's class")
    parser.add_argument("--repeats", type=int, default=5, help="steps that are timed (5)")
    arguments = parser.parse_args()
    module, _, function = arguments.what.partition(":")
    if not function:
        parser.error(f"found `{arguments.what}`, expected MODULE:FUNCTION")
    sys.path.insert(0, os.getcwd())
    model, inputs, target = getattr(importlib.import_module(module), function)()
    figures = export(model, inputs, target, path=arguments.out, name=arguments.name, repeats=arguments.repeats)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
