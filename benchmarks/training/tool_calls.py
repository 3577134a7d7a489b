# ruff: noqa: E501  (a table has one line for each entry)
"""Tool calls: a question and a list of tools -> a call; the tool's result -> a sentence.

Purpose: the agent loop's share of the training data, in the hermes format.
Invariant: every argument of the call can be read off the question, and every figure of the answer off the result.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import fields as F
from . import values
from .pools import Pools
from .records import draw_facts, object_schema, write_facts

_SPEC = """
get_weather weather forecast | Get the weather of a city. | city:city | What is the weather in {city}?;How is the weather in {city} today?;Do I need a coat in {city}? | temperature:decimal condition:sunny/cloudy/rainy/windy/snowy | It is {condition} in {city}, with {temperature} degrees.;The weather in {city} is {condition}, {temperature} degrees.
get_time current_time | Get the local time of a city. | city:city | What time is it in {city}?;Tell me the time in {city}. | time:time | It is {time} in {city}.;The time in {city} is {time}.
convert_currency exchange | Convert an amount of money. | amount:decimal source:USD/EUR/GBP/JPY target:CHF/SEK/PLN/CAD | How much is {amount} {source} in {target}?;Convert {amount} {source} to {target}. | result:decimal | {amount} {source} are {result} {target}.;That is {result} {target}.
search_flights find_flights | Find flights between two cities. | origin:city destination:city date:date | Find a flight from {origin} to {destination} on {date}.;I want to fly from {origin} to {destination} on {date}. | flight:code price:decimal | Flight {flight} from {origin} to {destination} costs {price} euros.;The flight {flight} costs {price} euros.
book_table reserve_table | Book a table in a restaurant. | restaurant:title people:small time:time | Book a table for {people} at {restaurant} at {time}.;Reserve {people} seats in {restaurant} for {time}. | code:code | Your table for {people} is booked, the code is {code}.;Done: {restaurant} at {time}, code {code}.
send_email send_message | Send a message to somebody. | to:email subject:title | Write to {to} about {subject}.;Send an email to {to} with the subject {subject}. | id:code | The message to {to} was sent as {id}.;Sent, the id is {id}.
get_stock_price stock_price | Get the price of a share. | company:company | What does a share of {company} cost?;How is the stock of {company} doing? | price:decimal currency:USD/EUR/GBP | A share of {company} costs {price} {currency}.;{company} stands at {price} {currency}.
set_timer start_timer | Start a timer. | minutes:medium label:word | Set a timer of {minutes} minutes for the {label}.;Start a {label} timer with {minutes} minutes. | ends_at:time | The {label} timer ends at {ends_at}.;Timer set, it rings at {ends_at}.
add add_numbers | Add two numbers. | a:integer b:integer | What is {a} plus {b}?;Add {a} and {b}. | sum:integer | {a} plus {b} is {sum}.;The sum is {sum}.
find_person lookup_contact | Look up a person. | name:person | Who is {name}?;Find the contact details of {name}. | email:email city:city | {name} lives in {city} and uses {email}.;You can reach {name} in {city} at {email}.
get_population population | Get the population of a city. | city:city year:year | How many people lived in {city} in {year}?;What was the population of {city} in {year}? | population:integer | In {year}, {population} people lived in {city}.;{city} had {population} people in {year}.
play_music play_song | Play a piece of music. | title:title artist:person | Play {title} by {artist}.;I would like to hear {title} by {artist}. | playing:boolean | Now playing {title} by {artist}.;Enjoy {title}.
check_stock inventory | Check how many pieces are in stock. | product:product | How many pieces of {product} do we have?;Is there any {product} in stock? | count:integer shelf:code | There are {count} pieces of {product} on shelf {shelf}.;We have {count} on shelf {shelf}.
distance route | Get the distance between two cities. | start:city end:city | How far is it from {start} to {end}?;What is the distance between {start} and {end}? | km:integer | It is {km} km from {start} to {end}.;The distance is {km} km.
"""

_VERBS = ["create", "update", "register", "book", "search", "add", "store", "save", "find", "cancel"]
_SMALL_TALK = (
    ("Hello!", "Hello! How can I help you?"),
    ("Hi there.", "Hello! How can I help you?"),
    ("Thank you.", "You are welcome!"),
    ("Thanks a lot!", "You are welcome!"),
    ("Good morning.", "Good morning! What can I do for you?"),
    ("What can you do?", "I can answer questions and call the tools that you give me."),
)


@dataclass(frozen=True)
class Turn:
    """One answer of the assistant: the tools, the messages before it, and its text."""

    tools: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    answer: str


@dataclass(frozen=True)
class Family:
    """A tool with its arguments, the questions that call for it, its result and the answers."""

    names: tuple[str, ...]
    description: str
    arguments: tuple[tuple[str, str], ...]
    questions: tuple[str, ...]
    results: tuple[tuple[str, str], ...]
    answers: tuple[str, ...]


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (item.split(":", 1) for item in text.split())
    return tuple((key, kind) for key, kind in pairs)


def _read(line: str) -> Family:
    names, description, arguments, questions, results, answers = (part.strip() for part in line.split(" | "))
    return Family(
        tuple(names.split()),
        description,
        _pairs(arguments),
        tuple(q.strip() for q in questions.split(";")),
        _pairs(results),
        tuple(a.strip() for a in answers.split(";")),
    )


FAMILIES = tuple(_read(line) for line in _SPEC.strip().splitlines())


def _definition(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def _family_tool(p: Pools, family: Family) -> dict[str, Any]:
    drawn = {key: values.draw(p, kind).schema for key, kind in family.arguments}
    for key, kind in family.arguments:
        if "/" in kind:
            drawn[key] = {"type": "string", "enum": kind.split("/")}
    parameters = {"type": "object", "properties": drawn, "required": list(drawn)}
    return _definition(p.rng.choice(family.names), family.description, parameters)


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A call in the hermes format."""
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def _with_distractors(p: Pools, tool: dict[str, Any], family: Family | None) -> list[dict[str, Any]]:
    others = [f for f in FAMILIES if f is not family]
    tools = [tool, *(_family_tool(p, f) for f in p.rng.sample(others, p.rng.choice([0, 1, 1, 2])))]
    p.rng.shuffle(tools)
    return tools


