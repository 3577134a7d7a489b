# ruff: noqa: E501  (a table has one line for each entry)
"""Domains and their fields: what a record is about and how prose states each fact.

Purpose: one line a field: `keys | kind | predicates | short forms`.  `{}` is the text of the value; a
predicate follows the subject ("Ada was born in 1815"), a short form stands after a comma ("born 1815").
Alternatives are separated by `;`, spellings of the key by a blank.  In fields of kind `boolean` a
predicate holds `[no|yes]` and the text picks one of the two.
Invariant: every field has at least one key; without predicates the generic ones of `records.py` serve.
"""

from __future__ import annotations

from dataclasses import dataclass

_SPEC = """
# person people,person,contact,member,customer,author,profile,patient,student,employee,user
name full_name person customer_name | person | - | -
born birth_year year_of_birth | year | was born in {}; came into the world in {} | born {}; born in {}
birth_date date_of_birth birthday | date | was born on {} | born on {}; born {}
birthplace place_of_birth born_in | city | was born in {}; comes from {} | born in {}; from {}
age years | age | is {} years old; is {}; turned {} | aged {}; age {}; {} years old
city home town residence location | city | lives in {}; has a home in {}; moved to {} | of {}; living in {}; based in {}
country nationality | country | is from {}; is a citizen of {} | from {}
email email_address mail | email | can be reached at {}; uses {} | email {}; {}
phone telephone phone_number | phone | answers the phone at {} | phone {}; tel. {}
employer company works_for organization | company | works for {}; works at {}; is employed by {} | working for {}; of {}
job occupation profession role | engineer/teacher/doctor/lawyer/nurse/painter/writer/pilot/chef/farmer/analyst/designer | works as a {}; is a {} | a {}; {}
hobbies interests likes | topic* | likes {}; enjoys {}; is interested in {} | interested in {}; likes {}
languages speaks | language* | speaks {} | speaking {}; speaks {}
height height_cm | medium | is {} cm tall | {} cm tall
weight weight_kg | medium | weighs {} kg | weighing {} kg
children kids | small | has {} children | with {} children
married is_married | boolean | is [not married|married] | [single|married]
active is_active | boolean | is [inactive|active] | [inactive|active]
member_since joined start_date hired | date | joined on {}; started on {} | member since {}; hired on {}
salary income pay | medium | earns {} a day | earning {} a day
favorite_color color | color | likes the colour {} best | favourite colour {}
# order order,purchase,invoice,receipt,sale
order_id id order_number number reference | code | has the number {}; is filed under {} | number {}; no. {}
customer buyer client customer_name | person | was placed by {}; comes from {} | from {}; placed by {}
item product article | product | is for a {}; contains a {} | one {}; for a {}
items products articles | product* | contains {}; consists of {} | with {}
quantity count qty amount | small | is for {} pieces; counts {} units | {} pieces; quantity {}
price unit_price | decimal | costs {} euros each; is priced at {} | at {} euros each; price {}
total total_price total_amount sum | decimal | comes to {} euros in total; adds up to {} | total {}; {} euros in total
currency | EUR/USD/GBP/JPY/CHF | is paid in {} | in {}
status state order_status | new/paid/shipped/delivered/cancelled/pending/open/closed | is {}; is now {} | {}; status {}
date order_date ordered_on | date | was made on {}; dates from {} | of {}; dated {}
delivery_date due due_date | date | is due on {}; will arrive on {} | due {}; due on {}
city ship_to destination delivery_city | city | goes to {}; ships to {} | to {}; shipped to {}
paid is_paid | boolean | has [not been paid|been paid] | [unpaid|paid]
express priority_shipping | boolean | is sent by [normal mail|express] | [normal mail|express]
# event event,meeting,concert,conference,workshop,appointment
title name event subject | title | is called {}; goes by the name {} | called {}; titled {}
date day event_date | date | takes place on {}; is on {} | on {}
time start start_time starts_at | time | starts at {}; begins at {} | at {}; from {}
end end_time ends_at | time | ends at {}; is over at {} | until {}; ending at {}
city location place venue where | city | is held in {}; takes place in {} | in {}
organizer host organised_by | person | is organised by {}; is hosted by {} | hosted by {}; organised by {}
speakers guests attendees participants | first* | welcomes {}; brings together {} | with {}
topic theme | topic | is about {} | on {}; about {}
capacity seats max_attendees | medium | has {} seats; has room for {} people | {} seats
price fee ticket_price | decimal | costs {} euros to enter; costs {} | entry {} euros
room hall | code | is in room {} | room {}
online is_online virtual | boolean | is held [on site|online] | [on site|online]
duration duration_minutes length | medium | lasts {} minutes; takes {} minutes | {} minutes long
# product product,article,device,item,listing
name title product product_name | product | is sold as {} | called {}
brand manufacturer maker | company | is made by {}; comes from {} | by {}; made by {}
price cost unit_price | decimal | costs {} euros; is priced at {}; sells for {} dollars | for {} euros; priced at {}
color colour | color | is {}; comes in {} | in {}; {}
colors colours available_colors | color* | comes in {}; is available in {} | available in {}
weight weight_kg mass | decimal | weighs {} kg | weighing {} kg; {} kg
stock in_stock_count inventory units | medium | has {} units in stock | {} in stock
rating score stars | decimal | is rated {}; has a rating of {} stars | rated {}
sku code model article_number | code | has the article number {}; is listed under {} | model {}; no. {}
category type kind | furniture/clothing/electronics/toys/tools/kitchen/sports/music | belongs to {} | category {}
available in_stock | boolean | is [sold out|available] | [sold out|available]
warranty warranty_years | small | has a warranty of {} years | {} years of warranty
country origin made_in | country | is made in {} | from {}; made in {}
# company company,firm,supplier,employer,vendor
name company company_name | company | - | -
founded founded_in established | year | was founded in {}; goes back to {} | founded {}; founded in {}
founder founded_by ceo | person | was founded by {}; is led by {} | led by {}; founded by {}
headquarters city based_in | city | is based in {}; has its seat in {} | based in {}; of {}
employees staff employee_count | medium | has {} employees; employs {} people | {} employees
revenue sales turnover | decimal | made {} million last year | revenue {} million
products offers | product* | sells {}; makes {} | maker of {}
website url homepage | url | can be found at {} | {}
public is_public listed | boolean | is [privately held|publicly traded] | [private|public]
industry sector | energy/banking/food/software/mining/travel/retail | works in {} | in {}
# book book,novel,film,song,album
title name | title | is called {} | titled {}
author writer artist director | person | was made by {}; is the work of {} | by {}
year published release_year | year | came out in {}; appeared in {} | published {}; from {}
pages length | medium | has {} pages; runs to {} pages | {} pages
genre category | fantasy/crime/history/romance/drama/comedy/thriller | is a work of {}; belongs to {} | genre {}
language | language | is written in {} | in {}
publisher label studio | company | was published by {} | from {}; published by {}
rating score | decimal | is rated {} | rated {}
isbn id | code | has the number {} | no. {}
tags keywords topics | topic* | deals with {}; covers {} | on {}
# trip trip,flight,journey,booking,reservation
from origin departure_city from_city | city | leaves from {}; starts in {} | from {}
to destination arrival_city to_city | city | goes to {}; ends in {} | to {}
date departure_date travel_date | date | is on {}; leaves on {} | on {}
departure departure_time leaves_at | time | leaves at {} | leaving at {}
arrival arrival_time arrives_at | time | arrives at {} | arriving at {}
passenger traveller guest | person | is booked for {} | for {}
seats passengers travellers | small | is for {} people | {} people
flight flight_number code | code | has the number {} | number {}
airline carrier operator | company | is run by {} | with {}; by {}
price fare cost | decimal | costs {} euros; costs {} | for {} euros
class cabin | economy/business/first | is in {} class | {} class
stops stopovers via | city* | stops in {} | via {}
distance distance_km | medium | covers {} km | {} km
refundable | boolean | can [not be refunded|be refunded] | [not refundable|refundable]
# recipe recipe,dish,meal
name title dish | title | is called {} | called {}
ingredients needs | food* | needs {}; is made with {} | with {}
servings serves portions | small | serves {} people; is enough for {} | for {} people
time minutes cooking_time | medium | takes {} minutes | ready in {} minutes
cuisine origin country | country | comes from {} | from {}
calories energy | medium | has {} calories | {} calories
difficulty level | easy/medium/hard | is {} to cook | {}
vegetarian is_vegetarian | boolean | is [not vegetarian|vegetarian] | [with meat|vegetarian]
cook chef author | person | was invented by {} | by {}
# house house,flat,apartment,property,hotel
city location town | city | is in {}; lies in {} | in {}
rooms bedrooms | small | has {} rooms | {} rooms
area size area_m2 | medium | measures {} square metres | {} square metres
rent price monthly_rent | medium | costs {} a month | {} a month
owner landlord | person | belongs to {}; is owned by {} | owned by {}
built year_built | year | was built in {} | built in {}
floor level | small | is on floor {} | floor {}
garden has_garden | boolean | comes [without a garden|with a garden] | [no garden|with garden]
furnished | boolean | is [unfurnished|furnished] | [unfurnished|furnished]
street address | title | stands on {} | on {}
phone contact | phone | takes calls at {} | phone {}
# report ticket,issue,task,case,measurement,station
id ticket_id key | code | has the id {}; is tracked as {} | id {}
title subject summary | title | is titled {} | titled {}
priority severity | low/medium/high/critical/urgent | has {} priority; is {} priority | priority {}; {} priority
status state | open/closed/blocked/done/waiting/active | is {} | {}; status {}
assignee owner assigned_to | person | is assigned to {}; belongs to {} | assigned to {}
reporter created_by | person | was reported by {}; was opened by {} | opened by {}; reported by {}
created created_at opened | date | was opened on {} | opened on {}
labels tags | word* | is tagged {}; has the labels {} | tagged {}
temperature temp | decimal | reads {} degrees | {} degrees
humidity | medium | shows {} percent humidity | humidity {}
points estimate hours | small | needs {} hours; is worth {} points | {} points
resolved is_resolved fixed | boolean | is [not fixed|fixed] | [unresolved|resolved]
version release | decimal | affects version {} | version {}
"""


