# ruff: noqa: E501
"""`tf.sql`: what it accepts SQLite prepares; right queries are accepted, wrong ones end where they go wrong."""

from __future__ import annotations

import json
import pickle
import random
import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.decoding.instructions import instruction, lead_in
from tokenform.errors import InvalidGrammar, LimitExceeded, OptionError

from .walks import BYTES, written

SHOP = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, boss_id INTEGER REFERENCES customers);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), placed TEXT, total REAL);
    CREATE TABLE order_items (order_id INTEGER REFERENCES orders(id), product TEXT, "group" TEXT, price REAL, "unit price" REAL);
    CREATE VIEW big AS SELECT id AS big_id, total FROM orders;
"""
RIGHT = r"""
SELECT * FROM customers
select name from customers;
SELECT DISTINCT city FROM customers
SELECT name, city FROM customers WHERE city = 'Oslo'
SELECT customers.name FROM customers
SELECT c.name FROM customers AS c
SELECT c.name FROM customers c WHERE c.city IN ('Oslo', 'Rome')
SELECT name AS who FROM customers ORDER BY name DESC
SELECT COUNT(*) FROM orders
SELECT COUNT(1) FROM orders
SELECT count(DISTINCT customer_id) FROM orders
SELECT SUM(total), AVG(total), MIN(total), MAX(total) FROM orders
SELECT ROUND(AVG(total), 2) AS average FROM orders
SELECT customer_id, COUNT(*) AS count FROM orders GROUP BY customer_id ORDER BY count DESC LIMIT 3
SELECT customer_id FROM orders GROUP BY customer_id HAVING SUM(total) > 100 AND COUNT(*) > 2
SELECT customer_id, SUM(total) FROM orders GROUP BY customer_id ORDER BY SUM(total) DESC, customer_id
SELECT name FROM customers LIMIT 10 OFFSET 20
SELECT id FROM orders WHERE total BETWEEN 10 AND 20.5
SELECT id FROM orders WHERE total IS NOT NULL
SELECT name FROM customers WHERE name LIKE 'A%' OR city NOT LIKE '%o'
SELECT name FROM customers WHERE (city = 'Oslo' OR city = 'Rome') AND id > 3
SELECT name FROM customers WHERE NOT (city = 'Oslo')
SELECT name, total FROM customers JOIN orders ON customers.id = orders.customer_id
SELECT name, total FROM orders JOIN customers ON orders.customer_id = customers.id
SELECT c.name, o.total FROM customers c INNER JOIN orders o ON o.customer_id = c.id
SELECT c.name, COUNT(o.id) FROM customers c LEFT JOIN orders o ON c.id = o.customer_id GROUP BY c.name
SELECT c.*, o.total FROM customers c LEFT OUTER JOIN orders o ON c.id = o.customer_id
SELECT name, product FROM customers JOIN orders ON customers.id = orders.customer_id JOIN order_items ON order_items.order_id = orders.id
SELECT c.name, oi.price FROM order_items oi JOIN orders o ON oi.order_id = o.id JOIN customers c ON o.customer_id = c.id
SELECT c1.name, c2.name FROM customers c1 JOIN customers c2 ON c1.boss_id = c2.id
SELECT name FROM customers WHERE id IN (SELECT customer_id FROM orders WHERE total > 50)
SELECT name FROM customers WHERE id NOT IN (SELECT customer_id FROM orders)
SELECT id FROM orders WHERE total > (SELECT AVG(total) FROM orders)
SELECT 100.0 * COUNT(*) / (SELECT COUNT(*) FROM orders) FROM orders WHERE total > 5
SELECT city FROM customers UNION SELECT product FROM order_items ORDER BY 1
SELECT id FROM customers EXCEPT SELECT customer_id FROM orders
SELECT "group" FROM order_items
SELECT `group`, [unit price] FROM order_items
SELECT oi."unit price" * 2 FROM order_items oi
SELECT CASE WHEN total > 10 THEN 'big' ELSE 'small' END FROM orders
SELECT SUM(CASE WHEN total > 10 THEN 1 ELSE 0 END) FROM orders
SELECT strftime('%Y', placed) AS year, COUNT(*) FROM orders GROUP BY strftime('%Y', placed)
SELECT CAST(strftime('%Y', placed) AS INTEGER) FROM orders
SELECT name || ' of ' || city FROM customers
SELECT UPPER(name), LENGTH(city), COALESCE(city, 'none') FROM customers
SELECT total - 1 FROM orders ORDER BY total * -1
SELECT price FROM order_items WHERE "group" = 'it''s'
SELECT big_id FROM big
SELECT name FROM customers ORDER BY LENGTH(name)
SELECT MAX(id, boss_id) FROM customers
SELECT\n  name,\n  city\nFROM customers\nWHERE id = 1\nORDER BY name\nLIMIT 1;
"""
WRONG = [  # what is right, then what goes wrong at its first character or behind it
    ("SELECT nam", "es FROM customers", "an invented column"),
    ("SELECT name FROM customer", " ", "an invented table"),
    ("SELECT name FROM ", "orders", "a column of a table that is not in FROM"),
    ("SELECT total, name FROM orders", ";", "one of two is of a table that is not in FROM"),
    ("SELECT name FROM customers WHERE ", "total > 3", "the same behind WHERE"),
    ("SELECT name FROM customers ORDER BY ", "placed", "the same behind ORDER BY"),
    ("SELECT id FROM orders JOIN", " customers", "an ambiguous column"),
    ("SELECT customers.id FROM customers ", "c", "a table that has an alias is called by its name"),
    ("SELECT o.id FROM orders", ";", "an alias that is none"),
    ("SELECT ", "group FROM order_items", "a word that is reserved"),
    ("SELECT ", '"name" FROM customers', "quotes that a string would be put in"),
    ("SELECT name FROM customers WHERE ", "COUNT(*) > 1", "an aggregate in WHERE"),
    ("SELECT name FROM customers ORDER BY ", "COUNT(*)", "an aggregate without a group"),
    ("SELECT SUM(", "SUM(total)) FROM orders", "an aggregate in an aggregate"),
    ("SELECT city FROM customers GROUP BY ", "2", "a number for a column"),
    ("SELECT length(name", ", city) FROM customers", "too many arguments"),
    ("SELECT substr(name", ") FROM customers", "too few arguments"),
    (
        "SELECT name FROM customers WHERE id IN (SELECT customer_id",
        ", id FROM orders)",
        "two columns for one",
    ),
    ("SELECT name FROM customers WHERE id IN (SELECT ", "name2 FROM orders)", "an invented column inside"),
    ("SELECT name FROM customers JOIN orders ON customers.id = orders.", "id", "what is no key"),
    ("SELECT COUNT(*) AS n FROM orders ORDER BY ", "n", "an alias that is not among those of aliases="),
    ("SELECT id FROM orders ORDER BY ", "average", "an alias that no result has"),
    ("SELECT name ", "FROMcustomers", "words that run together"),
    ("", "DELETE FROM customers", "no query"),
]


def shop() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SHOP)
    return connection


@pytest.fixture(scope="module")
def automaton() -> tf.TokenAutomaton:
    return tf.sql(shop()).compile(BYTES)


@pytest.mark.parametrize("query", [line.replace("\\n", "\n") for line in RIGHT.strip().splitlines()])
def test_right_queries_are_accepted(query: str, automaton: tf.TokenAutomaton) -> None:
    shop().execute(f"EXPLAIN {query}")
    assert automaton.check(query.encode()) is None


def test_there_are_enough_of_them() -> None:
    assert len(RIGHT.strip().splitlines()) >= 40


@pytest.mark.parametrize(("right", "wrong", "why"), WRONG)
def test_wrong_queries_end_where_they_go_wrong(
    right: str, wrong: str, why: str, automaton: tf.TokenAutomaton
) -> None:
    state = automaton.step_bytes(automaton.start, right.encode())
    assert automaton.distance(state) is not None
    found = automaton.check((right + wrong).encode())
    assert found is not None and len(right) <= found[0] <= len(right + wrong), (why, found)


NAMES = st.one_of(
    st.sampled_from(
        [
            "id",
            "name",
            "Name2",
            "order",
            "group",
            "select",
            "from",
            "case",
            "end",
            "null",
            "now",
            '"a',
            'b"',
            'x"y',
            "z]",
            "w`v",
            "é",
            "Straße",
            "日本",
            "count",
            "total",
            "1st",
            "_",
            "a.b",
            "t'u",
            "true",
            "rowid",
            "desc",
            "AS",
            "city_id",
            "--",
            "/*",
            "[q",
            "x$",
            "o",
            "i",
            "n;",
            "by",
            "window",
            "filter",
            "K",
            "ſ",
            "\u212a",
        ]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6),
)
_folded = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})


def names(most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(NAMES, min_size=1, max_size=most, unique_by=lambda name: name.translate(_folded)).map(
        lambda found: [name for name in found if not name.lower().startswith("sqlite_")] or ["x"]
    )


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@st.composite
def databases(draw: Any) -> sqlite3.Connection:
    tables = {table: draw(names(5)) for table in draw(names(4))}
    connection = sqlite3.connect(":memory:")
    for table, columns in tables.items():
        parts = [quoted(column) for column in columns]
        for _ in range(draw(st.integers(0, 2))):
            to = draw(st.sampled_from(list(tables)))
            count = draw(st.integers(1, min(2, len(columns), len(tables[to]))))
            ends = (", ".join(map(quoted, some[:count])) for some in (columns, tables[to]))
            parts.append(f"FOREIGN KEY ({next(ends)}) REFERENCES {quoted(to)}({next(ends)})")
        connection.execute(f"CREATE TABLE {quoted(table)} ({', '.join(parts)})")
    return connection


@settings(max_examples=60, deadline=None)
@given(databases(), st.integers(0, 4), st.integers(0, 1 << 30))
def test_sqlite_prepares_what_is_accepted(connection: sqlite3.Connection, joins: int, seed: int) -> None:
    try:
        automaton, rng = tf.sql(connection, joins=joins).compile(BYTES), random.Random(seed)
    except LimitExceeded:
        return
    for _ in range(12):
        query = written(automaton, rng, rng.choice([20, 60, 150]))
        connection.execute(f"EXPLAIN {query}")


@pytest.mark.slow
def test_sqlite_prepares_thousands() -> None:
    settings(max_examples=1000, deadline=None)(test_sqlite_prepares_what_is_accepted.hypothesis.inner_test)  # type: ignore[attr-defined]


def accepted(grammar: tf.Grammar, query: str) -> bool:
    return grammar.compile(BYTES).matches(query.encode())


def test_sources_of_a_catalog_say_the_same() -> None:
    listed = {"city": ["id", "name"], "visit": ["city_id", "year"]}
    typed = {"city": {"id": int, "name": "TEXT"}, "visit": {"city_id": None, "year": "INTEGER"}}
    text = "CREATE TABLE city (id, name); CREATE TABLE visit (city_id REFERENCES city(id), year)"
    query = "SELECT name, year FROM visit JOIN city ON visit.city_id = city.id"
    for source in (listed, typed, text):
        assert accepted(tf.sql(source), query) and not accepted(tf.sql(source, joins=0), query)


def test_keys_that_are_not_declared() -> None:
    joined = "SELECT a.n FROM a JOIN b ON a.{} = b.{}"
    tables = {"a": ["isbn", "id", "name", "n", "b_id"], "b": ["isbn", "id", "name"]}
    guessed = [pair for pair in (("isbn", "isbn"), ("b_id", "id"), ("id", "id"), ("name", "name"))
               if accepted(tf.sql(tables), joined.format(*pair))]  # fmt: skip
    assert guessed == [("isbn", "isbn"), ("b_id", "id")]
    given_keys = tf.sql(tables, keys=[("a.name", "b.name")])
    assert accepted(given_keys, joined.format("name", "name"))
    assert not accepted(given_keys, joined.format("isbn", "isbn"))


class Fake:
    """A DB-API connection whose information_schema is SQLite's imitation."""

    def __init__(self) -> None:
        self.inner = sqlite3.connect(":memory:")
        self.inner.create_function("current_schema", 0, lambda: "public")
        self.inner.executescript(
            "ATTACH ':memory:' AS information_schema;"
            "CREATE TABLE information_schema.columns (table_schema, table_name, column_name, data_type, ordinal_position);"
            "CREATE TABLE information_schema.key_column_usage (constraint_schema, constraint_name, table_schema, table_name, "
            "column_name, ordinal_position, position_in_unique_constraint);"
            "CREATE TABLE information_schema.referential_constraints (constraint_schema, constraint_name, "
            "unique_constraint_schema, unique_constraint_name);"
            "INSERT INTO information_schema.columns VALUES ('public', 'City', 'id', 'int', 1), ('public', 'City', 'Name', 'text', 2),"
            "('public', 'visit', 'place', 'int', 1), ('other', 'secret', 'x', 'int', 1);"
            "INSERT INTO information_schema.key_column_usage VALUES ('public', 'City_pkey', 'public', 'City', 'id', 1, NULL),"
            "('public', 'visit_fk', 'public', 'visit', 'place', 1, 1);"
            "INSERT INTO information_schema.referential_constraints VALUES ('public', 'visit_fk', 'public', 'City_pkey');"
        )

    def cursor(self) -> Any:
        return self.inner.cursor()


