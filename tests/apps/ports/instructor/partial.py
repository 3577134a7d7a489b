"""A model with a list of models inside while it is written.

Source: instructor, page "Partial", Understanding Partial Responses: 31 lines, its text left out."""

from pydantic import BaseModel

import tokenform as tf


class User(BaseModel):
    name: str
    email: str


class Meeting(BaseModel):
    users: list[User]
    date: str
    budget: int


prompt = "John Doe, john@email.com, comes to the meeting on March 15th; the budget is 50000."
for meeting in tf.Generator().stream(prompt, Meeting, partial=True):
    print(meeting.model_dump())
print(meeting.model_dump_json(indent=2))

assert isinstance(meeting, Meeting) and isinstance(meeting.budget, int)
