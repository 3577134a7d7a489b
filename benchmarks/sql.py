# ruff: noqa: E501
"""What a chat model answers with SQL: held to the tables (`tf.sql`), to the syntax (`tf.grammars.sql`), or free.

    python benchmarks/sql.py MODEL [--show] [--only tf.sql]
    python benchmarks/sql.py MODEL --scale    # cost of tf.sql by the number of tables, the model's vocabulary

Twenty questions over three databases in memory.  A query counts as run where SQLite runs it, and as right
where its rows are those of the query written beforehand, in its order where that orders.  All three are told
the tables in the same words; free text is cut out of its fence, up to the first `;` or blank line.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import time

import tokenform as tf

DATABASES = {
    "shop": """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price REAL);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
            product_id INTEGER REFERENCES products(id), quantity INTEGER, ordered_on TEXT);
        INSERT INTO customers VALUES (1, 'Ann', 'Oslo'), (2, 'Bob', 'Rome'), (3, 'Cid', 'Oslo');
        INSERT INTO products VALUES (1, 'lamp', 20.5), (2, 'desk', 150), (3, 'chair', 80);
        INSERT INTO orders VALUES (1, 1, 1, 2, '2024-01-05'), (2, 1, 3, 4, '2024-02-11'), (3, 2, 2, 1, '2024-03-01');
    """,
    "school": """
        CREATE TABLE student (student_id INTEGER PRIMARY KEY, full_name TEXT, age INTEGER);
        CREATE TABLE course (course_id INTEGER PRIMARY KEY, title TEXT, credits INTEGER);
        CREATE TABLE grade (student_id INTEGER REFERENCES student, course_id INTEGER REFERENCES course, points INTEGER);
        INSERT INTO student VALUES (1, 'Mia', 20), (2, 'Leo', 23), (3, 'Eve', 21);
        INSERT INTO course VALUES (1, 'Algebra', 6), (2, 'History', 3);
        INSERT INTO grade VALUES (1, 1, 90), (1, 2, 70), (2, 1, 60);
    """,
    "world": """
        CREATE TABLE country (code TEXT PRIMARY KEY, country_name TEXT, continent TEXT, population INTEGER);
        CREATE TABLE city (city_name TEXT, country_code TEXT REFERENCES country(code), inhabitants INTEGER);
        INSERT INTO country VALUES ('NO', 'Norway', 'Europe', 5500000), ('IT', 'Italy', 'Europe', 59000000),
            ('JP', 'Japan', 'Asia', 124000000);
        INSERT INTO city VALUES ('Oslo', 'NO', 700000), ('Rome', 'IT', 2800000), ('Milan', 'IT', 1400000),
            ('Tokyo', 'JP', 14000000);
    """,
}
QUESTIONS = [
    ("shop", "How many customers are there?", "SELECT COUNT(*) FROM customers"),
    ("shop", "List the names of all products.", "SELECT name FROM products"),
    ("shop", "What is the price of the desk?", "SELECT price FROM products WHERE name = 'desk'"),
    (
        "shop",
        "Which customers live in Oslo? Give their names.",
        "SELECT name FROM customers WHERE city = 'Oslo'",
    ),
    ("shop", "What is the highest price of a product?", "SELECT MAX(price) FROM products"),
    ("shop", "List product names by price, the cheapest first.", "SELECT name FROM products ORDER BY price"),
    (
        "shop",
        "Give the names of the customers who ordered something, with the quantity of each order.",
        "SELECT customers.name, quantity FROM customers JOIN orders ON orders.customer_id = customers.id",
    ),
    (
        "shop",
        "How many orders were made for each customer id?",
        "SELECT customer_id, COUNT(*) FROM orders GROUP BY 1",
    ),
    ("school", "How many students are there?", "SELECT COUNT(*) FROM student"),
    (
        "school",
        "What are the names of students older than 20?",
        "SELECT full_name FROM student WHERE age > 20",
    ),
    ("school", "What is the average age of the students?", "SELECT AVG(age) FROM student"),
    (
        "school",
        "List the titles of courses with more than 4 credits.",
        "SELECT title FROM course WHERE credits > 4",
    ),
    ("school", "Who is the oldest student?", "SELECT full_name FROM student ORDER BY age DESC LIMIT 1"),
    (
        "school",
        "Show each student's full name with the points of their grades.",
        "SELECT full_name, points FROM student JOIN grade ON grade.student_id = student.student_id",
    ),
    ("world", "List the names of all cities.", "SELECT city_name FROM city"),
    (
        "world",
        "Which countries are in Europe?",
        "SELECT country_name FROM country WHERE continent = 'Europe'",
    ),
    ("world", "What is the total number of inhabitants of all cities?", "SELECT SUM(inhabitants) FROM city"),
    (
        "world",
        "How many countries does each continent have?",
        "SELECT continent, COUNT(*) FROM country GROUP BY 1",
    ),
    (
        "world",
        "Show each city's name with the name of its country.",
        "SELECT city_name, country_name FROM city JOIN country ON country.code = city.country_code",
    ),
    (
        "world",
        "Which cities have more than 2 million inhabitants?",
        "SELECT city_name FROM city WHERE inhabitants > 2000000",
    ),
]


def rows(connection: sqlite3.Connection, query: str) -> list[tuple[object, ...]] | str:
    """What SQLite finds, or what it says against it."""
    left = iter(range(1000))
    connection.set_progress_handler(lambda: next(left, None) is None, 10_000)
    try:
        return connection.execute(query).fetchall()
    except (sqlite3.Error, sqlite3.Warning) as error:
        return str(error)


def cut(text: str) -> str:
    """The query in an answer."""
    fenced = re.search(r"```(?:\w*\n)?(.*?)(?:```|$)", text, re.DOTALL)
    inner = fenced[1] if fenced else text
    return re.split(r";|\n\s*\n", inner.strip())[0]


def scale(model: str) -> None:
    """CPU time of a catalog of so many tables of ten columns, each but the first with a key to another."""
    vocabulary = tf.Generator(model).vocabulary
    text = "SELECT count(*), round(avg(id), 2) FROM table_5 WHERE c5_2 > 5 AND c5_4 = (SELECT max(c3_1) FROM table_3)"
    for count, joins in ((10, 2), (50, 1), (50, 2), (300, 0)):
        tables = {
            f"table_{i}": ["id", "name", *(f"c{i}_{k}" for k in range(7)), "parent_id"] for i in range(count)
        }
        keys = [
            (f"table_{i}.parent_id", f"table_{(i * 7919) % i if i < 4 else (i * 7919) % (i - 1)}.id")
            for i in range(1, count)
        ]
        begun = time.process_time()
        automaton = tf.sql(tables, keys=keys, joins=joins).compile(vocabulary)
        made = time.process_time() - begun
        automaton.mask(automaton.start)
        first, times, state = time.process_time() - begun - made, [], automaton.start
        for token in vocabulary.greedy(text.encode()) or ():
            state = automaton.advance(state, token)
            begun = time.process_time()
            automaton.mask(state)
            times.append(1e3 * (time.process_time() - begun))
        print(
            f"{count} tables, joins={joins}: made in {made:.2f} s, first mask {1e3 * first:.1f} ms, new token mean "
            f"{sum(times) / len(times):.1f} ms, at most {max(times):.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--show", action="store_true", help="print each query")
    parser.add_argument("--only", help="one of the three kinds")
    parser.add_argument("--scale", action="store_true", help="the cost of catalogs in place of questions")
    given = parser.parse_args()
    if given.scale:
        return scale(given.model)
    generator = tf.Generator(given.model)
    connections = {}
    for name, statements in DATABASES.items():
        connections[name] = sqlite3.connect(":memory:")
        connections[name].executescript(statements)
    held = {name: tf.sql(connection) for name, connection in connections.items()}
    kinds = {
        "tf.sql": held,
        "tf.grammars.sql": dict.fromkeys(held, tf.grammars.sql()),
        "free": dict.fromkeys(held),
    }
    for kind, grammars in kinds.items():
        if given.only not in (None, kind):
            continue
        ran = right = 0
        for name, question, wanted in QUESTIONS:
            prompt = question if kind == "tf.sql" else f"{held[name].told[0]}\n\n{question}"
            result = generator.sample(prompt, grammars[name], max_tokens=120)[0]
            query = result.text if kind == "tf.sql" else cut(result.text)
            found, meant = rows(connections[name], query), rows(connections[name], wanted)
            assert not isinstance(meant, str), meant
            same = (
                found == meant
                if "ORDER" in wanted
                else not isinstance(found, str) and sorted(found) == sorted(meant)
            )
            ran, right = ran + (not isinstance(found, str)), right + same
            if given.show:
                print(
                    f"{kind:16} {'right' if same else found if isinstance(found, str) else 'other'}: {query!r}"
                )
        print(f"{kind}: of {len(QUESTIONS)} SQLite runs {ran}, right are {right}")


if __name__ == "__main__":
    main()
