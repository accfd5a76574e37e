"""A run as asked for and as it ended; shared by core, the worker and the app."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from core.ir import Finding
from core.limits import GIB, MIB
from core.statistics.types import TensorStats

Status = Literal["complete", "partial", "failed", "cancelled", "timeout", "memory"]
Purpose = Literal["trace", "dataset", "load"]


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What a run may use.

    Attributes:
        memory: bytes of data memory of the worker, weights and activations together.
        time: wall-clock seconds.
        capture: bytes of values held at once while capturing, which sizes the slices.
        store: bytes of values written to the spool; statistics are always kept.
        threads: threads of the runtime.
        provider: ``auto``, ``cpu``, ``cuda``, ...; an explicit one never falls back.
    """

    memory: int = 2 * GIB
    time: float = 60.0
    capture: int = 256 * MIB
    store: int = 512 * MIB
    threads: int = 2
    provider: str = "auto"


@dataclass(frozen=True, slots=True)
class RunInput:
    """One input tensor of a run.

    Attributes:
        file: ``.npy`` file name inside the spool's ``inputs`` folder.
        sha256: of that file.
        source: where it came from in words, e.g. ``zeros``, ``random seed 0``, ``cat.npy``.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    sha256: str
    source: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunInput:
        """The inverse of ``dataclasses.asdict``."""
        fields: dict[str, Any] = {**data, "shape": tuple(data["shape"])}
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """Everything a run depends on; an approval is bound to ``fingerprint``.

    Attributes:
        model_digest: SHA-256 of the artifact, or its quick identity where not hashed yet.
        keep: value ids whose elements are stored first when ``limits.store`` is short.
        latency: whether a second, plain session is timed node by node.
        samples: inputs of every sample of a data set, ``inputs`` being those of the first; empty for one run.
        first_sample: number of the first of them within the whole set.
        iterations: which iterations of a Loop or Scan are looked into; empty for the first few.
        origin: spool of the run whose stored values are gone on from, for the purpose ``load``.
        targets: ``ID@STEP`` of the values to make again, for the purpose ``load``.
    """

    model_path: str
    model_digest: str
    inputs: tuple[RunInput, ...]
    limits: RunLimits = field(default_factory=RunLimits)
    engine: str = "auto"
    latency: bool = True
    keep: tuple[str, ...] = ()
    purpose: Purpose = "trace"
    samples: tuple[tuple[RunInput, ...], ...] = ()
    first_sample: int = 0
    iterations: tuple[int, ...] = ()
    origin: str = ""
    targets: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """SHA-256 over model digest, inputs, limits and engine: any change voids an approval."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TraceRequest:
        """The inverse of ``to_json``."""
        fields: dict[str, Any] = {
            **data,
            "inputs": tuple(RunInput.from_json(item) for item in data["inputs"]),
            "limits": RunLimits(**data["limits"]),
            "keep": tuple(data["keep"]),
            "samples": tuple(tuple(RunInput.from_json(i) for i in sample) for sample in data.get("samples", ())),
            "iterations": tuple(data.get("iterations", ())),
            "targets": tuple(data.get("targets", ())),
        }
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's consent to exactly one request."""

    fingerprint: str
    actor: str
    at: float


@dataclass(frozen=True, slots=True)
class TracedValue:
    """One value of a run.

    Attributes:
        id: value id in the model, e.g. ``g0.v12``.
        node: id of the node that made it, empty for inputs.
        step: which execution of its graph: the iteration of a loop that is run once, the step of a
            decoder; 0 where there is only one. Together with ``id`` it is unique.
        start, stop: bytes in ``values.bin`` where stored, -1 where not.
        reason: why it is not stored, or why it has no statistics.
        path: where it is inside: node and iteration of each Loop, Scan, If and call around it, the
            outermost first, e.g. ``g0.n5[2]/g1.n3[0]``; empty in the main graph.
    """

    id: str
    name: str
    node: str
    dtype: str
    shape: tuple[int, ...]
    stats: TensorStats | None
    step: int = 0
    start: int = -1
    stop: int = -1
    reason: str = ""
    path: str = ""

    @property
    def stored(self) -> bool:
        """Whether its elements can be read from the spool."""
        return self.start >= 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; ``stored`` besides the fields, as the command line prints it."""
        return {
            "id": self.id,
            "name": self.name,
            "node": self.node,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "step": self.step,
            "stored": self.stored,
            "start": self.start,
            "stop": self.stop,
            "reason": self.reason,
            "path": self.path,
            "stats": None if self.stats is None else self.stats.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TracedValue:
        """The inverse of ``to_json``."""
        fields: dict[str, Any] = {name: item for name, item in data.items() if name in cls.__slots__}
        stats = data["stats"]
        fields["stats"] = None if stats is None else TensorStats.from_json(stats)
        fields["shape"] = tuple(data["shape"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class NodeTiming:
    """Latency of one node as the runtime's own profile gives it.

    Attributes:
        latency_us: microseconds, kernel time only; ``None`` where the runtime fused it away.
    """

    id: str
    name: str
    op_type: str
    latency_us: float | None
    provider: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NodeTiming:
        """The inverse of ``to_json``."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class MemoryStep:
    """How much of the main graph's values is alive while a node runs, each freed after its last use.

    Attributes:
        step: place in the order of execution.
        bytes: its outputs among them; stored tensors are not.
    """

    step: int
    node: str
    bytes: int


@dataclass(frozen=True, slots=True)
class TraceResult:
    """How a run ended and what it left.

    Attributes:
        reason: one sentence for anything but ``complete``.
        spool: folder that holds ``values.bin``, ``events.jsonl`` and ``result.json``.
        held: which limits were enforced and how, by name.
        memory: bytes alive over time, as measured; empty where not all values were made.
    """

    status: Status
    engine: str
    provider: str
    reason: str
    elapsed_s: float
    peak_rss_bytes: int
    inputs: tuple[RunInput, ...]
    values: tuple[TracedValue, ...]
    nodes: tuple[NodeTiming, ...]
    findings: tuple[Finding, ...]
    spool: str
    held: dict[str, str] = field(default_factory=dict[str, str])
    optimisation: str = "off"
    latency_optimisation: str = ""
    memory: tuple[MemoryStep, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, with the keys that the command line prints."""
        return {
            "status": self.status,
            "engine": self.engine,
            "provider": self.provider,
            "reason": self.reason,
            "elapsed_s": self.elapsed_s,
            "peak_rss_bytes": self.peak_rss_bytes,
            "optimisation": self.optimisation,
            "latency_optimisation": self.latency_optimisation,
            "held": dict(self.held),
            "spool": self.spool,
            "inputs": [asdict(item) for item in self.inputs],
            "values": [value.to_json() for value in self.values],
            "nodes": [node.to_json() for node in self.nodes],
            "findings": [asdict(finding) for finding in self.findings],
            "memory": [asdict(step) for step in self.memory],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TraceResult:
        """The inverse of ``to_json``."""
        fields: dict[str, Any] = {
            **data,
            "inputs": tuple(RunInput.from_json(item) for item in data["inputs"]),
            "values": tuple(TracedValue.from_json(item) for item in data["values"]),
            "nodes": tuple(NodeTiming.from_json(item) for item in data["nodes"]),
            "findings": tuple(Finding(**item) for item in data["findings"]),
            "memory": tuple(MemoryStep(**item) for item in data.get("memory", ())),
        }
        return cls(**fields)
