#!/usr/bin/env python3
"""Measures what recomputation and offload cost and save on this machine, with PyTorch, as one JSON table.

    tools/measure/plimsoll_measure.py measured.json                       the first CUDA device, else the CPU
    tools/measure/plimsoll_measure.py measured.json --device cpu --networks tiny-cnn:4,resnet18:8

Each network at each batch is trained for a few steps (forward, cross entropy, backward; gradients are None before each;
no optimizer) in the real counterparts of Plimsoll's policies:
  none               PyTorch as it is
  checkpoint         torch.utils.checkpoint, not re-entrant, over equal segments of the sequence of modules; the last
                     takes the remainder and is not checkpointed; `segments` is a list of
                     [first module, last module + 1, checkpointed]
  save-on-cpu        torch.autograd.graph.save_on_cpu to pageable memory (CUDA only)
  save-on-cpu-pinned the same to pinned memory (CUDA only)
The copies between pinned memory and the device are timed in each direction and in both at once (CUDA only).

A row is written as soon as it is done. Started again with the same file, the program goes on where it was interrupted;
a file of another machine or another PyTorch is refused, and so is one whose networks were cut otherwise.

A row has, beside what it is of:
  status                 `ok` or `oom`; nothing below where it is `oom`
  step_s, step_median_s  times of the steps
  parameters             how many numbers
  resident_bytes         of parameters, buffers, input and target
  peak_allocated_bytes   the highest sum of what the allocator had given out, residents included; on a CPU, whose
                         allocator counts nothing, from the allocation events of torch.profiler
  peak_requested_bytes   the same before rounding; null where PyTorch does not say
  peak_reserved_bytes    what the allocator held; null on a CPU
  energy_j               of a step, by NVML's counter of the GPU; null where there is none
"""

import argparse
import ctypes
import json
import os
import platform
import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Tuple

import torch
from torch.utils.checkpoint import checkpoint

import networks

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "export"))
from plimsoll_meters import allocations, peak_of  # noqa: E402  (found through the line above)

FORMAT = 2  # raised, too, when the modules of networks change, of which segments are counted
SEGMENTS = (2, 4, 8)
ON_CUDA = "resnet18:64,resnet18:256,resnet50:32,resnet50:128,vgg16:64,gpt2-small:4,gpt2-small:16,gpt2-medium:4"
ON_CPU = "tiny-cnn:16,tiny-gpt2:8,resnet18:8"
COPY_BYTES = 256 << 20
COPIES = 10

Row = Dict[str, Any]
Segment = Tuple[int, int, bool]


class Table:
    """The file: what is in it stays, and is not measured again."""

    KEY = ("network", "batch", "policy", "segment_count")

    def __init__(self, path: Path, machine: Row) -> None:
        self._path = path
        self._content: Row = {"format": FORMAT, "machine": machine, "copies": [], "rows": []}
        if path.exists():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise SystemExit(f"{path}: no table: {error}") from None
            if not isinstance(found, dict) or "format" not in found:
                raise SystemExit(f"{path}: no table: there is no `format`")
            if found["format"] != FORMAT:
                raise SystemExit(f"{path}: a table of format {found['format']}, expected {FORMAT}: networks are cut "
                                 "otherwise now; begin another file")
            if found.get("machine") != machine:
                raise SystemExit(f"{path}: a table of another machine or PyTorch; expected {machine}")
            self._content = found

    @property
    def copies(self) -> List[Row]:
        return self._content["copies"]

    def has(self, row: Row) -> bool:
        return any(all(done.get(key) == row.get(key) for key in self.KEY) for done in self._content["rows"])

    def add(self, row: Row) -> None:
        self._content["rows"].append(row)
        self._write()

    def set_copies(self, copies: List[Row]) -> None:
        self._content["copies"] = copies
        self._write()

    def _write(self) -> None:
        """A table that is interrupted while it is written stays as it was."""
        unfinished = self._path.with_name(self._path.name + ".part")
        unfinished.write_text(json.dumps(self._content, indent=1) + "\n", encoding="utf-8")
        os.replace(unfinished, self._path)


