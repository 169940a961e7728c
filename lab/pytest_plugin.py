"""For pytest: the fixture `lab_gate`, and `--lab-baseline NAME|FILE.json`.

    def test_retrieval_is_not_worse(lab_gate):
        verdict = lab_gate("mine", "own", measure="hit@5", margin=0.05)
        assert verdict.outcome == "pass", verdict

The verdicts are printed at the end of the session. Without `--lab-baseline` (or `lab_baseline` in the ini file) such a test is skipped. Nothing of the lab is imported before the fixture is called.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lab.evaluation.gate import Verdict
    from lab.records import GoldSet
    from lab.settings import Settings

_VERDICTS = pytest.StashKey[list[Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lab-baseline`, and `lab_baseline` for the ini file."""
    group = parser.getgroup("lab", "retrieval lab")
    group.addoption(
        "--lab-baseline", metavar="NAME|FILE.json", help="what lab_gate compares with: a promoted baseline, or the file of an exported run"
    )
    parser.addini("lab_baseline", "the same as --lab-baseline; a file is found beside the ini file")


@pytest.fixture(scope="session")
def lab_gate(request: pytest.FixtureRequest) -> Callable[..., Verdict]:
    """Runs a gold set on a collection, and returns the gate's verdict against the baseline.

    `lab_gate(collection, gold, *, settings=None, split=None, measure="hit@5", margin=0.05, kinds=(), policy=None, run=None, **flags)`: `policy` is a TOML file in place of measure, margin and
    kinds; `run` an id (or "latest") in place of a new run. `str(verdict)` says all of it; `verdict.outcome` is pass, regression or cannot_judge.
    """
    baseline = _baseline(request.config)
    if baseline is None:
        pytest.skip("no baseline to compare with: name one by --lab-baseline")
    verdicts = request.config.stash.setdefault(_VERDICTS, [])

    def call(
        collection: str = "", gold: str | GoldSet = "", *, settings: Settings | str | None = None, split: str | None = None, measure: str = "hit@5", margin: float = 0.05,
        kinds: tuple[str, ...] = (), policy: str | Path | None = None, run: str | None = None, **flags: Any,
    ) -> Verdict:  # fmt: skip
        from lab.errors import LabError, UsageError
        from lab.evaluation.gate import gate
        from lab.evaluation.policy import Policy, Rule, read_policy
        from lab.evaluation.run import run as execute
        from lab.store.connect import connect

        if (run is None) == (not collection or not gold):
            raise UsageError("lab_gate takes a collection and a gold set, or run=ID.")
        rules = read_policy(Path(policy)) if policy is not None else Policy((Rule(measure, margin, tuple(kinds)),))
        try:
            with connect() as store:
                chosen = run if run is not None else execute(collection, gold, store=store, settings=settings, split=split, **flags).run_id
                verdict = gate(baseline, chosen, rules, store=store)
        except LabError as error:
            pytest.fail(str(error), pytrace=False)
        verdicts.append(verdict)
        return verdict

    return call


def _baseline(config: pytest.Config) -> str | None:
    given = config.getoption("--lab-baseline")
    if given:
        return str(given)
    written = str(config.getini("lab_baseline") or "")
    if written.endswith(".json") and config.inipath is not None:
        return str(config.inipath.parent / written)
    return written or None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The verdicts of the session."""
    verdicts = config.stash.get(_VERDICTS, [])
    if verdicts:
        terminalreporter.section("retrieval gate")
        for verdict in verdicts:
            terminalreporter.write_line(str(verdict))