def test_other_databases_are_read_by_their_information_schema() -> None:
    grammar = tf.sql(Fake(), dialect="postgresql")
    assert accepted(grammar, 'SELECT "Name" FROM visit JOIN "City" ON visit.place = "City".id')
    assert not accepted(grammar, "SELECT x FROM secret")
    assert not accepted(grammar, "SELECT Name FROM City")
    with pytest.raises(OptionError, match=r"say dialect="):
        tf.sql(Fake())


def test_views_that_are_broken_and_tables_of_sqlite_are_left_out() -> None:
    connection = shop()
    connection.executescript(
        "CREATE VIEW broken AS SELECT x FROM nowhere; CREATE TABLE auto (a INTEGER PRIMARY KEY AUTOINCREMENT)"
    )
    told = tf.sql(connection).told[0]
    assert "broken" not in told and "sqlite_" not in told and "big(big_id, total)" in told


@pytest.mark.parametrize(
    ("catalog", "options", "said"),
    [
        ({}, {}, "no table"),
        ({"a": []}, {}, "no columns"),
        ({"a": "xy"}, {}, "a list or a mapping"),
        ({"a": ["x", "X"]}, {}, "twice"),
        ({"a": ["x", "x"]}, {}, "twice"),
        ({"a": [""]}, {}, "not empty"),
        ({"a": ["\ud800"]}, {}, "surrogate"),
        (3, {}, "not int"),
        ({"a": ["x"]}, {"dialect": "oracle"}, "choose one of"),
        ({"a": ["x"]}, {"joins": 9}, "from 0 to 4"),
        ({"a": ["x"]}, {"keys": [("a.x", "b.y")]}, "pair of"),
        ({"a": ["x"]}, {"tables": ["b"]}, "has no table 'b'"),
        ({"a": ["x"]}, {"aliases": ["select"]}, "reserve"),
    ],
)
def test_mistakes_are_told(catalog: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        tf.sql(catalog, **options)


def test_statements_that_are_wrong_or_do_more_than_they_should(tmp_path: Any) -> None:
    with pytest.raises(InvalidGrammar, match="syntax error"):
        tf.sql("CREATE TABEL a (x)")
    with pytest.raises(InvalidGrammar, match="not authorized"):
        tf.sql(f"ATTACH '{tmp_path}/made.db' AS made")
    with pytest.raises(LimitExceeded, match="steps"):
        tf.sql(
            "CREATE TABLE a AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
        )
    assert not list(tmp_path.iterdir())


def test_a_connection_that_cannot_be_read() -> None:
    closed = shop()
    closed.close()
    for read in (tf.sql, tf.names):
        with pytest.raises(OptionError, match="closed"):
            read(closed)


def test_a_catalog_that_is_too_large_is_told_the_way_out() -> None:
    hub = {"hub": ["id", *(f"t{i}_id" for i in range(40))], **{f"t{i}": ["id", f"x{i}"] for i in range(40)}}
    with pytest.raises(LimitExceeded, match=r"tables=, or joins=1"):
        tf.sql(hub)
    assert accepted(tf.sql(hub, joins=1), "SELECT x3 FROM t3 JOIN hub ON hub.t3_id = t3.id")
    assert accepted(tf.sql(hub, tables=["hub", "t3"]), "SELECT x3 FROM t3 JOIN hub ON t3.id = hub.t3_id")


def test_it_composes() -> None:
    grammar = tf.sql({"a": ["x"]})
    document = tf.json_schema(
        {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        strings_in={"/properties/q": grammar},
    )
    assert accepted(document, json.dumps({"q": "SELECT x FROM a WHERE x = 'é\"'"}))
    assert not accepted(document, json.dumps({"q": "SELECT y FROM a"}))
    assert accepted("```sql\n" + grammar + "\n```", "```sql\nSELECT x FROM a\n```")
    again = pickle.loads(pickle.dumps(grammar))
    assert again.told == grammar.told and accepted(again, "SELECT x FROM a")
    assert accepted(tf.Grammar.from_bytes(grammar.to_bytes()), "SELECT x FROM a")


def test_a_model_is_told_the_tables() -> None:
    grammar = tf.sql(shop())
    assert instruction(grammar, "auto").startswith(
        "Answer with one SQLite query over the tables customers(id, name, city, boss_id)"
    )
    assert 'order_items(order_id, product, "group", price, "unit price")' in instruction(grammar, "auto")
    assert "orders.customer_id = customers.id" in instruction(grammar, "auto")
    assert instruction(grammar, False) == "" and lead_in(grammar) == "```sql\n"
    many = tf.sql({f"table_{i}": [f"column_{k}" for k in range(20)] for i in range(10)}, joins=0)
    assert instruction(many, "auto").endswith("table_8, table_9.") and "column_3" in instruction(many, True)
