"""The command: results on standard output, one sentence on standard error, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tokenform.cli import app

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "shapes_of_test_cli.py").write_text(
        "import dataclasses\n@dataclasses.dataclass\nclass Point:\n    x: int\n    y: int\n"
    )

    def call(*arguments, stdin=None):
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return call


def one_sentence(result) -> str:
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("tokenform: ")
    return line


def test_check_accepts_what_writers_write(run, tmp_path):
    (tmp_path / "good.json").write_text('{ "age":36,\n  "name": "\\u00c5da"}\n')
    result = run("check", "good.json", "-s", "schema.json")
    assert (result.exit_code, result.stdout) == (0, "accepted\n")
    assert (
        run("check", "-s", "schema.json", "--json", stdin='{"name": "", "age": 0}').stdout
        == '{"accepted": true}\n'
    )


@pytest.mark.parametrize("padding", [0, 5000])  # longer than any file's name may be
def test_a_schema_is_given_as_its_text(run, padding):
    schema = " " + json.dumps({**SCHEMA, "description": "x" * padding})
    assert run("check", "-s", schema, stdin='{"name": "Ada", "age": 36}').stdout == "accepted\n"
    assert run("check", "-s", schema, stdin='{"name": "Ada"}').exit_code == 1
    broken = run("check", "-s", '{"type": "intger"}', stdin="1")
    assert broken.exit_code == 2 and "/type" in one_sentence(broken)


def test_check_says_where_and_what(run):
    document = '{"name": "Ada",\n "age": x}'
    result = run("check", "-", "-s", "schema.json", "--json", stdin=document)
    verdict = json.loads(result.stdout)
    assert result.exit_code == 1
    assert verdict["accepted"] is False
    assert (verdict["byte"], verdict["line"], verdict["column"]) == (document.index("x"), 2, 9)
    assert verdict["expected"]
    shown = run("check", "-", "-s", "schema.json", stdin=document)
    assert shown.exit_code == 1 and "byte 24, line 2, column 9: found 'x', expected" in shown.stdout


def test_check_a_text_that_stops_early(run):
    result = run("check", "-", "-s", "schema.json", stdin='{"name": "Ada"')
    assert result.exit_code == 1 and "found the end" in result.stdout


def test_check_with_declared_order(run):
    arguments = ("check", "-", "-s", "schema.json", "--order", "declared", "--whitespace", "compact")
    assert run(*arguments, stdin='{"name":"A","age":1}').exit_code == 0
    assert run(*arguments, stdin='{"age":1,"name":"A"}').exit_code == 1


def test_check_with_other_constraints(run):
    assert run("check", "-r", "[0-9]{3}", stdin="123").exit_code == 0
    assert run("check", "-r", "[0-9]{3}", stdin="12").exit_code == 1
    assert run("check", "-c", "yes", "-c", "no", stdin="no\n").exit_code == 0
    assert run("check", "-s", "shapes_of_test_cli:Point", stdin='{"x": 1, "y": 2}').exit_code == 0
    assert run("check", "-s", "shapes_of_test_cli:Point", stdin='{"x": 1}').exit_code == 1


def test_explain_walks_along_a_text(run):
    result = run("explain", "ab", "-r", "a(b|c)d?", "--json")
    steps = json.loads(result.stdout)["steps"]
    assert result.exit_code == 0
    assert [step["after"] for step in steps] == ["", "a", "b"]
    assert [step["allowed"] for step in steps] == [1, 2, 2]  # the last: d, or the end
    assert [step["accepting"] for step in steps] == [False, False, True]
    assert [step["distance"] for step in steps] == [2, 1, 0]
    assert "grammar   a(b|c)d?" in run("explain", "ab", "-r", "a(b|c)d?").stdout


def test_explain_stops_where_the_text_is_refused(run):
    result = run("explain", "axy", "-r", "ab")
    assert result.exit_code == 1
    assert "'x' can't follow" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("check", "-s", "missing.json"), 2, "missing.json"),
        (("check", "nothing.json", "-s", "schema.json"), 2, "nothing.json"),
        (("check", "-r", "a("), 2, ""),
        (("check", "-r", "(a)\\1"), 1, ""),
        (("check",), 2, "no constraint"),
        (("check", "-r", "a", "-c", "b"), 2, "--regex and --choices"),
        (("check", "-s", "no_such_module_here:Type"), 2, "no_such_module_here"),
        (("check", "-s", "shapes_of_test_cli:Nothing"), 2, "Nothing"),
        (("check", "-s", "schema.json", "--order", "backwards"), 2, "backwards"),
        (("generate", "x", "-r", "a", "-m", "./no/model"), 2, "no/model"),
    ],
)
def test_errors_are_one_sentence(run, arguments, code, said):
    result = run(*arguments, stdin="")
    assert result.exit_code == code
    assert said in one_sentence(result)


def test_bad_schemas(run, tmp_path):
    for text, code in (("{", 2), ('{"type": "strin"}', 2), ("false", 1)):
        (tmp_path / "bad.json").write_text(text)
        result = run("check", "-s", "bad.json", stdin="")
        assert result.exit_code == code
        one_sentence(result)


def test_usage_errors_are_two(run):
    assert run("check", "--no-such-option").exit_code == 2
    assert run("no-such-command").exit_code == 2


def test_grammars_in_files(run, tmp_path):
    (tmp_path / "sum.lark").write_text('start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/\n')
    (tmp_path / "sum.gbnf").write_text('root ::= [0-9]+ ("+" [0-9]+)*\n')
    for name in ("sum.lark", "sum.gbnf"):
        assert run("check", "-g", name, stdin="1+22").exit_code == 0
        assert run("check", "-g", name, stdin="1+").exit_code == 1
    (tmp_path / "broken.lark").write_text("start: (\n")
    result = run("check", "-g", "broken.lark", stdin="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tokenform: Line 1, column 9: ")  # then the line, and a mark under it


def test_fidelity_compares_samplers_on_one_target(run):
    result = run("evaluate", "fidelity", "Is water wet?", "-c", "yes", "-c", "no", "--draws", "20", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["texts"] >= 2 and found["draws"] == 20
    distance = {row["sampler"]: row["distance"] for row in found["rows"]}
    assert all(row["forwards"] > 0 for row in found["rows"])  # none lives on what another has asked
    assert distance["CARS"] <= 1e-9 and {"local masking", "ASAp", "AWRS"} <= set(distance)


def test_masks_are_evaluated_from_the_command(run, tmp_path):
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "one.json").write_text(json.dumps(SCHEMA))
    result = run(
        "evaluate", "masks", "--out", "run", "--engines", "tokenform", "--data", "schemas", "--workers", "1",
        "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run" / "results.sqlite").is_file()
    assert list((tmp_path / "run").glob("*.html"))
    assert run("evaluate", "report", "--out", "missing").exit_code == 2


def test_check_says_when_only_the_order_of_keys_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(
        '{"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}'
    )
    (tmp_path / "document.json").write_text('{"b": 1, "a": 1}')
    arguments = ["check", str(tmp_path / "document.json"), "--schema", str(tmp_path / "schema.json")]
    declared = CliRunner().invoke(app, [*arguments, "--order", "declared"])
    assert declared.exit_code == 1 and "another order than declared" in declared.stdout
    assert CliRunner().invoke(app, [*arguments, "--order", "any"]).exit_code == 0


def test_generate_writes_a_report_of_its_speculation(run, tmp_path):
    result = run("generate", "Ada is 36.", "-s", "schema.json", "--report", "run.json", "--json")
    assert result.exit_code == 0, result.stderr
    stats, report = json.loads(result.stdout)["stats"], json.loads((tmp_path / "run.json").read_text())
    assert report["forwards"] == stats["forwards"] and report["accepted"] == stats["accepted"] > 0
    assert report["tokens_per_forward"] > 1 and "forced" in report["sources"] and report["depths"]
    assert run("generate", "Ada is 36.", "-s", "schema.json", "--report", "run.html").exit_code == 0
    page = (tmp_path / "run.html").read_text()
    assert "<td>forced</td>" in page and page.count("<table>") == 3
    refused = run("generate", "Ada is 36.", "-s", "schema.json", "--report", "run.xyz")
    assert refused.exit_code == 2 and ".html" in refused.stderr


def test_generate_says_that_the_budget_cut_in(run):
    asking = ("generate", "The name is Ada Lovelace and the age is 36.", "-s", "schema.json")
    whole = run(*asking, "--json")
    told = json.loads(whole.stdout)
    assert (told["reason"], told["cut"]) == ("end", []) and "note" not in whole.stderr
    fewer = ("--max-tokens", str(len(told["tokens"]) - 1))
    short = json.loads(run(*asking, *fewer, "--json").stdout)
    assert short["reason"] == "length" and short["cut"]
    plain = run(*asking, *fewer)
    assert plain.stdout.strip() == short["text"] and short["cut"][0] in plain.stderr
    assert "did not end within max_tokens" in plain.stderr


def test_tools_reads_calls_and_refuses_wrong_ones(run, tmp_path):
    tool = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    (tmp_path / "tools.json").write_text(json.dumps([tool]))
    call = '<tool_call>\n{"name": "weather", "arguments": {"city":"Rome"}}\n</tool_call>'
    result = run("tools", "--tools", "tools.json", "--read", "-", stdin=call)
    assert (result.exit_code, json.loads(result.stdout)) == (
        0,
        [{"name": "weather", "arguments": {"city": "Rome"}}],
    )
    said = run("tools", "--tools", "tools.json", "--read", "-", stdin="It rains.")
    assert (said.exit_code, said.stdout) == (0, "It rains.\n")
    refused = run("tools", "--tools", "tools.json", "--read", "-", stdin=call.replace("city", "town"))
    assert refused.exit_code == 1 and refused.stdout.startswith("refused at byte ")


def test_tools_lets_the_model_call(run, tmp_path):
    digit = {"type": "integer", "minimum": 0, "maximum": 9}
    parameters = {"type": "object", "properties": {"a": digit, "b": digit}, "required": ["a", "b"]}
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "add", "parameters": parameters}]))
    result = run("tools", "--tools", "tools.json", "--format", "qwen3_coder", "What is 3 plus 4?")
    (call,) = json.loads(result.stdout)[:1]
    assert call["name"] == "add" and set(call["arguments"]) == {"a", "b"}
    short = run("tools", "--tools", "tools.json", "--max-tokens", "5", "What is 3 plus 4?")
    assert short.exit_code == 1 and "5 tokens" in short.stderr and not short.stdout


@pytest.mark.parametrize(
    ("definitions", "words"),
    [
        ('[{"parameters": {}}]', "tool 0 has no name"),
        ('[{"name": "a"}, {"name": "a"}]', "same name 'a'"),
        (
            '[{"name": "a", "parameters": {"type": "object", "properties": {"x": {"pattern": "(a)\\\\1"}}}}]',
            "tool 'a'",
        ),
        ('[{"name": "a", "parameters": {"type": "array"}}]', "tool 'a'"),
        ("[]", "no tool to call"),
        ("[", "is not JSON"),
    ],
)
def test_bad_tools_are_one_sentence(run, tmp_path, definitions, words):
    (tmp_path / "tools.json").write_text(definitions)
    result = run("tools", "--tools", "tools.json", "x")
    assert result.exit_code in (1, 2) and words in result.stderr
    assert result.stderr.count("\n") == 1 and not result.stdout


def test_options_of_tools(run, tmp_path):
    (tmp_path / "tools.json").write_text('[{"name": "a"}]')
    for options, words in (
        ([], "--tools"),
        (["--tools", "none.json"], "can't be read"),
        (["--tools", "tools.json", "-f", "nonsense"], "hermes"),
        (["--tools", "tools.json", "--tool-choice", "b"], "'b'"),
        (["--tools", "tools.json", "--read", "-", "x"], "--read"),
        # said before the model is opened
        (["--tools", "tools.json", "-f", "nonsense", "-m", "no-such-folder/m"], "hermes"),
        (["--tools", "tools.json", "-m", "no-such-folder/m", "--temperature", "-1"], "temperature=-1"),
        (["--tools", "tools.json", "-m", "no-such-folder/m", "--max-tokens", "0"], "max_tokens=0"),
    ):
        result = run("tools", *options, *(["x"] if "x" not in options else []))
        assert result.exit_code == 2 and words in result.stderr and result.stderr.count("\n") == 1


def test_explain_reads_a_file_as_check_does(run, tmp_path):
    (tmp_path / "text.txt").write_text("abb\n")
    told = run("explain", "text.txt", "--regex", "ab+", "--json")
    assert [step["after"] for step in json.loads(told.stdout)["steps"]] == ["", "a", "b", "b"]
    assert told.stdout == run("explain", "abb", "--regex", "ab+", "--json").stdout
    long = "a" * 5000  # longer than any file's name may be
    assert run("explain", long, "--regex", "a+", "--json").exit_code == 0


def test_explain_writes_a_page(run, tmp_path):
    result = run("explain", "ab", "--regex", "ab+c", "--html", "page.html")
    assert result.exit_code == 0 and "end?" in result.stdout
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and page.count("<tr>") == 4
    refused = run("explain", "ab", "--regex", "ab+c", "--html", "nowhere/page.html")
    assert refused.exit_code == 2 and "can't be written" in one_sentence(refused)


def test_a_report_that_can_not_be_written_is_told_before_anything_is(run, monkeypatch):
    import tokenform.integrations.generation as generation

    monkeypatch.setattr(generation, "generate", lambda *_, **__: pytest.fail("it wrote a text first"))
    for path, said in (("run.xyz", ".html"), ("nowhere/run.json", "no folder 'nowhere'")):
        refused = run("generate", "x", "-c", "yes", "--report", path)
        assert refused.exit_code == 2 and said in one_sentence(refused)
    monkeypatch.setattr("tokenform_bench.fidelity.evaluate_fidelity", generation.generate)
    refused = run("evaluate", "fidelity", "x", "-c", "yes", "--plot", "nowhere/plot.png")
    assert refused.exit_code == 2 and "no folder 'nowhere'" in one_sentence(refused)


def test_an_evaluation_without_data_makes_its_schemas_and_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENFORM_SHARED", str(tmp_path))
    result = CliRunner().invoke(
        app, ["evaluate", "masks", "--out", "run", "--limit", "6", "--engines", "tokenform", "--workers", "1"]
    )
    assert result.exit_code == 0, result.output
    assert "the schemas are generated; --data hub downloads" in result.stderr
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| tokenform | 6 | 100.0 % | 100.0 % |" in report and "| forms | 3 |" in report


def test_an_unknown_model_is_refused_without_asking_the_hub_again_and_again(monkeypatch):
    import huggingface_hub
    import transformers

    from tokenform.errors import ModelError
    from tokenform.integrations.models import open_model

    def unreachable(*_, **__):
        raise OSError("no network")

    asked = []

    def from_pretrained(*_, **options):
        asked.append(options["local_files_only"])
        raise OSError("it is not in the cache")

    monkeypatch.setattr(huggingface_hub, "model_info", unreachable)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", from_pretrained)
    with pytest.raises(ModelError, match="no-such/model"):
        open_model("no-such/model")
    assert asked == [True]


def test_generate_lets_the_model_think_first(run, tmp_path):
    asking = ("generate", "The name is Ada Lovelace and the age is 36.", "-s", "schema.json", "--json")
    told = json.loads(run(*asking, "--reason", "--max-tokens", "80").stdout)
    assert told["reasoning"] is not None and json.loads(told["text"])
    assert json.loads(run(*asking).stdout)["reasoning"] is None
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "prompt": "The name is Ada, the age 36."}\n')
    rows = (
        "generate",
        "--input",
        "rows.jsonl",
        "--output",
        "out.jsonl",
        "-s",
        "schema.json",
        "--max-tokens",
        "80",
    )
    assert run(*rows, "--reason", "--quiet").exit_code == 0
    assert json.loads(json.loads((tmp_path / "out.jsonl").read_text())["output"])
