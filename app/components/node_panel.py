"""The inspector beside the graph: what is selected, its weights, and its activations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import pandas as pd
import streamlit as st

from app import format_text, session
from app.components import array_view, runs
from app.components.activation_views import activation
from app.plain_text import mono, plain, shorten
from app.services import tensors, tracing
from core.errors import ModelError, NotFound
from core.ir import AttributeValue, Graph, GraphRef, Model, Node, TensorRef, Value
from core.limits import MIB
from core.store.traces import TraceRecord
from core.structure.place import inner_graphs, node_numbers
from core.structure.view import GraphView, ViewNode

PORTS: Final = 8
"""Ports listed before the rest is only counted."""

SCANNED_AT_ONCE: Final = 32 * MIB
"""Bytes of a weight whose statistics are taken without being asked for."""

Go = Callable[[str], None]


def node_panel(artifact: str, model: Model, view: GraphView, selected: str, *, select: Go, enter: Go) -> None:
    """Draw the inspector for ``selected``: an operator, a region, or a value at the border."""
    box = next((node for node in view.nodes if node.id == selected), None)
    numbers = node_numbers(selected)
    if numbers is not None and _exists(model, *numbers):
        _operator(artifact, model, model.graphs[numbers[0]].node(numbers[1]), select=select, enter=enter)
    elif box is not None and box.kind == "region":
        _region(model, box, enter=enter)
    elif box is not None:
        _border(artifact, model, box, select=select)
    else:
        _nothing(view)


def _nothing(view: GraphView) -> None:
    st.markdown("**Nothing is selected**")
    st.caption("Click a box to see its ports, weights and activations.")
    st.caption(f"{format_text.plural(len(view.nodes), 'box', 'boxes')}, {format_text.plural(len(view.edges), 'line')}.")
    if view.hidden:
        st.caption(f"{format_text.plural(view.hidden, 'operator')} that only hold constants are left out.")
    if view.folded:
        st.caption("Some parts are folded to keep the picture readable. Enter a box to see inside.")


def _operator(artifact: str, model: Model, node: Node, *, select: Go, enter: Go) -> None:
    st.markdown(f"### {plain(node.op_type)}", anchors=False)
    st.caption(mono(node.name, 200) if node.name else "without a name")
    if inner_graphs(model, model.graphs[node.graph], node.index):
        _enter(node.id, enter)
    tabs = st.tabs(["Node", "Weights", "Activations"], key="inspector-tab", on_change="rerun")
    if tabs[0].open:
        with tabs[0]:
            _ports(artifact, model, node, select)
            _attributes(model, node)
    elif tabs[1].open:
        with tabs[1]:
            _weights(artifact, model, node)
    else:
        with tabs[2]:
            _activations(artifact, model, node)


# --- node -------------------------------------------------------------------------------


def _ports(artifact: str, model: Model, node: Node, select: Go) -> None:
    graph = model.graphs[node.graph]
    record = runs.current_run(artifact)
    facts = [f"domain {mono(node.domain)}" if node.domain else "", mono(node.id)]
    st.caption(" · ".join(fact for fact in facts if fact))
    for title, values, producing in (("Inputs", node.inputs, True), ("Outputs", node.outputs, False)):
        st.markdown(f"**{title}**")
        for place, index in enumerate(values[:PORTS]):
            if index < 0:
                st.caption(f"{place}: left out")
            else:
                value = graph.value(index)
                _port(graph, value, _type(record, value), f"{title}-{place}-{node.id}", producing, select)
        if len(values) > PORTS:
            st.caption(f"and {len(values) - PORTS} more")


def _type(record: TraceRecord | None, value: Value) -> str:
    """Type and shape as declared, else as the last run had them."""
    if value.type_text:
        return plain(value.type_text)
    if (value.dtype is None or value.shape is None) and record is not None:
        try:
            seen = tracing.described(session.actor(), record.id, value.id)
            return f"{mono(seen.dtype)} {plain(format_text.shape(seen.shape))} when run"
        except NotFound:
            pass
    if value.dtype is None and value.shape is None:
        return "type not declared"
    return f"{mono(value.dtype or 'unknown type')} {plain(format_text.shape(value.shape))}"


def _port(graph: Graph, value: Value, kind: str, key: str, producing: bool, select: Go) -> None:
    with st.container(gap="xxsmall"):
        st.markdown(mono(value.name, 60))
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
            st.caption(f"{kind}{_role(value)}", width="content")
            others = [value.producer] if producing and value.producer >= 0 else []
            others = others if producing else list(dict.fromkeys(value.consumers))
            for other in others[:3]:
                arrow = "arrow_back" if producing else "arrow_forward"
                target = f"g{graph.index}.n{other}"
                op = graph.columns.strings[int(graph.columns.op_type[other])]
                st.button(
                    plain(op, 24), key=f"to-{key}-{other}", type="tertiary", icon=f":material/{arrow}:",
                    on_click=select, args=(target,),
                )  # fmt: skip
            if len(others) > 3:
                st.caption(f"+{len(others) - 3}", width="content")


def _role(value: Value) -> str:
    if value.tensor >= 0:
        return " · stored"
    if value.captured is not None:
        return " · from outside"
    return " · model input" if value.is_input else " · model output" if value.is_output else ""


def _attributes(model: Model, node: Node) -> None:
    if not node.attributes:
        return
    st.markdown("**Attributes**")
    rows = [(shorten(a.name), _attribute_text(model, node, place)) for place, a in enumerate(node.attributes)]
    st.dataframe(
        pd.DataFrame(rows, columns=["attribute", "value"]),
        hide_index=True,
        key=f"attributes-{node.id}",
        row_height=30,
        height=30 * (min(len(rows), 8) + 1) + 3,
    )


def _attribute_text(model: Model, node: Node, place: int) -> str:
    try:
        return attribute_text(model, model.attribute(node.attributes[place]))
    except ModelError as error:
        return shorten(str(error), 200)


def attribute_text(model: Model, value: AttributeValue) -> str:
    """An attribute on one line; tensors and graphs by name and size."""
    if isinstance(value, TensorRef) and 0 <= value.tensor < len(model.tensors):
        tensor = model.tensors[value.tensor]
        return f"tensor {tensor.dtype} {format_text.shape(tensor.shape)}"
    if isinstance(value, GraphRef):
        return f"graph {value.graph}"
    if isinstance(value, bytes):
        return shorten(value[:400].decode("utf-8", "replace"), 400)
    if isinstance(value, tuple):
        text = ", ".join(attribute_text(model, item) for item in value[:64])
        return f"[{text}{', …' if len(value) > 64 else ''}]"
    return shorten(str(value), 400)


# --- weights ----------------------------------------------------------------------------


def weights_of(model: Model, node: Node) -> list[tuple[str, int]]:
    """Tensors that a node takes, with the port or attribute that takes them."""
    graph = model.graphs[node.graph]
    found: list[tuple[str, int]] = []
    for place, index in enumerate(node.inputs):
        if index >= 0 and (tensor := graph.value(index).tensor) >= 0:
            found.append((f"input {place}", tensor))
    for attribute in node.attributes:
        value = attribute.value
        if isinstance(value, TensorRef):
            found.append((f"attribute {attribute.name}", value.tensor))
    if node.op_type == "Constant" and node.outputs and not found:
        held = graph.value(node.outputs[0]).tensor
        found += [("value", held)] if held >= 0 else []
    return found


def _weights(artifact: str, model: Model, node: Node) -> None:
    held = weights_of(model, node)
    if not held:
        st.caption("This operator takes no stored tensor.")
        return
    names = {index: f"{port}: {shorten(model.tensors[index].name, 40)}" for port, index in held}
    chosen = held[0][1]
    if len(names) > 1:
        chosen = st.selectbox(
            "Tensor", list(names), format_func=names.__getitem__, key=f"weight-{node.id}", label_visibility="collapsed"
        )
    tensor = model.tensors[chosen]
    st.markdown(mono(tensor.name, 80))
    st.caption(f"{mono(tensor.dtype)} {plain(format_text.shape(tensor.shape))} · {format_text.size(tensor.nbytes)}")
    stats = tensors.known_statistics(session.actor(), artifact, chosen)
    if tensor.problem:
        st.caption(plain(tensor.problem, 300))
    elif stats is None and tensor.nbytes > SCANNED_AT_ONCE:
        if st.button("Take statistics", key=f"scan-{chosen}", icon=":material/analytics:"):
            stats = tensors.statistics(session.actor(), artifact, chosen)
    elif stats is None:
        stats = tensors.statistics(session.actor(), artifact, chosen)
    if stats is not None:
        array_view.facts(stats)
        array_view.histogram(stats, f"weight-{chosen}", height=200)
    if st.button("Open in Tensors", key=f"open-{chosen}", icon=":material/grid_on:", type="tertiary"):
        session.go("tensors", tensor=str(chosen))


# --- activations ------------------------------------------------------------------------


def _activations(artifact: str, model: Model, node: Node) -> None:
    record = runs.current_run(artifact)
    if record is None:
        st.caption("The model was not run yet. Trace it to see what this operator made.")
        if st.button("Go to Trace", key="inspector-trace", icon=":material/play_circle:"):
            session.go("trace")
        return
    graph = model.graphs[node.graph]
    outputs = [graph.value(index) for index in node.outputs if index >= 0]
    names = {value.id: shorten(value.name, 40) for value in outputs}
    if not names:
        st.caption("This operator has no output.")
        return
    chosen = next(iter(names))
    if len(names) > 1:
        chosen = st.selectbox(
            "Output", list(names), format_func=names.__getitem__, key=f"out-{node.id}", label_visibility="collapsed"
        )
    try:
        value = tracing.described(session.actor(), record.id, chosen)
    except NotFound:
        st.caption("This run has no value for it: constants and untaken branches are not computed.")
        return
    st.markdown(mono(value.name, 80))
    activation(artifact, record, value, f"node-{value.id}", height=230)
    if st.button("Open in Activations", key=f"act-{value.id}", icon=":material/stacked_line_chart:", type="tertiary"):
        session.go("activations", trace=record.id, value=value.id)


# --- regions and borders ----------------------------------------------------------------


def _region(model: Model, box: ViewNode, *, enter: Go) -> None:
    st.markdown(f"### {plain(box.label, 60)}", anchors=False)
    if box.name and box.name != box.label:
        st.caption(mono(box.name, 200))
    if box.enterable:
        _enter(box.id, enter)
    st.caption(f"{format_text.plural(box.count, 'operator')} · {plain(box.evidence, 300)}")
    if box.detector:
        sure = f", {box.confidence:.0%} sure" if box.confidence < 1 else ""
        st.caption(f"Found by {plain(box.detector)}{sure}.")
    counts: Counter[str] = Counter()
    for member in box.members:
        numbers = node_numbers(member)
        if numbers is not None:
            c = model.graphs[numbers[0]].columns
            counts[c.strings[int(c.op_type[numbers[1]])]] += 1
    rows = [(shorten(op, 60), count) for op, count in counts.most_common(50)]
    if rows:
        st.dataframe(
            pd.DataFrame(rows, columns=["operator", "count"]),
            hide_index=True,
            key=f"region-{box.id}",
            row_height=30,
            height=30 * (min(len(rows), 10) + 1) + 3,
        )


def _border(artifact: str, model: Model, box: ViewNode, *, select: Go) -> None:
    st.markdown(f"### {plain(box.label, 60)}", anchors=False)
    value = _border_value(model, box.id)
    if value is None:
        st.caption(f"Several values that come {'in' if box.kind == 'input' else 'out'} here.")
        return
    st.caption(f"{_type(runs.current_run(artifact), value)}{_role(value)}")
    graph = model.graphs[value.graph]
    ends = [value.producer] if value.producer >= 0 else []
    for title, others in (("Made by", ends), ("Taken by", list(dict.fromkeys(value.consumers)))):
        if others:
            st.markdown(f"**{title}**")
        for other in others[:PORTS]:
            node = graph.node(other)
            label = f"{plain(node.op_type, 24)} {plain(node.name, 30)}"
            st.button(label, key=f"border-{title}-{node.id}", type="tertiary", on_click=select, args=(node.id,))


def _border_value(model: Model, name: str) -> Value | None:
    parts = name.split(".")
    if len(parts) != 3 or not (parts[1][1:].isdigit() and parts[2][1:].isdigit()):
        return None
    graph, value = int(parts[1][1:]), int(parts[2][1:])
    if graph < len(model.graphs) and value < model.graphs[graph].value_count:
        return model.graphs[graph].value(value)
    return None


def _exists(model: Model, graph: int, node: int) -> bool:
    return graph < len(model.graphs) and node < model.graphs[graph].node_count


def _enter(target: str, enter: Go) -> None:
    st.button("Enter", key=f"enter-{target}", icon=":material/login:", type="primary", on_click=enter, args=(target,))