class EnergyMeter:
    """NVML's counter of a GPU; reads None where there is no such counter."""

    def __init__(self, device: torch.device) -> None:
        self._handle = ctypes.c_void_p()
        self._nvml: Optional[ctypes.CDLL] = None
        if device.type != "cuda":
            return
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        # NVML numbers all GPUs, CUDA those that it may see.
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[device.index or 0:][:1]
        index = int(visible[0]) if visible and visible[0].isdigit() else device.index or 0
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(self._handle)) == 0:
            self._nvml = nvml

    def joules(self) -> Optional[float]:
        millijoules = ctypes.c_ulonglong()
        if self._nvml is None:
            return None
        if self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle, ctypes.byref(millijoules)) != 0:
            return None
        return millijoules.value / 1000


def describe_machine(device: torch.device) -> Row:
    cuda = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if cuda else f"{platform.machine()} CPU",
        "device_bytes": torch.cuda.get_device_properties(device).total_memory if cuda else None,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda if cuda else None,
        "tf32": bool(cuda and torch.backends.cudnn.allow_tf32),
    }


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# --- what is measured -----------------------------------------------------------------------------------------------


def cut(modules: int, segments: int) -> List[Segment]:
    """Equal segments; the last takes the remainder and is not checkpointed."""
    length = modules // segments
    starts = [length * i for i in range(segments)]
    return [(begin, end, end < modules) for begin, end in zip(starts, starts[1:] + [modules])]


def forward(model: torch.nn.Sequential, segments: List[Segment], x: torch.Tensor) -> torch.Tensor:
    for begin, end, is_checkpointed in segments:
        part = model[begin:end]
        x = checkpoint(part, x, use_reentrant=False) if is_checkpointed else part(x)
    return x


def saving(policy: str) -> ContextManager[Any]:
    if policy.startswith("save-on-cpu"):
        return torch.autograd.graph.save_on_cpu(pin_memory=policy.endswith("pinned"))
    return nullcontext()


def rows_to_do(network: str, batch: int, modules: int, device: torch.device) -> Iterator[Row]:
    base = {"network": network, "batch": batch}
    yield {**base, "policy": "none", "segment_count": 1}
    for segments in SEGMENTS:
        if segments <= modules:
            yield {**base, "policy": "checkpoint", "segment_count": segments}
    if device.type == "cuda":
        yield {**base, "policy": "save-on-cpu", "segment_count": 1}
        yield {**base, "policy": "save-on-cpu-pinned", "segment_count": 1}


class Training:
    """A network and its batch on a device, one step at a time."""

    def __init__(self, made: networks.Made, row: Row, device: torch.device) -> None:
        model, x, target = made
        self.model, self.x, self.target = model.to(device), x.to(device), target.to(device)
        self.device = device
        self.segments = cut(len(model), row["segment_count"])
        self._policy = row["policy"]

    def resident_bytes(self) -> int:
        tensors = [*self.model.parameters(), *self.model.buffers(), self.x, self.target]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def step(self) -> None:
        with saving(self._policy):
            loss = torch.nn.functional.cross_entropy(forward(self.model, self.segments, self.x), self.target)
        loss.backward()

    def timed_step(self) -> float:
        self.model.zero_grad(set_to_none=True)
        synchronize(self.device)
        begin = time.perf_counter()
        self.step()
        synchronize(self.device)
        return time.perf_counter() - begin

    def peaks(self) -> Row:
        self.model.zero_grad(set_to_none=True)
        if self.device.type == "cpu":
            peak = self.resident_bytes() + peak_of(allocations(self.step, self.device))
            return {"peak_requested_bytes": peak, "peak_allocated_bytes": peak, "peak_reserved_bytes": None}
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(self.device)
        self.step()
        synchronize(self.device)
        statistics_of = torch.cuda.memory_stats(self.device)
        return {f"peak_{kind}_bytes": statistics_of.get(f"{kind}_bytes.all.peak")
                for kind in ("requested", "allocated", "reserved")}


def measure(made: networks.Made, row: Row, device: torch.device, steps: int, meter: EnergyMeter) -> Row:
    training = Training(made, row, device)
    training.timed_step()  # warms up
    before = meter.joules()
    seconds = [training.timed_step() for _ in range(steps)]
    after = meter.joules()
    return {
        **row,
        "status": "ok",
        "modules": len(training.model),
        "segments": training.segments,
        "parameters": sum(parameter.numel() for parameter in training.model.parameters()),
        "resident_bytes": training.resident_bytes(),
        **training.peaks(),
        "step_s": seconds,
        "step_median_s": statistics.median(seconds),
        "energy_j": None if before is None or after is None else (after - before) / steps,
    }


