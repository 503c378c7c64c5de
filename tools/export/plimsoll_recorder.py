"""What one training step of a module does: its operators, and the storages that pass between them."""

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

CLASSES = (
    (r"conv", "convolution"),
    (r"attention", "attention"),
    (r"cross_entropy|nll|_loss$", "loss"),
    (r"norm", "normalization"),
    (r"embedding", "embedding"),
    (r"pool", "pooling"),
    (r"linear|matmul|mm$|einsum", "matmul"),
    (r"add|sub|mul|div|relu|elu|silu|tanh|sigmoid|dropout|softmax|hardtanh|cat", "elementwise"),
)


@dataclass
class Step:
    """The forward or the backward of an operator; storages by number, in the order in which they were met."""

    reads: List[int] = field(default_factory=list)
    updates: List[int] = field(default_factory=list)
    makes: List[int] = field(default_factory=list)
    keeps: List[int] = field(default_factory=list)
    gradients: List[str] = field(default_factory=list)
    nanoseconds: int = 0
    peak: int = 0  # bytes, above those alive when it began

    def read(self, storage: int) -> None:
        if storage not in self.reads and storage not in self.makes:
            self.reads.append(storage)


@dataclass
class Operator:
    """One call of the module, and those after it that only view storages."""

    name: str
    kind: str
    calls: List[int]
    forward: Step = field(default_factory=Step)
    backward: Optional[Step] = None


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


class Storages:
    """Numbers storages. A weak reference to each keeps its address from being given to another one."""

    def __init__(self) -> None:
        self._numbers: Dict[int, int] = {}
        self._references: List[StorageWeakRef] = []
        self.bytes: List[int] = []
        self.names: List[str] = []

    @staticmethod
    def _of(tensor: torch.Tensor) -> Any:
        return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()._storage

    def find(self, tensor: torch.Tensor) -> Optional[int]:
        return self._numbers.get(self._of(tensor)._cdata)

    def add(self, tensor: torch.Tensor, name: str = "") -> int:
        """The number of the tensor's storage, which may be new."""
        storage = self._of(tensor)
        if storage._cdata not in self._numbers:
            self._numbers[storage._cdata] = len(self.bytes)
            self._references.append(StorageWeakRef(storage))
            self.bytes.append(storage.nbytes())
            self.names.append(name)
        return self._numbers[storage._cdata]


class Names:
    """Names as the format allows them, each once."""

    def __init__(self) -> None:
        self._used: Dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_./-]", "_", wanted)[:180] or "_"
        self._used[base] = self._used.get(base, 0) + 1
        if self._used[base] == 1:
            return base
        return self.unique(f"{base}.{self._used[base]}")


