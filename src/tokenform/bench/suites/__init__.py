"""Judges that run over whole data sets: the official test suite, random walks, re-spellings, hostile schemas, random ones.

`python -m tokenform.bench.suites official|walks|respell|hostile|differential`
"""
