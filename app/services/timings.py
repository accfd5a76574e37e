"""Where the time of a run went: by operator with its cost, and by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.actors import Actor
from app.services import activations, tracing
from app.services.models import reach
from app.services.registry import service
from core.trace import costs

if TYPE_CHECKING:
    import pandas as pd


@service("viewer")
def operators(actor: Actor, artifact: str, trace: str) -> pd.DataFrame:
    """The operators that were timed, the slowest first, at most 10,000.

    Columns: id, name, op_type, latency_us, provider, block, region, macs (0 where unknown), bytes,
    intensity in FLOP a byte and achieved in FLOP a second (NaN where macs are unknown).
    """
    rows: Any = tracing.nodes(actor, trace, sort="latency_us", descending=True, limit=10_000).rows
    rows = rows[rows["latency_us"].notna()].reset_index(drop=True)
    run = activations.reading(actor, artifact, trace)
    known = reach(actor, artifact).derived(("costs", trace), lambda _: costs.costs(run))
    home = reach(actor, artifact).derived("blocks", _homes)
    found = [known.get(node) for node in rows["id"]]
    rows["macs"] = [0 if cost is None or cost.macs is None else cost.macs for cost in found]
    rows["bytes"] = [0 if cost is None else cost.nbytes for cost in found]
    rows["block"] = [home.get(node, (costs.NO_BLOCK, ""))[0] for node in rows["id"]]
    rows["region"] = [home.get(node, (costs.NO_BLOCK, ""))[1] for node in rows["id"]]
    worked = (rows["macs"] > 0) & (rows["bytes"] > 0) & (rows["latency_us"] > 0)
    rows["intensity"] = (2 * rows["macs"] / rows["bytes"]).where(worked)
    rows["achieved"] = (2e6 * rows["macs"] / rows["latency_us"]).where(worked)
    return rows


def _homes(model: Any) -> dict[str, tuple[str, str]]:
    return {node: (block.label, block.region) for block in costs.blocks(model) for node in block.nodes}
