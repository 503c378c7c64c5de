"""How much memory and time the operators of a recorded step take."""

import statistics
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

from plimsoll_recorder import CallMode, Recorder, new_nodes, tensors_in

MARK = "plimsoll:"
EVALUATE = "autograd::engine::evaluate_function: "


@dataclass
class Allocation:
    """A change of what the allocator has given out; `window` says which call or node made it."""

    bytes: int
    window: Optional[str]
    node: int  # how many backward nodes have begun


def allocations(step: Callable[[], None], device: torch.device) -> List[Allocation]:
    """The allocator's events of a step, in order."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        step()
    events: List[Allocation] = []
    nodes = 0

    def walk(event: Any, window: Optional[str]) -> None:
        nonlocal nodes
        name = event.name() if callable(event.name) else event.name
        if name.startswith(EVALUATE):
            node = name[len(EVALUATE):]
            window = EVALUATE
            if "GraphRoot" not in node and "AccumulateGrad" not in node:
                nodes += 1
                events.append(Allocation(0, window, nodes))  # it may allocate nothing
        elif name.startswith(MARK):
            window = name
        elif name == "[memory]" and is_on(event.extra_fields, device):
            events.append(Allocation(event.extra_fields.alloc_size, window, nodes))
        for child in event.children:
            walk(child, window)

    roots = profiler.profiler.kineto_results.experimental_event_tree()
    for root in sorted(roots, key=lambda event: event.start_time_ns):
        walk(root, None)
    return events


def is_on(allocation: Any, device: torch.device) -> bool:
    where = getattr(allocation, "device", None)
    if where is not None:
        return where.type == device.type
    return str(allocation.device_type).lower().endswith(device.type)


def check_nodes(recorder: Recorder, nodes: int) -> None:
    if nodes != len(recorder.node_order):
        raise RuntimeError(f"{len(recorder.node_order)} backward nodes ran in one step, {nodes} in another; expected a "
                           "module that does the same in every step")


def measure_peaks(recorder: Recorder, events: Sequence[Allocation]) -> None:
    """Each operator's most above what was alive as it began."""
    check_nodes(recorder, max((event.node for event in events), default=0))
    by_call = {f"{MARK}{call}": op.forward for op in recorder.operators for call in op.calls}
    begun: Dict[int, int] = {}
    alive = 0
    for event in events:
        step = by_call.get(event.window or "")
        if event.window == EVALUATE and 0 < event.node:
            step = recorder.node_order[event.node - 1].backward
        if step is not None:
            begun.setdefault(id(step), alive)
        alive += event.bytes
        if step is not None:
            step.peak = max(step.peak, alive - begun[id(step)])


def marked(step: Callable[[], torch.Tensor]) -> Callable[[], None]:
    """A step whose calls are marked for the profiler."""

    def around(number: int, run: Callable[[], Any], *_: Any) -> Any:
        with torch.profiler.record_function(f"{MARK}{number}"):
            return run()

    def run() -> None:
        with CallMode(around):
            loss = step()
        loss.backward()

    return run


def peak_of(events: Sequence[Allocation]) -> int:
    alive = most = 0
    for event in events:
        alive += event.bytes
        most = max(most, alive)
    return most


class Clock:
    """Times of all calls and nodes of one step."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.calls: Dict[int, int] = {}
        self.nodes: List[int] = []
        self._last = 0

    def now(self) -> int:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter_ns()

    def run(self, step: Callable[[], torch.Tensor]) -> None:
        nodes: Dict[Any, None] = {}

        def around(number: int, run: Callable[[], Any], *_: Any) -> Any:
            begin = self.now()
            result = run()
            self.calls[number] = self.now() - begin
            for node in new_nodes(list(tensors_in(result)), nodes):
                nodes[node] = None
            return result

        with CallMode(around):
            loss = step()
        for node in nodes:
            node.register_hook(self._tick)
        self._last = self.now()
        loss.backward()

    def _tick(self, *_: Any) -> None:
        now = self.now()
        self.nodes.append(now - self._last)
        self._last = now


def measure_times(recorder: Recorder, clocks: Sequence[Clock]) -> None:
    """Medians by call and by node, added up by operator."""
    for clock in clocks:
        check_nodes(recorder, len(clock.nodes))
    for operator in recorder.operators:
        operator.forward.nanoseconds = sum(
            int(statistics.median(clock.calls[call] for clock in clocks)) for call in operator.calls)
    for index, operator in enumerate(recorder.node_order):
        operator.backward.nanoseconds += int(statistics.median(clock.nodes[index] for clock in clocks))


def allocator_peak(step: Callable[[], torch.Tensor], device: torch.device) -> int:
    """The most that a step adds to what the allocator has given out: CUDA's own counter, or on a CPU, which has none
    that can be reset, the sum of the allocator's events."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step().backward()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    return peak_of(allocations(lambda: step().backward(), device))
