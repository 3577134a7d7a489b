"""Tries on disk, bit for bit.

Invariant: load(save(t)) samples exactly as t does, and saves to the same bytes.  Every float is stored as it
is, every child with its place; nodes are written parents first, so that one pass rebuilds the tree.  States
of the constraint are not stored: they are numbers of a process and are found again by walking.
Complexity: linear in the trie.  Rejected: JSON (floats by text) and pickle (runs code of the file).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.trie import Trie, TrieNode
from tokenform.errors import DataError, TokenformError

FORMAT = 1


def save_trie(trie: Trie, path: str | Path) -> None:
    """Writes a trie as an npz file."""
    nodes = list(trie.walk())
    place = {id(node): i for i, node in enumerate(nodes)}
    thetas = [(i, index, value) for i, node in enumerate(nodes) for index, value in node.theta.items()]
    head = {
        "format": FORMAT,
        "fingerprint": trie.fingerprint,
        "limit": trie.limit_bytes,
        "eos": trie.eos,
        "restricted": trie.restricted,
        "clock": trie.clock,
        "evicted": trie.evicted,
        "bytes": trie.bytes,
    }
    arrays = {
        "head": np.frombuffer(json.dumps(head, sort_keys=True).encode(), dtype=np.uint8),
        "parent": np.array([-1 if n.parent is None else place[id(n.parent)] for n in nodes], dtype=np.int64),
        "index": np.array([n.index for n in nodes], dtype=np.int64),
        "length": np.array([len(n.ids) for n in nodes], dtype=np.int64),
        "stamp": np.array([n.stamp for n in nodes], dtype=np.int64),
        "sums": np.array([(n.log_theta, n.log_known, n.log_eos) for n in nodes], dtype=np.float64).reshape(
            -1, 3
        ),
        "ids": np.concatenate([n.ids for n in nodes]) if nodes else np.empty(0, np.int64),
        "logf": np.concatenate([n.logf for n in nodes]) if nodes else np.empty(0, np.float64),
        "theta_place": np.array([(i, index) for i, index, _ in thetas], dtype=np.int64).reshape(-1, 2),
        "theta_value": np.array([value for _, _, value in thetas], dtype=np.float64),
    }
    with Path(path).open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load_trie(path: str | Path, problem: Problem) -> Trie:
    """Reads a trie that `save_trie` wrote, for the problem that it was learned from.

    Raises DataError if the file is not such a trie, OptionError if it belongs to another problem.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        head = json.loads(arrays["head"].tobytes())
        if head["format"] != FORMAT:
            raise DataError(
                f"{path} is a trie of format {head['format']}, this version reads {FORMAT}; learn it anew"
            )
        trie = Trie(problem, limit_bytes=head["limit"], restricted=head["restricted"])
        trie.fingerprint = head["fingerprint"]
        trie.belongs_to(problem)
        trie.clock, trie.evicted, trie.bytes = head["clock"], head["evicted"], head["bytes"]
        _check(arrays)
        _rebuild(trie, arrays)
    except TokenformError:
        raise
    except Exception as error:  # a broken archive raises whatever its reader raises
        raise DataError(f"{path} is not a saved trie: {error or type(error).__name__}") from error
    return trie


def _check(arrays: dict[str, np.ndarray]) -> None:
    """Refuses arrays that are no tree: what a changed file says would be believed, and bend every draw.

    Raises:
        DataError: which of them, and what is wrong.
    """
    parent, index, length = arrays["parent"], arrays["index"], arrays["length"]
    places, count = np.arange(len(parent)), len(parent)
    above = np.maximum(parent, 0)
    theta, where = arrays["theta_value"], arrays["theta_place"]
    distributions = (
        (count > 0 and len(index) == len(length) == len(arrays["stamp"]) == count, "nodes of one number"),
        (arrays["sums"].shape == (count, 3), "three sums a node"),
        (parent[:1].tolist() == [-1] and bool((parent[1:] >= 0).all()), "one root, written first"),
        (bool((parent < places).all()), "parents before their children"),
        (bool((length >= 0).all()), "lengths that are no less than 0"),
        (int(length.sum()) == len(arrays["ids"]) == len(arrays["logf"]), "a distribution for every token"),
        (bool(((index >= 0) & (index < length[above]))[1:].all()), "children among their parent's tokens"),
        (where.shape == (len(theta), 2), "a place for every bound"),
        (
            bool(((where[:, 0] >= 0) & (where[:, 0] < count) & (where[:, 1] >= 0)).all())
            and bool((where[:, 1] < length[where[:, 0]]).all()),
            "bounds of tokens that are there",
        ),
        (
            not any(np.isnan(values).any() for values in (arrays["sums"], arrays["logf"], theta)),
            "no number that is none",
        ),
        (bool((arrays["logf"] <= 1e-9).all() and (theta <= 1e-9).all()), "no share above 1"),
    )
    for holds, message in distributions:
        if not holds:
            raise DataError(f"the saved trie is broken: it should have {message}; learn it anew")


def _rebuild(trie: Trie, arrays: dict[str, np.ndarray]) -> None:
    ends = np.cumsum(arrays["length"])
    nodes: list[TrieNode] = []
    for i, (parent, index) in enumerate(
        zip(arrays["parent"].tolist(), arrays["index"].tolist(), strict=True)
    ):
        span = slice(int(ends[i] - arrays["length"][i]), int(ends[i]))
        above = nodes[parent] if parent >= 0 else None
        node = TrieNode(arrays["ids"][span], arrays["logf"][span], above, index)
        node.stamp = int(arrays["stamp"][i])
        node.log_theta, node.log_known, node.log_eos = (float(value) for value in arrays["sums"][i])
        if above is None:
            trie.root = node
        else:
            above.children[index] = node
        nodes.append(node)
    for (i, index), value in zip(arrays["theta_place"].tolist(), arrays["theta_value"].tolist(), strict=True):
        nodes[i].theta[index] = value
    trie.nodes = len(nodes)