def _call_message(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def draw_family_turn(p: Pools) -> Turn:
    """A turn about one of the known tools: the call, or the answer after the result."""
    family = p.rng.choice(FAMILIES)
    tool = _family_tool(p, family)
    name = tool["function"]["name"]
    drawn = {key: values.draw(p, kind) for key, kind in family.arguments}
    texts = {key: v.text for key, v in drawn.items()}
    arguments = {key: v.value for key, v in drawn.items()}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": p.rng.choice(family.questions).format(**texts)}
    ]
    tools = _with_distractors(p, tool, family)
    if p.rng.random() < 0.6:
        return Turn(tools, messages, call_text(name, arguments))
    results = {key: values.draw(p, kind) for key, kind in family.results}
    body = json.dumps({key: v.value for key, v in results.items()}, ensure_ascii=False)
    messages += [_call_message(name, arguments), {"role": "tool", "name": name, "content": body}]
    shown = {**arguments, **{key: v.value for key, v in results.items()}}
    return Turn(tools, messages, p.rng.choice(family.answers).format(**shown))


def draw_record_turn(p: Pools) -> Turn:
    """A turn about an unheard-of tool whose arguments are the facts of a record."""
    domain = p.rng.choice(F.DOMAINS)
    noun, verb = p.rng.choice(domain.nouns), p.rng.choice(_VERBS)
    facts, _ = draw_facts(p, domain, p.rng.randint(1, 4))
    style = p.rng.choice(["sentences", "line", "labels", "list"])
    text = write_facts(p, f"The {noun}", "It", facts, style)
    opening = p.rng.choice(
        [f"Please {verb} this {noun}.", f"Can you {verb} a {noun}?", f"{verb.capitalize()} the {noun}."]
    )
    p.rng.shuffle(facts)
    name = f"{verb}_{noun}"
    parameters = object_schema(facts, p.rng)
    tool = _definition(name, f"{verb.capitalize()} a {noun}.", parameters)
    arguments = {f.key: f.value.value for f in facts}
    messages = [{"role": "user", "content": f"{opening} {text}"}]
    return Turn(_with_distractors(p, tool, None), messages, call_text(name, arguments))


def draw_turn(p: Pools) -> Turn:
    """One turn of an agent loop."""
    r = p.rng.random()
    if r < 0.03:
        question, answer = p.rng.choice(_SMALL_TALK)
        tools = (
            _with_distractors(p, _family_tool(p, FAMILIES[0]), FAMILIES[0]) if p.rng.random() < 0.7 else []
        )
        return Turn(tools, [{"role": "user", "content": question}], answer)
    return draw_family_turn(p) if r < 0.65 else draw_record_turn(p)
