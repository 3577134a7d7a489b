"""Certificates: why each mask along a text is right, for a checker that shares no code with the engine.

Purpose: `certify` writes what docs/certificates.md specifies; `tokenform.certificates` checks it.
Invariant: every claim is the engine's own answer: masks, classes of tokens by the state after them, a
completion for each class, and the byte at which each refused token fails.
Complexity: a state of the text is one mask, an `advance` for each allowed token, and a walk along the bytes
of the others.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tokenform import certificates
from tokenform._core import State, TokenAutomaton, Vocabulary
from tokenform.certificates.check import FORMAT, VERSION, language
from tokenform.certificates.schema import OPTIONS
from tokenform.errors import OptionError, TokenRejected
from tokenform.frontends.byte_vocabulary import byte_vocabulary
from tokenform.frontends.grammar import Grammar


def certify(grammar: Grammar, vocabulary: Vocabulary, tokens: Sequence[int]) -> dict[str, Any]:
    """The certificate of the masks before each of the tokens and after the last, as JSON has it.

    Args:
        grammar: a regex, a choice, a grammar in GBNF, or a JSON Schema with `order="declared"`,
            `whitespace="compact"`, `numbers="natural"`, `strings="canonical"`, as far as the checker reads
            it.
        vocabulary: the tokens.
        tokens: the text, without an end token.

    Raises:
        OptionError: there are no certificates for this grammar; the message names the unsupported part.
        TokenRejected: a token is not allowed at its place.

    >>> import tokenform as tf
    >>> vocabulary = tf.Vocabulary([b"a", b"b", b"ab", b""], eos=[3])
    >>> certificate = tf.engine.certify(tf.regex("(ab)+"), vocabulary, [2])
    >>> certificate["states"][1]
    {'end': True, 'allowed': [[[[0, 0]], [1]], [[[2, 2]], []]], 'refused': [[[[1, 1]], 0]]}
    >>> tf.certificates.check(certificate)
    '1 tokens, 2 states, masks of 4 tokens'
    """
    constraint = constraint_of(grammar)
    try:
        language(constraint)
    except certificates.CannotCheck as error:
        raise OptionError(f"no certificate is written for this constraint: {error}.") from None
    automaton = grammar.compile(vocabulary)
    of_bytes = grammar.compile(byte_vocabulary())
    state, single = automaton.start, of_bytes.start
    numbers: dict[State, int] = {}
    writer = _CertificateWriter(automaton, of_bytes)
    positions, states = list[int](), list[dict[str, Any]]()
    for token in [*tokens, None]:
        if state not in numbers:
            numbers[state] = len(states)
            states.append(writer.claims(state, single))
        positions.append(numbers[state])
        if token is None:
            break
        if token in vocabulary.eos or not automaton.allows(state, token):
            raise TokenRejected(f"token {token} is not allowed at position {len(positions) - 1}.")
        state = automaton.advance(state, token)
        single = of_bytes.step_bytes(single, vocabulary.token(token))
    pieces, ends, special = vocabulary.tokens, sorted(vocabulary.eos), sorted(vocabulary.special)
    return {
        "format": FORMAT,
        "version": VERSION,
        "constraint": constraint,
        "vocabulary": {
            "sha256": certificates.vocabulary_hash(pieces, ends, special),
            "tokens": [base64.b64encode(piece).decode() for piece in pieces],
            "end": ends,
            "special": special,
        },
        "text": list(tokens),
        "positions": positions,
        "states": states,
    }


def constraint_of(grammar: Grammar) -> dict[str, Any]:
    """The constraint's text as a certificate has it."""
    form: Any = grammar.form
    language = form.get("language", {})
    if language.keys() == {"regex", "dialect"} and language["dialect"] == "python":
        return {"kind": "regex", "text": language["regex"]}
    if language.keys() == {"words"}:
        return {"kind": "choice", "texts": language["words"]}
    if form.keys() == {"gbnf", "start"}:
        return {"kind": "gbnf", "text": form["gbnf"], "start": form["start"]}
    if form.keys() == {"schema", "options"} and not form["options"]["registry"]:
        text = form["schema"] if isinstance(form["schema"], str) else json.dumps(form["schema"])
        options = {name: form["options"][name] for name in OPTIONS}
        if form["options"]["additional"] == "schema":
            return {"kind": "json_schema", "text": text, "options": options}
    raise OptionError(
        "certificates are of regexes, choices, GBNF, JSON Schema with the options of docs/certificates.md."
    )


class _CertificateWriter:
    """Writes the claims of states."""

    def __init__(self, automaton: TokenAutomaton, of_bytes: TokenAutomaton) -> None:
        self.automaton, self.of_bytes = automaton, of_bytes
        vocabulary = automaton.vocabulary
        none = {*vocabulary.eos, *vocabulary.special}
        self.texts = {n: token for n, token in enumerate(vocabulary.tokens) if token and n not in none}

    def claims(self, state: State, single: State) -> dict[str, Any]:
        allowed = [token for token in self.automaton.allowed_tokens(state).tolist() if token in self.texts]
        refused = sorted(set(self.texts) - set(allowed))
        classes = _grouped(allowed, lambda token: self.automaton.advance(state, token))
        readable = self._readable(single)
        return {
            "end": self.automaton.is_accepting(state),
            "allowed": [[_ranges(ids), self.path_to_end(after)] for after, ids in classes.items()],
            "refused": [[_ranges(ids), read] for read, ids in _grouped(refused, readable).items()],
        }

    def path_to_end(self, state: State) -> list[int]:
        """Tokens from here to an end."""
        path: list[int] = []
        while not self.automaton.is_accepting(state):
            distance = self.automaton.distance(state)
            if distance is None:
                raise OptionError(
                    "no certificate is written: an end is not known to be reachable by these tokens."
                )
            within = self.automaton.mask_within(state, distance)
            bits = int.from_bytes(within.astype("<u4").tobytes(), "little")
            path.append((bits & -bits).bit_length() - 1)
            state = self.automaton.advance(state, path[-1])
        return path

    def _readable(self, start: State) -> Callable[[int], int]:
        states: dict[bytes, State | None] = {b"": start}

        def after(prefix: bytes) -> State | None:
            if prefix not in states:
                previous = after(prefix[:-1])
                goes = previous is not None and self.of_bytes.allows(previous, prefix[-1])
                states[prefix] = self.of_bytes.advance(previous, prefix[-1]) if previous and goes else None
            return states[prefix]

        def readable(token: int) -> int:
            text = self.texts[token]
            return next((n for n in range(len(text)) if after(text[: n + 1]) is None), len(text))

        return readable


def _grouped(tokens: Iterable[int], key: Callable[[int], Any]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = {}
    for token in tokens:
        groups.setdefault(key(token), []).append(token)
    return groups


def _ranges(ids: list[int]) -> list[list[int]]:
    """Ascending numbers as ranges [first, last]."""
    ranges: list[list[int]] = []
    for number in ids:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges
