"""A verdict of the gate for other machines and other people: JUnit XML, Markdown for a pull request, GitHub's summary and annotations."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

from lab.errors import ServerError
from lab.evaluation.gate import Verdict, in_text, told
from lab.evaluation.losses import in_words

_MOST = 50  # flipped questions in Markdown


def junit(verdict: Verdict) -> str:
    """A test suite with a case a rule, and one for what keeps the run from being judged at all. A regression is a failure, what could not be judged an error."""
    health = [r for r in verdict.reasons if not r.startswith(("regression:", "cannot_judge:"))]
    failures = sum(r.outcome == "regression" for r in verdict.rules)
    errors = sum(r.outcome == "cannot_judge" for r in verdict.rules) + bool(health)
    suite = ElementTree.Element(
        "testsuite",
        name=f"lab gate against {verdict.baseline}",
        tests=str(len(verdict.rules) + 1),
        failures=str(failures),
        errors=str(errors),
        skipped="0",
    )
    case = ElementTree.SubElement(suite, "testcase", classname="lab.gate", name="health")
    if health:
        ElementTree.SubElement(case, "error", message=", ".join(health), type="cannot_judge")
    for r in verdict.rules:
        case = ElementTree.SubElement(suite, "testcase", classname="lab.gate", name=f"{r.rule.name} margin {r.rule.margin:g}")
        if r.outcome == "regression":
            ElementTree.SubElement(case, "failure", message=r.reason + told(r), type="regression")
        elif r.outcome == "cannot_judge":
            ElementTree.SubElement(case, "error", message=r.reason + told(r), type="cannot_judge")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def markdown(verdict: Verdict) -> str:
    """Fits a pull-request comment: the verdict, a row a rule, the flipped questions with the stage that lost each, and what differs."""
    mark = {"pass": "✅ pass", "regression": "❌ regression", "cannot_judge": "⚠️ could not judge"}[verdict.outcome]
    health = [r for r in verdict.reasons if not r.startswith(("regression:", "cannot_judge:"))]
    lines = [
        f"### Retrieval gate: {mark}",
        "",
        f"`{verdict.b}` against `{verdict.baseline}` (`{verdict.a}`)" + (f"; {', '.join(health)}" if health else ""),
        "",
    ]
    if verdict.rules:
        lines += ["| rule | margin | outcome | |", "| --- | ---: | --- | --- |"]
        lines += [
            f"| {_cell(r.rule.name)} | {r.rule.margin:g} | {r.outcome.replace('_', ' ')} | {_cell(r.reason + told(r))} |" for r in verdict.rules
        ]
        lines.append("")
    if verdict.flipped:
        won, lost = (sum(f["direction"] == d for f in verdict.flipped) for d in ("won", "lost"))
        lines += [
            f"<details><summary>{won} questions won, {lost} lost</summary>",
            "",
            "| | question | where its answer was lost | |",
            "| --- | --- | --- | --- |",
        ]
        for f in verdict.flipped[:_MOST]:
            where = in_words(str(f["stage"])) if f["stage"] else "another rank"
            lines.append(f"| {f['direction']} | {_cell(str(f['text']))} | {_cell(where)} | `{f['question']}` |")
        if len(verdict.flipped) > _MOST:
            lines.append(f"| | and {len(verdict.flipped) - _MOST} more | | |")
        lines += ["", "</details>", ""]
    if verdict.differs:
        lines += ["Differs: " + ", ".join(f"`{name}`" for name in verdict.differs) + ".", ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def to_github(verdict: Verdict) -> list[str]:
    """Where GitHub Actions runs this: its step summary is written, and the annotations to be printed are returned; else nothing."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(markdown(verdict))
        except OSError as error:
            raise ServerError(f"the step summary {summary} cannot be written ({error.strerror}).") from None
    if os.environ.get("GITHUB_ACTIONS") != "true" or verdict.outcome == "pass":
        return []
    level = "error" if verdict.outcome == "regression" else "warning"
    return [f"::{level} title=retrieval gate::{' '.join(text.strip().replace('%', '%25') for text in in_text(verdict))}"]