class ModulePath:
    """Which submodule is at work, for names."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._stack: List[Tuple[str, bool]] = []
        self._handles = []
        for name, part in module.named_modules():
            if isinstance(part, torch.jit.ScriptModule):  # takes no hooks
                continue
            entry = (name, not any(part.children()))
            self._handles.append(part.register_forward_pre_hook(lambda *_, e=entry: self._stack.append(e)))
            self._handles.append(part.register_forward_hook(lambda *_: self._pop()))

    def _pop(self) -> None:
        self._stack.pop()

    def name(self, function: str) -> str:
        path, is_leaf = self._stack[-1] if self._stack else ("", False)
        if is_leaf and path:
            return path
        return f"{path}.{function}" if path else function

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


class CallMode(TorchFunctionMode):
    """Gives each call of a function of torch to `around(number, run, function, arguments)`; nested calls belong to
    their caller."""

    def __init__(self, around: Callable[[int, Callable[[], Any], Any, Any], Any]) -> None:
        super().__init__()
        self._around = around
        self._calls = 0
        self.is_muted = False

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.is_muted:
            return func(*args, **kwargs)
        number = self._calls
        self._calls += 1
        return self._around(number, lambda: func(*args, **kwargs), func, (args, kwargs))


def new_nodes(outputs: Sequence[torch.Tensor], known: Dict[Any, Any]) -> List[Any]:
    """Backward nodes that lead to the outputs and are not known yet; not those that hand gradients to leaves."""
    found: List[Any] = []
    seen: Set[Any] = set()
    waiting = [output.grad_fn for output in outputs if output.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in known or node in seen or hasattr(node, "variable"):
            continue
        seen.add(node)
        found.append(node)
        waiting.extend(function for function, _ in node.next_functions if function is not None)
    return found


class Recorder:
    """The pass that finds operators and storages."""

    def __init__(self, module: torch.nn.Module, inputs: Sequence[torch.Tensor], target: Sequence[torch.Tensor]) -> None:
        self.storages = Storages()
        self.names = Names()
        self.operators: List[Operator] = []
        self.node_order: List[Operator] = []  # by execution of a backward node
        self._owner: Dict[Any, Operator] = {}
        self._packed: List[int] = []  # since the last call
        self._pending: Dict[Tuple[Any, int], Tuple[int, Step]] = {}
        self.parameters = self._residents(module.named_parameters())
        self.buffers = self._residents(module.named_buffers())
        self.buffers += self._residents(("target", tensor) for tensor in target)  # no part of what stages hand on
        self.inputs = self._residents(("input", tensor) for tensor in inputs)
        self._parameter_of = {parameter: self.storages.find(parameter) for parameter in module.parameters()}
        self._noted = len(self.storages.bytes)  # storages before this one have been given to operators
        self._mode = CallMode(self._call)
        self._path = ModulePath(module)

    def _residents(self, tensors: Any) -> List[int]:
        before = len(self.storages.bytes)
        for name, tensor in tensors:
            if self.storages.find(tensor) is None:
                self.storages.add(tensor, self.names.unique(name))
        return list(range(before, len(self.storages.bytes)))

    def run(self, step: Callable[[], torch.Tensor]) -> None:
        try:
            with torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor):
                with self._mode, without_other_hooks():
                    loss = step()
        finally:
            self._path.close()
        handles = [node.register_hook(self._node_hook(node)) for node in self._owner]
        loss.backward()
        for handle in handles:
            handle.remove()
        self._drop_unread()

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        self._mode.is_muted = True  # a custom function keeps its tensors between two calls
        self._packed.append(self.storages.add(tensor))
        copy = tensor.detach()  # not the tensor itself, which may hold the node that keeps it
        self._mode.is_muted = False
        return copy

    def _call(self, number: int, run: Callable[[], Any], function: Any, arguments: Any) -> Any:
        given = list(tensors_in(list(arguments)))
        for tensor in given:
            if self.storages.find(tensor) is None:  # made before the step, and no part of the module
                self._refuse_unseen(tensor)
                self.buffers.append(self.storages.add(tensor, self.names.unique("constant")))
        versions = [tensor._version for tensor in given]
        result = run()
        outputs = list(tensors_in(result if isinstance(result, (list, tuple)) else [result]))
        changed = [t for t, version in zip(given, versions) if t._version != version]
        if self._note(number, getattr(function, "__name__", "call"), given, outputs, changed):
            self._packed = []  # else a custom function keeps them, whose node the next call finds
        self._noted = len(self.storages.bytes)
        return result

    def _refuse_unseen(self, tensor: torch.Tensor) -> None:
        if tensor.grad_fn is not None:
            made_by = type(tensor.grad_fn).__name__
            raise ValueError(f"{self._path.name('module')}: a tensor was made by {made_by}, outside the functions of "
                             "torch; TorchScript and functions in C++ cannot be recorded")

    def _note(self, number: int, function: str, given: List[torch.Tensor], outputs: List[torch.Tensor],
              changed: List[torch.Tensor]) -> bool:
        """What a custom function keeps is noted with the next call that finds its node; whether this one found any."""
        resident = set(self.parameters + self.buffers + self.inputs)

        def is_fresh(storage: int) -> bool:
            return storage >= self._noted and storage not in resident

        step = Step()
        for tensor in given:
            step.read(self.storages.add(tensor))
        for tensor in outputs:
            storage = self.storages.add(tensor)
            if is_fresh(storage) and storage not in step.makes:
                step.makes.append(storage)
        for storage in self._packed:
            if is_fresh(storage) and storage not in step.makes + step.keeps:
                step.keeps.append(storage)
        for storage in map(self.storages.add, changed):
            if storage not in resident and storage not in step.updates:
                step.updates.append(storage)
        nodes = new_nodes(outputs, self._owner)
        is_view = not (step.makes or step.keeps or step.updates)
        if is_view and (self.operators or not nodes):
            self._fold(number, nodes)
            return bool(nodes)
        operator = Operator(self.names.unique(self._path.name(function)), class_of(function), [number], step)
        self._name(operator)
        self.operators.append(operator)
        self._own(operator, nodes)
        return bool(nodes)

    def _fold(self, number: int, nodes: List[Any]) -> None:
        if self.operators:
            self.operators[-1].calls.append(number)
            self._own(self.operators[-1], nodes)

    def _own(self, operator: Operator, nodes: List[Any]) -> None:
        """What the nodes keep is read by the operator's backward."""
        for node in nodes:
            self._owner[node] = operator
        if nodes and operator.backward is None:
            operator.backward = Step()
        if nodes:
            for storage in self._packed:
                operator.backward.read(storage)

    def _name(self, operator: Operator) -> None:
        for storage in operator.forward.makes:
            self.storages.names[storage] = self.names.unique(f"{operator.name}.value")
        for storage in operator.forward.keeps:
            self.storages.names[storage] = self.names.unique(f"{operator.name}.kept")

    def _node_hook(self, node: Any) -> Callable[[Any, Any], None]:
        operator = self._owner[node]

        def hook(produced: Any, incoming: Any) -> None:
            self.node_order.append(operator)
            for slot, gradient in enumerate(incoming):
                if gradient is not None:
                    self._receive(operator, node, slot, gradient)
            for gradient, (target, slot) in zip(produced, node.next_functions):
                if gradient is not None and target is not None:
                    self._hand_on(operator, gradient, target, slot)

        return hook

    def _receive(self, operator: Operator, node: Any, slot: int, gradient: torch.Tensor) -> None:
        """Adding up two contributions out of place makes a storage: the last contributor's backward did."""
        refuse_sparse(operator, gradient)
        pending, contributor = self._pending.pop((node, slot), (None, operator.backward))
        storage = self.storages.find(gradient)
        if storage is None:
            storage = self.storages.add(gradient, self.names.unique(f"{operator.name}.gradient"))
            contributor.makes.append(storage)
            if pending is not None and pending in contributor.updates:
                contributor.updates.remove(pending)
        operator.backward.read(storage)

    def _hand_on(self, operator: Operator, gradient: torch.Tensor, target: Any, slot: int) -> None:
        refuse_sparse(operator, gradient)
        step = operator.backward
        if hasattr(target, "variable"):
            parameter = self._parameter_of.get(target.variable)
            if parameter is not None and self.storages.names[parameter] not in step.gradients:
                step.gradients.append(self.storages.names[parameter])
            return
        storage = self.storages.find(gradient)
        if storage is None:
            storage = self.storages.add(gradient, self.names.unique(f"{operator.name}.handed_back"))
            step.makes.append(storage)
        earlier = self._pending.get((target, slot), (storage, step))[0]
        if earlier != storage:
            step.read(earlier)
            if earlier in step.reads and earlier not in step.updates:
                step.updates.append(earlier)
        self._pending[(target, slot)] = (earlier, step)

    def _drop_unread(self) -> None:
        """Gradients that only their own backward needs are workspace."""
        read = {storage for op in self.operators if op.backward for storage in op.backward.reads}
        for operator in self.operators:
            if operator.backward:
                operator.backward.makes = [storage for storage in operator.backward.makes if storage in read]


def refuse_sparse(operator: Operator, gradient: torch.Tensor) -> None:
    if gradient.layout != torch.strided:
        raise ValueError(f"{operator.name}: a gradient is sparse, which a profile cannot say; export it with a dense one")


@contextmanager
def without_other_hooks() -> Iterator[None]:
    """Hooks of the module's own (save_on_cpu, a checkpoint) take the place of those that record what is kept."""

    def refuse(_: Any) -> None:
        raise ValueError("the module has hooks for saved tensors of its own (a checkpoint, save_on_cpu); export it without")

    hooks = torch.autograd.graph.saved_tensors_hooks
    enter, hooks.__enter__ = hooks.__enter__, refuse
    try:
        yield
    finally:
        hooks.__enter__ = enter


def class_of(function: str) -> str:
    return next((kind for pattern, kind in CLASSES if re.search(pattern, function)), "other")
