"""Judges over whole data sets: the official suite, random walks, re-spellings, hostile and random schemas.

`python -m tokenform.bench.suites official|walks|respell|hostile|differential`
"""
