"""A query that a database takes, or a message; here the validator guides what is drawn.

Source: pydantic-ai, page "Output", sql_gen: 28 lines."""

import sqlite3
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

import tokenform as tf

database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE users (name, last_active)")


def explained(query: str) -> str:
    try:
        database.execute(f"EXPLAIN {query}")
    except sqlite3.Error as error:
        raise ValueError(f"Invalid query: {error}") from error
    return query


class Success(BaseModel):
    query: Annotated[
        str,
        Field(pattern="^SELECT (name|age|last_active|[*]) FROM (users|orders)$"),
        AfterValidator(explained),
    ]


result = tf.generate("The query is SELECT name FROM users.", schema=Success)
print(result.value)

assert database.execute(result.value.query).fetchall() == []
