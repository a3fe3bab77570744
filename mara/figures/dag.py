"""The workflow's rules and what each waits for, laid out in layers from the workflow's own graph."""

from __future__ import annotations

import re

from mara.errors import InputError
from mara.figures.style import COLOURS, FAINT, Drawn, panels, run

NODE = re.compile(r'^\s*(\d+)\s*\[label\s*=\s*"([^"\\]+)', re.MULTILINE)
EDGE = re.compile(r"^\s*(\d+)\s*->\s*(\d+)", re.MULTILINE)


def parse(rulegraph: str) -> tuple[dict[int, str], list[tuple[int, int]]]:
    """Nodes and edges (from, to) of a rule graph in Graphviz's language.

    Raises:
        InputError: there is no node in the text.
    """
    nodes = {int(number): label for number, label in NODE.findall(rulegraph)}
    edges = [(int(a), int(b)) for a, b in EDGE.findall(rulegraph)]
    if not nodes:
        raise InputError("rule graph: no node in it; give the output of snakemake --rulegraph dot")
    return nodes, [(a, b) for a, b in edges if a in nodes and b in nodes and a != b]


def layers(nodes: dict[int, str], edges: list[tuple[int, int]]) -> dict[int, int]:
    """Layer of every node: the longest chain of rules before it.

    Raises:
        InputError: the graph has a cycle.
    """
    depth = dict.fromkeys(nodes, 0)
    for _ in range(len(nodes)):
        changed = [(b, depth[a] + 1) for a, b in edges if depth[b] <= depth[a]]
        if not changed:
            return depth
        for node, value in changed:
            depth[node] = max(depth[node], value)
    raise InputError("rule graph: it has a cycle; the rules of a workflow cannot wait for each other")


def without_shortcuts(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges that no longer chain of edges replaces; the graph must have no cycle."""
    after: dict[int, set[int]] = {}
    for a, b in edges:
        after.setdefault(a, set()).add(b)

    def reached(node: int) -> set[int]:
        seen, todo = set[int](), [node]
        while todo:
            for following in after.get(todo.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return seen

    beyond = {node: set().union(*(reached(b) for b in after[node])) for node in after}
    return [(a, b) for a, b in edges if b not in beyond[a]]


def spread(nodes: dict[int, str], edges: list[tuple[int, int]], depth: dict[int, int]) -> dict[int, float]:
    """Place across the layer, in [0, 1], sorted by the mean place of the neighbours (a few sweeps)."""
    members = [sorted(n for n in nodes if depth[n] == level) for level in range(max(depth.values()) + 1)]
    place = {n: (i + 0.5) / len(layer) for layer in members for i, n in enumerate(layer)}
    near: dict[int, list[int]] = {n: [] for n in nodes}
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    for _ in range(8):
        for layer in members:
            mean = {n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n] for n in layer}
            layer.sort(key=lambda n: (mean[n], n))
            place.update({n: (i + 0.5) / len(layer) for i, n in enumerate(layer)})
    return place


def draw(rulegraph: str) -> Drawn:
    """Rules as boxes, the first to run on top, lines to the rules that wait for them."""
    nodes, edges = parse(rulegraph)
    depth = layers(nodes, edges)
    dependencies = len(edges)
    edges = without_shortcuts(edges)
    place = spread(nodes, edges, depth)
    deepest = max(depth.values())
    figure, axes = panels(1, 1, 0.7 + 0.52 * (deepest + 1))
    axis = axes[0, 0]
    for a, b in edges:
        axis.annotate(
            "",
            (place[b], depth[b] - 0.2),
            xytext=(place[a], depth[a] + 0.2),
            arrowprops={"arrowstyle": "-|>", "color": FAINT, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
        )
    for node, label in nodes.items():
        axis.text(
            place[node],
            depth[node],
            label.replace("_", " "),
            ha="center",
            va="center",
            fontsize=7.5,
            color="white",
            bbox={"boxstyle": "round,pad=0.35", "facecolor": COLOURS["lara"], "edgecolor": "none"},
        )
    axis.set_xlim(0, 1)
    axis.set_ylim(deepest + 0.5, -0.5)
    axis.set_axis_off()
    order = sorted(nodes, key=lambda n: (depth[n], n))
    return Drawn(
        figure,
        f"The workflow: {len(nodes)} rules from curves to this report",
        "Each box is a rule, each line a file that one rule writes and another reads; lines that a longer way "
        "replaces are left out, and rules at one height can run at the same time. n = "
        f"{len(nodes)} rules, {dependencies} dependencies of which {len(edges)} are drawn.",
        "Directed graph of rules in order: " + ", ".join(nodes[n] for n in order),
    )


if __name__ == "__main__":
    run(draw, __doc__)