@dataclass(frozen=True)
class Field:
    """One fact of a domain: spellings of its key, kind of its value, ways to state it."""

    ident: str
    keys: tuple[str, ...]
    kind: str
    predicates: tuple[str, ...] = ()
    shorts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Domain:
    """A kind of thing: the nouns that it is called by and its fields."""

    name: str
    nouns: tuple[str, ...]
    fields: tuple[Field, ...]


def _forms(text: str) -> tuple[str, ...]:
    return () if text.strip() == "-" else tuple(form.strip() for form in text.split(";"))


def _read(spec: str) -> tuple[Domain, ...]:
    domains: list[Domain] = []
    head: tuple[str, tuple[str, ...]] | None = None
    fields: list[Field] = []
    for line in [*spec.strip().splitlines(), "#"]:
        if line.startswith("#"):
            if head is not None:
                domains.append(Domain(head[0], head[1], tuple(fields)))
            parts = line[1:].split()
            head, fields = ((parts[0], tuple(parts[1].split(","))) if parts else None), []
            continue
        keys, kind, predicates, shorts = (
            (part.strip() for part in line.split("|", 3)) if "[" not in line else _split(line)
        )
        names = tuple(keys.split())
        assert head is not None
        fields.append(Field(f"{head[0]}.{names[0]}", names, kind, _forms(predicates), _forms(shorts)))
    return tuple(domains)


def _split(line: str) -> tuple[str, str, str, str]:
    """Columns of a boolean line, whose brackets hold a `|` of their own: separators are ` | `."""
    keys, kind, predicates, shorts = line.split(" | ")
    return keys.strip(), kind.strip(), predicates.strip(), shorts.strip()


DOMAINS = _read(_SPEC)
