"""The default run draws the same examples every time: a red CI means a change, not a new draw.

New examples are looked for by `make slow`, which runs everything once more at random
(`--hypothesis-profile=default`), and by the differential and fuzz commands.
"""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None)
settings.load_profile("repeatable")
