"""A picture of a report: acceptance by depth and by source, and where the time went.

Needs matplotlib, which is optional.
"""

from __future__ import annotations

from pathlib import Path

from tokenform.errors import OptionError

from .report import Report


def plot(report: Report, path: str | Path) -> None:
    """Writes the picture to a file; its ending chooses the format.

    Raises:
        OptionError: matplotlib is not installed, or the run has drafted nothing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise OptionError("plots need matplotlib: pip install matplotlib") from error
    if not report.depths:
        raise OptionError("there is nothing to plot: no draft was scored")
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    by_depth, by_source, times = figure.subplots(1, 3)
    depths = sorted(report.depths)
    by_depth.bar(depths, [report.depths[d][1] / report.depths[d][0] for d in depths], color="#4477aa")
    by_depth.set(
        xlabel="depth in the draft", ylabel="accepted share", ylim=(0, 1), title="Acceptance by depth"
    )
    names = sorted(report.sources, key=lambda s: -report.sources[s][1])
    by_source.barh(names, [report.sources[s][0] for s in names], color="#bbccee", label="drafted")
    by_source.barh(names, [report.sources[s][1] for s in names], color="#4477aa", label="accepted")
    by_source.invert_yaxis()
    by_source.set(xlabel="tokens", title=f"{report.tokens_per_forward:.2f} tokens per forward")
    by_source.legend()
    parts = {"model": report.seconds_model, "draft": report.seconds_draft, "mask": report.seconds_mask}
    times.bar(list(parts), list(parts.values()), color=["#4477aa", "#ccbb44", "#228833"])
    times.set(ylabel="seconds", title="Time")
    figure.savefig(path)