def measure_or_oom(network: str, row: Row, device: torch.device, steps: int, meter: EnergyMeter) -> Row:
    try:
        return measure(networks.make(network, row["batch"]), row, device, steps, meter)
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        return {**row, "status": "oom"}


# --- copies ---------------------------------------------------------------------------------------------------------


def copy_rate(copies: List[Callable[[], None]], device: torch.device) -> float:
    """Bytes per second of each of the copies, which run on streams of their own, all at once."""
    streams = [torch.cuda.Stream(device) for _ in copies]

    def run(times: int) -> float:
        synchronize(device)
        begin = time.perf_counter()
        for _ in range(times):
            for stream, copy in zip(streams, copies):
                with torch.cuda.stream(stream):
                    copy()
        synchronize(device)
        return time.perf_counter() - begin

    run(1)
    return COPIES * COPY_BYTES / run(COPIES)


def measure_copies(device: torch.device) -> List[Row]:
    host = [torch.empty(COPY_BYTES, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    there = [torch.empty(COPY_BYTES, dtype=torch.uint8, device=device) for _ in range(2)]

    def to_device() -> None:
        there[0].copy_(host[0], non_blocking=True)

    def to_host() -> None:
        host[1].copy_(there[1], non_blocking=True)

    ways = {"to_device": [to_device], "to_host": [to_host], "both_at_once": [to_device, to_host]}
    return [{"way": way, "bytes": COPY_BYTES, "bytes_per_s": copy_rate(copies, device)}
            for way, copies in ways.items()]


# --- the program ----------------------------------------------------------------------------------------------------


def networks_of(text: str) -> List[Tuple[str, int]]:
    """`resnet18:64,vgg16:32` as pairs; raises ValueError."""
    pairs = []
    for part in text.split(","):
        name, _, batch = part.partition(":")
        if name not in networks.NETWORKS:
            raise ValueError(f"unknown network `{name}`; expected one of {', '.join(networks.NETWORKS)}")
        if not batch.isdigit() or int(batch) < 1:
            raise ValueError(f"found `{part}`, expected NETWORK:BATCH")
        pairs.append((name, int(batch)))
    return pairs


def device_of(text: str) -> torch.device:
    """Raises ValueError where PyTorch has no such device, or one that cannot be measured."""
    try:
        device = torch.device(text)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cuda", "cpu"):
        raise ValueError(f"--device: found `{text}`, expected cuda, cuda:N or cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"--device: found `{text}`, and PyTorch sees {torch.cuda.device_count()} CUDA devices")
    return device


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures recomputation and offload in PyTorch.")
    parser.add_argument("table", type=Path, help="the JSON file to write, or to go on with")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cuda, cuda:N or cpu")
    parser.add_argument("--networks", metavar="NETWORK:BATCH,...",
                        help=f"default on CUDA {ON_CUDA}; on a CPU {ON_CPU}")
    parser.add_argument("--steps", type=int, default=5, help="steps that are timed (5)")
    arguments = parser.parse_args()
    try:
        device = device_of(arguments.device)
        chosen = networks_of(arguments.networks or (ON_CUDA if device.type == "cuda" else ON_CPU))
    except ValueError as error:
        parser.error(str(error))
    if arguments.steps < 1:
        parser.error("--steps: expected at least 1")
    table = Table(arguments.table, describe_machine(device))
    if device.type == "cuda" and not table.copies:
        table.set_copies(measure_copies(device))
    meter = EnergyMeter(device)
    for network, batch in chosen:
        for row in rows_to_do(network, batch, len(networks.make(network, 1)[0]), device):
            if table.has(row):
                continue
            done = measure_or_oom(network, row, device, arguments.steps, meter)
            table.add(done)
            print(f"{network} batch {batch}, {row['policy']} in {row['segment_count']}: {done['status']}",
                  file=sys.stderr)


if __name__ == "__main__":
    main()
