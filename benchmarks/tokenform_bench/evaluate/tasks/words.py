"""The words of the extraction tasks, written for them: names, things, places, opinions, reports.

Every list is cut in two by `half`: the tasks in the open are made of one half, those kept aside of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

NAMES = (
    "Karl Berg", "Amara Osei", "Lucía Fernández", "Tom Whitaker", "Yuki Tanaka", "Priya Nair",
    "Jonas Lindqvist", "Fatima Rahman", "Marek Novák", "Grace Mwangi", "Elena Petrova", "Samuel Okoro",
    "Hannah Weiss", "Diego Ramos", "Ingrid Solberg", "Omar Haddad", "Chloé Martin", "Viktor Hahn", "Mei Chen",
    "Patrick O'Neill", "Zofia Kowalska", "Rafael Costa", "Nadia Karim", "Erik Johansson",
)  # fmt: skip
CITIES = (
    "Oslo", "Porto", "Nairobi", "Kyoto", "Leeds", "Gdańsk", "Lima", "Utrecht", "Tampere", "Accra", "Seville",
    "Quebec", "Zagreb", "Hanoi", "Galway", "Turin",
)  # fmt: skip
JOBS = (
    "plumber", "librarian", "nurse", "architect", "baker", "pilot", "translator", "gardener", "welder",
    "teacher", "dentist", "surveyor",
)  # fmt: skip
GOODS = (
    "desk", "lamp", "office chair", "kettle", "bookcase", "rug", "mirror", "toaster", "stool", "blender",
    "pillow", "heater", "clock", "vase", "bench", "ladder",
)  # fmt: skip
PRODUCTS = (
    "Nimbus Tent", "Arlo Backpack", "Volta Headphones", "Juno Watch", "Pico Speaker", "Terra Boots",
    "Lumen Torch", "Orbit Keyboard", "Sable Jacket", "Fjord Bottle", "Cirrus Scarf", "Delta Helmet",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "black", "white", "grey", "orange", "purple", "yellow", "brown")
EVENTS = (
    "Harbour Jazz Night", "Spring Book Fair", "Robotics Open Day", "Lantern Parade", "City Half Marathon",
    "Cheese Festival", "Astronomy Evening", "Vintage Car Show", "Choir Weekend", "Chess Open",
    "Kite Festival", "Poetry Slam",
)  # fmt: skip
PLACES = (
    "Town Hall", "Riverside Park", "Harbour House", "Central Library", "Pier 7", "Villa Rosa", "Hall B",
    "Stadium West", "Market Square", "Castle Inn",
)  # fmt: skip
VENDORS = (
    "Brightwater Ltd", "Kestrel Supplies", "Nordlicht GmbH", "Pinecrest Foods", "Atlas Freight",
    "Hollow Oak Media", "Ostara Textiles", "Quill & Sons", "Redstone Power", "Silverline Cleaning",
)  # fmt: skip
ROOMS = ("Maple", "Cedar", "Birch", "Aspen", "Willow", "Juniper", "Rowan", "Hazel")
COMPONENTS = (
    "login page", "search index", "mail gateway", "billing export", "mobile app", "image upload",
    "report viewer", "password reset", "calendar sync", "payment form",
)  # fmt: skip
DISHES = (
    "lentil soup", "apple crumble", "rye bread", "mushroom risotto", "potato salad", "pancakes",
    "tomato stew", "carrot cake",
)  # fmt: skip
INGREDIENTS = (
    "flour", "butter", "sugar", "lentils", "onions", "apples", "rice", "mushrooms", "potatoes", "tomatoes",
    "carrots", "milk", "oats", "cheese",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
OPINIONS = {
    "positive": (
        "works better than I had hoped, and I would buy it again tomorrow",
        "is a joy to use; my whole family loves it",
        "arrived early, looks beautiful and does its job perfectly",
        "has exceeded every expectation, five stars from me",
        "is the best purchase I have made this year",
        "feels solid and well made, I could not be happier",
    ),
    "negative": (
        "broke after two days, and nobody answers my mails",
        "is a waste of money; please do not buy it",
        "smells awful and fell apart in my hands",
        "never worked at all, I want my money back",
        "is the worst thing I have ordered in years",
        "was a bitter disappointment, cheap and badly made",
    ),
    "neutral": (
        "does what it says, nothing more and nothing less",
        "came on Tuesday; I have not formed an opinion yet",
        "is neither good nor bad, simply average",
        "is about the same as the one I had before",
        "is all right for the price, I suppose",
        "has some good sides and some bad ones, so it evens out",
    ),
}
REPORTS = {
    "sports": (
        "The home side scored twice in extra time and lifted the cup.",
        "She broke the national record over 400 metres hurdles.",
        "The goalkeeper saved three penalties in the semi-final.",
        "After five sets the young tennis player won the final.",
    ),
    "politics": (
        "Parliament passed the budget by a margin of four votes.",
        "The minister resigned after the vote of no confidence.",
        "Voters go to the polls on Sunday to elect a new mayor.",
        "The two coalition parties agreed on a new election law.",
    ),
    "science": (
        "Researchers found water vapour in the atmosphere of a distant planet.",
        "A new enzyme breaks down plastic within hours, a laboratory reports.",
        "The telescope recorded the collision of two neutron stars.",
        "Biologists have sequenced the genome of a deep-sea squid.",
    ),
    "business": (
        "The carmaker's shares fell nine percent after weak quarterly results.",
        "The two banks announced a merger worth four billion.",
        "The retailer will close forty shops and cut its dividend.",
        "The start-up raised sixty million from investors to build batteries.",
    ),
    "culture": (
        "The gallery opens an exhibition of early watercolours.",
        "The novelist's second book won the literary prize.",
        "The orchestra plays a forgotten symphony for the first time in a century.",
        "The director's new film had its premiere at the festival.",
    ),
}


def half(values: Sequence[T], aside: bool) -> Sequence[T]:
    """Every second value: those in the open, or those kept aside."""
    return values[int(aside) :: 2]
