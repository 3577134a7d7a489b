from tokenform_bench.commands import app

app()
