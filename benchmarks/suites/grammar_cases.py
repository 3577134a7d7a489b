"""Texts of five languages, for the comparison of engines on context-free grammars.

Purpose: what a model writes: records in JSON, queries, functions in C, formulas.
Invariant: every text is one of its grammar in `grammars/`.
Rejected: random walks (they are of the grammar, but nobody writes them).
"""

from __future__ import annotations

import json

_RECORD = {
    "id": 4711,
    "name": "Ada Lovelace",
    "born": {"year": 1815, "place": "London", "exact": True},
    "works": ["Notes on the Analytical Engine", 'Sketch of a flying machine "Flyology"'],
    "scores": [0.5, -3, 1e6, 22.75],
    "spouse": None,
    "links": [{"href": "https://example.org/a?b=c#d", "rel": "self"}, {"href": "/x/y", "rel": "next"}],
}
_ORDER = {
    "order": "A-2026-118",
    "lines": [{"sku": f"SKU{i:04d}", "qty": i + 1, "price": 9.99 * (i + 1)} for i in range(6)],
    "ship_to": {"street": "12 Rue de l'Église", "city": "Genève", "zip": "1204"},
    "paid": False,
}

_SQL = [
    "SELECT name FROM singer WHERE age > 20",
    "SELECT T2.name, count(*) FROM concert AS T1 JOIN stadium AS T2 ON T1.stadium_id = T2.stadium_id "
    "WHERE T1.year >= 2014 GROUP BY T1.stadium_id ORDER BY count(*) DESC LIMIT 1",
    "SELECT DISTINCT country FROM airports WHERE elevation BETWEEN -50 AND 50 OR code LIKE '%AB%';",
    "select avg(salary), max(salary) from employees e where e.department_id in "
    "(select id from departments where budget > (select avg(budget) from departments))",
    "SELECT a.first_name || ' ' || a.last_name AS full_name, COALESCE(SUM(o.total), 0) AS revenue\n"
    "FROM accounts a\nLEFT JOIN orders o ON o.account_id = a.id AND o.status <> 'cancelled'\n"
    "GROUP BY a.id\nHAVING SUM(o.total) > 1000.50\nORDER BY revenue DESC, full_name ASC\nLIMIT 10 OFFSET 20;",
    "WITH monthly AS (SELECT strftime('%Y-%m', created_at) AS m, COUNT(*) AS n FROM events GROUP BY m) "
    "SELECT m, n, n - LAG(n) OVER (ORDER BY m) AS delta FROM monthly WHERE n IS NOT NULL",
    "SELECT CASE WHEN score >= 90 THEN 'A' WHEN score >= 80 THEN 'B' ELSE 'C' END AS grade, COUNT(*) "
    "FROM exams GROUP BY grade",
    "SELECT product_name FROM products EXCEPT SELECT product_name FROM products WHERE EXISTS "
    "(SELECT 1 FROM sales WHERE sales.product_id = products.id AND sales.sold_on < '2026-01-01')",
]

_C = [
    "static int gcd(int a, int b) {\n    /* Greatest common divisor. */\n"
    "    while (b != 0) {\n        int t = a % b;\n        a = b;\n        b = t;\n    }\n"
    "    return a;\n}\n\n"
    "int main(int argc, char **argv) {\n    int d = gcd(48, 18);\n"
    '    printf("%d\\n", d);\n    return 0;\n}\n',
    "typedef struct node {\n    struct node *next;\n    unsigned long key;\n    char name[32];\n} node_t;\n\n"
    "node_t *find(node_t *head, unsigned long key)\n{\n    for (node_t *p = head; p != NULL; p = p->next) {\n"
    "        if (p->key == key && p->name[0] != '\\0')\n            return p;\n    }\n    return NULL;\n}\n",
    "enum state { IDLE, BUSY = 4, DONE };\n\nvoid step(enum state *s, double dt)\n{\n    switch (*s) {\n"
    "    case IDLE:\n        *s = dt > 0.5 ? BUSY : IDLE;\n        break;\n    case BUSY:\n"
    "        *s = DONE; // finished\n        break;\n    default:\n        *s = IDLE;\n    }\n}\n",
    "static void sort(int *v, size_t n) {\n    for (size_t i = 1; i < n; ++i) {\n        int x = v[i];\n"
    "        size_t j = i;\n        while (j > 0 && v[j - 1] > x) {\n            v[j] = v[j - 1];\n"
    "            j--;\n        }\n        v[j] = x;\n    }\n}\n",
]

_ARITHMETIC = [
    "1 + 2 * 3",
    "(a + b) ^ 2 / (c - 4.75) * -x",
    "sin(2 * pi * f * t + phi) / sqrt(1 + (x / x0) ^ 2)",
    "max(0, min(1, (value - low) / (high - low))) * 255",
    "((x1 - x2) ^ 2 + (y1 - y2) ^ 2) ^ 0.5 - 1.5e-3",
    "rate * (1 + rate) ^ n / ((1 + rate) ^ n - 1) * principal",
    "0.5 * m * v ^ 2 + m * 9.81 * h - 3 * (k + 12)",
]

_PYTHON = [
    'def gcd(a: int, b: int) -> int:\n    """Greatest common divisor."""\n    while b:\n'
    "        a, b = b, a % b\n    return a\n",
    "@dataclass(frozen=True)\nclass Point:\n    x: float = 0.0\n    y: float = 0.0\n\n"
    "    def norm(self) -> float:\n        return (self.x ** 2 + self.y ** 2) ** 0.5\n",
    "with open(path, encoding='utf-8') as lines:\n    for number, line in enumerate(lines, 1):\n"
    "        if not line.strip() or line.startswith('#'):\n            continue\n"
    "        name, _, value = line.partition('=')\n        settings[name.strip()] = value.strip()\n"
    "        print(number, settings)\n",
    "try:\n    rows = [fetch(key, timeout=2.5) for key in sorted(keys) if key not in seen]\n"
    "except (KeyError, TimeoutError) as error:\n    raise RuntimeError('no rows') from error\n"
    "else:\n    total = sum(row['price'] * row['count'] for row in rows)\n",
]

TEXTS: dict[str, list[str]] = {
    "json": [json.dumps(_RECORD), json.dumps(_ORDER, indent=2, ensure_ascii=False)],
    "sql": _SQL,
    "c": _C,
    "arithmetic": _ARITHMETIC,
    "python": _PYTHON,
}
"""Valid texts by the name of their grammar."""
