"""Times of passes on a device come from its events, and nothing waits for those."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tokenform.decoding import clock
from tokenform.decoding.clock import Clock, Elapsed
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import DraftModel
from tokenform.decoding.speculative.drafters.base import PassCost
from tokenform.decoding.speculative.matching import DeviceDraws
from tokenform.decoding.speculative.policies import Fixed
from tokenform.decoding.speculative.request import Request
from tokenform.decoding.speculative.speculator import Speculator

from .models import model
from .targets import sampler

HERE = torch.device("cuda", 3)


class Device:
    """Stands for `torch.cuda`: work of one second between any two events, done as late as `lag` says.

    Args:
        lag: how often an event that has been recorded is asked for before it has happened.
    """

    def __init__(self, lag: int = 0) -> None:
        self.lag, self.recorded, self.asked = lag, 0, 0
        device = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                assert enable_timing
                self.place, self.left = -1, device.lag

            def record(self, stream: str) -> None:
                assert stream == "the stream of the device"
                self.place = device.recorded = device.recorded + 1

            def query(self) -> bool:
                assert self.place >= 0
                device.asked += 1
                self.left -= 1
                return self.left < 0

            def elapsed_time(self, other: Any) -> float:
                assert other.left < 0, "what has not happened has no time"
                return 1000.0 * (other.place - self.place)

            def synchronize(self) -> None:
                raise AssertionError("waited for an event")

        self.Event = Event

    def current_stream(self, device: torch.device) -> str:
        assert isinstance(device, torch.device)
        return "the stream of the device"

    def synchronize(self, *_: Any) -> None:
        raise AssertionError("waited for the device")


@pytest.fixture
def device(monkeypatch):
    def put(lag: int = 0) -> Device:
        made = Device(lag)
        monkeypatch.setattr(clock, "events_of", lambda device: made)
        return made

    return put


class Heard(Fixed):
    """Drafts as ever, and keeps what it was told."""

    def __init__(self) -> None:
        super().__init__(4)
        self.told: list[tuple[float, float, float]] = []

    def observe(self, tokens: float, seconds: float, drafting: float = 0.0) -> None:
        self.told.append((tokens, seconds, drafting))


def test_the_host_is_measured_by_the_threads_work(monkeypatch: pytest.MonkeyPatch):
    worked, passed = iter([1.0, 1.5]), iter([10.0, 13.0])
    clocks = SimpleNamespace(thread_time=lambda: next(worked), perf_counter=lambda: next(passed))
    monkeypatch.setattr(clock, "time", clocks)
    span = Clock().begin()
    span.end()
    assert span.elapsed() == span.elapsed() == Elapsed(work=0.5, wall=3.0)


def test_what_has_not_happened_is_not_known(device):
    made = device(lag=2)
    span = Clock(HERE).begin()
    span.end()
    assert [span.elapsed() for _ in range(4)] == [None, None, Elapsed(1.0, 1.0), Elapsed(1.0, 1.0)]
    assert made.asked == 4


def test_events_of_kinds_of_devices():
    assert clock.events_of(torch.device("cpu")) is None
    assert clock.events_of(HERE) is torch.cuda
    assert clock.events_of(torch.device("meta")) is None
    span = Clock(torch.device("meta")).begin()
    span.end()
    assert span.elapsed() is None


def test_a_draft_of_unknown_price_tells_nothing():
    cost = PassCost()
    cost.observe(Elapsed(1.0, 9.0), None)
    assert cost.seconds == 0.0
    cost.observe(Elapsed(1.0, 9.0), Elapsed(2.0, 9.0))
    assert cost.seconds == 3.0


def run(draft: bool, count: int = 2) -> tuple[Speculator, Heard, list[Any], list[int]]:
    """A run whose draws are made as on a device; how much the policy had heard after each step."""
    backbone, heard = Backbone(model("qwen3")), Heard()
    drafter = DraftModel(model("llama", layers=1, seed=3), tokens=3) if draft else None
    draws = DeviceDraws(torch.device("cpu"), whole=True)
    speculator = Speculator(backbone, drafter, policy=heard, matcher=draws)
    numbers = [
        speculator.add(Request([3, 4 + n], sampler(0.0), max_tokens=12, number=n)) for n in range(count)
    ]
    outputs, after = [speculator.output(n) for n in numbers], []
    while speculator.active:
        if speculator.step():
            after.append(len(heard.told))
    return speculator, heard, outputs, after


@pytest.mark.usefixtures("measured_prices")
@pytest.mark.parametrize("draft", [False, True])
@pytest.mark.parametrize("lag", [0, 1])
def test_the_policy_hears_of_each_pass_once_and_nothing_is_waited_for(device, lag, draft):
    want = [output.tokens for output in run(draft)[2]]
    made = device(lag)
    speculator, heard, outputs, after = run(draft)
    assert [output.tokens for output in outputs] == want and made.recorded
    passes = speculator.report.forwards
    late = lag  # a step asks for what the one before has left
    known = sum(output.report.seconds_model for output in outputs)
    assert passes - late <= round(known, 6) <= passes and passes > 3
    if not draft:  # nobody asks a policy
        assert not heard.told
        return
    assert after[0] == 1 - late and all(b - a <= 1 + late for a, b in itertools.pairwise(after))
    for _, seconds, drafting in heard.told:
        assert seconds == 1.0 <= drafting  # from the event before a pass to the one after it
    assert known == pytest.approx(len(heard.told))


def test_a_draft_model_is_priced_by_its_events(device):
    device()
    speculator = run(True, 1)[0]
    (drafter,) = speculator._merge.drafters
    assert 0.0 < drafter.cost.seconds <= 1.1


def test_where_nothing_is_known_the_beliefs_stay(monkeypatch):
    monkeypatch.setattr(clock, "events_of", lambda device: None)
    monkeypatch.setattr(clock, "Span", clock._Unknown)
    _, heard, outputs, _ = run(True)
    assert not heard.told and all(output.reason for output in outputs)
    assert sum(output.report.seconds_model for output in outputs) == 0.0
