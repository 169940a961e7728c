"""`lab ui`: recorded runs in a browser, on this machine, for reading only. Pages are made by the server, without scripts; whatever they show comes from the same functions as the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from lab.errors import CannotJudge, LabError, UsageError, redact
from lab.evaluation.compare import amount, compare, shared_measure, verdict_of
from lab.evaluation.experiment import load
from lab.evaluation.flips import diff
from lab.evaluation.losses import in_words as lost_in_words
from lab.evaluation.recorded import of_rows
from lab.report import tables
from lab.report.page import render
from lab.serving.doors import guarded, is_loopback, listen
from lab.store import browse, collections, runs
from lab.store.connect import Store

_PAGE = 50  # runs of a list
_LEDGERS = 4  # runs whose ledger is shown beside each other
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
}  # fmt: skip

Query = Mapping[str, str]
Page = Callable[[Store, Query], tuple[str, dict[str, Any]]]


def link(path: str, text: str, *, long: bool = False, **query: Any) -> dict[str, Any]:
    """A cell that leads to a page."""
    return {"text": text, "to": f"/{path}?{urlencode(query)}", "long": long}


def _need(query: Query, name: str) -> str:
    """A part of the address; UsageError where it is missing."""
    if not query.get(name, "").strip():
        raise UsageError(f"the address lacks {name}=…: come from a list.")
    return query[name].strip()


def _long(text: str) -> dict[str, Any]:
    return {"text": text, "to": "", "long": True}


def _passed(passed: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in passed.items())


def _table(table: tables.Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "heads": table.heads,
        "rows": table.rows,
        "numeric": [i for i, numeric in enumerate(tables.numeric_columns(table)) if numeric],
    }


def list_runs(store: Store, query: Query) -> tuple[str, dict[str, Any]]:
    """/: runs, the newest first."""
    chosen = {"collection": query.get("collection", "").strip(), "gold": query.get("gold", "").strip()}
    start = query.get("from", "0")
    offset = int(start) if start.isascii() and start.isdigit() and len(start) < 9 else 0
    rows = browse.run_lines(store, **chosen, limit=_PAGE + 1, offset=offset)
    shown = [
        {
            "run_id": r.run_id,
            "collection": r.collection,
            "gold": r.gold,
            "status": r.status,
            "questions": r.questions,
            "hit": r.hit,
            "passed": _passed(r.passed),
        }
        for r in rows[:_PAGE]
    ]
    known, golds = browse.names(store)
    older = f"/?{urlencode(chosen | {'from': offset + _PAGE})}" if len(rows) > _PAGE else None
    newer = f"/?{urlencode(chosen | {'from': max(offset - _PAGE, 0)})}" if offset else None
    return "runs", {"rows": shown, "chosen": chosen, "collections": known, "golds": golds, "older": older, "newer": newer}


def list_experiments(store: Store, query: Query) -> tuple[str, dict[str, Any]]:
    """/experiments"""
    rows = [
        (
            link("experiment", e, id=e),
            c,
            g,
            n,
            _long("; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in factors.items())),
            _long(redact(command)),
        )
        for e, c, g, n, factors, command in browse.experiments(store)
    ]
    return "experiments", {"rows": rows}


def show_experiment(store: Store, query: Query) -> tuple[str, dict[str, Any]]:
    """/experiment?id="""
    shown = load(store, _need(query, "id"))
    m = shared_measure(shown.runs)
    told = [tables.effects(shown, m), tables.interactions(shown, m), tables.by_kind(shown, m), tables.by_band(shown, m)]
    members = _table(tables.members(shown))
    members["rows"] = [(*row[:-1], link("run", row[-1], id=row[-1])) for row in members["rows"]]
    return "experiment", {
        "shown": shown, "verdicts": [f"{e.name}: {e.words}" for e in shown.main(m)], "tables": [_table(told[0]), members, *(_table(t) for t in told[1:] if t.rows)],
    }  # fmt: skip


def show_run(store: Store, query: Query) -> tuple[str, dict[str, Any]]:
    """/run?id=&show=lost|all"""
    row = runs.get_run(store, _need(query, "id"))
    done = of_rows(store, [row])[0]
    texts = {q.question_id: q for q in runs.questions(store, row.gold_digest)}
    first = runs.first_relevant(store, [row.run_id])[row.run_id]
    everything = query.get("show") == "all"
    asked = sorted(first, key=lambda q: (done.lost.get(q, "") == "", done.lost.get(q, ""), q))
    listed = [
        (
            link("question", q, gold=row.gold_digest, id=q, run=row.run_id),
            _long(texts[q].text),
            texts[q].kind or "–",
            first[q] or "–",
            lost_in_words(done.lost[q]) if q in done.lost else "",
        )
        for q in asked
        if everything or q in done.lost
    ]
    losses = [(stage, count, lost_in_words(stage)) for stage, count in row.health.get("lost", {}).items()]
    return "run", {
        "row": row, "measures": _table(tables.Table("Measures", ("measure", "mean"), tuple((m, f"{v:.4f}") for m, v in done.scores.items()))), "losses": losses, "questions": listed,
        "show": "all" if everything else "lost", "settings": list(row.settings.items()),
    }  # fmt: skip


def show_comparison(store: Store, query: Query) -> tuple[str, dict[str, Any]]:
    """/compare?a=&b="""
    pair = of_rows(store, [runs.get_run(store, _need(query, name)) for name in ("a", "b")])
    found = compare(*pair, store=store, primary=shared_measure(pair))
    differs = [(name, *map(str, pair)) for name, pair in (*found.flags_that_differ.items(), *found.inputs_that_differ.items())]
    measures = [
        (m, f"{p.before:.3f}", f"{p.after:.3f}", amount(m, p.delta), f"{amount(m, p.low)} to {amount(m, p.high)}", f"{max(p.p, 1e-4):.2g}", p.wins, p.losses, p.ties, verdict_of(m, p).replace("_", " "))
        for m, p in found.measures.items()
    ]  # fmt: skip
    told = diff(store, found.a, found.b, measure=found.primary) if found.measures else None
    digest = runs.get_run(store, found.a).gold_digest
    flips = [
        ("▲ won" if f.direction == "won" else "▼ lost", link("question", f.question, gold=digest, id=f.question, run=found.b, beside=found.a), _long(f.text), f.kind or "–",
         lost_in_words(f.stage) if f.stage else "another rank")
        for f in (told.flips if told else ())
    ]  # fmt: skip
    return "compare", {"found": found, "differs": differs, "measures": measures, "told": told, "flips": flips}


def show_question(store: Store, query: Query) -> tuple[str, dict[str, Any]]:
    """/question?gold=&id=[&run=&beside=]: the ledger of the runs named, else of the newest ones."""
    digest, name = _need(query, "gold"), _need(query, "id")
    question = next((q for q in runs.questions(store, digest) if q.question_id == name), None)
    if question is None:
        raise UsageError(f"no question {name!r} of that gold set is recorded.")
    across = browse.across_runs(store, digest, name)
    named = [run for run in (query.get("run"), query.get("beside")) if run]
    wanted = named or [a.run_id for a in across[:_LEDGERS]]
    ledgers = []
    for run_id in wanted[:_LEDGERS]:
        row = runs.get_run(store, run_id)
        answers = [
            {"chunk_id": chunk, "ranks": ranks, "shown": [rank or "–" for rank in ranks.values()]}
            for chunk, ranks in runs.answering_ranks(store, run_id, [name]).get(name, {}).items()
        ]
        ledgers.append(
            {
                "run_id": run_id,
                "collection": row.collection,
                "answers": answers,
                "ledger": runs.has_ledger(store, run_id),
                "results": runs.results_of(store, run_id, name),
            }
        )
    rows = [
        (link("question", a.run_id, gold=digest, id=name, run=a.run_id), a.collection, "–" if a.hit is None else f"{a.hit:.0f}", a.rank or "–", lost_in_words(a.lost) if a.lost else "", _long(_passed(a.passed)))
        for a in across
    ]  # fmt: skip
    return "question", {"question": question, "across": rows, "ledgers": ledgers}


def show_passage(store: Store, query: Query) -> tuple[str, dict[str, Any]]:
    """/passage?collection=&id="""
    name = _need(query, "collection")
    found = browse.passage(store, collections.get(store, name), _need(query, "id"))

    def to(n: int) -> str:
        return f"/passage?{urlencode({'collection': name, 'id': f'{found.source}::{n}'})}"

    def rows(pairs: Any) -> list[tuple[Any, ...]]:
        return [(_long(label), link("passage", chunk, collection=name, id=chunk)) for label, chunk in pairs]

    return "passage", {
        "collection": name, "passage": found, "before": to(found.n - 1) if found.n > 1 else "", "after": to(found.n + 1) if found.n < found.last else "", "copies": found.twins,
        "links": [("Cites", rows(found.cites)), ("Cited by", rows(found.cited_by)), ("Defines", [(_long(term), "here") for term, _ in found.defines])],
    }  # fmt: skip


def list_verdicts(store: Store, query: Query) -> tuple[str, dict[str, Any]]:
    """/verdicts"""
    rows = [
        (f"{at:%Y-%m-%d %H:%M}", outcome.replace("_", " "), baseline, link("run", a, id=a), link("run", b, id=b), _long(", ".join(reasons)))
        for at, outcome, baseline, a, b, reasons in browse.verdicts(store)
    ]
    return "verdicts", {"rows": rows}


PAGES: Mapping[str, Page] = {
    "/": list_runs, "/experiments": list_experiments, "/experiment": show_experiment, "/run": show_run, "/compare": show_comparison, "/question": show_question, "/passage": show_passage,
    "/verdicts": list_verdicts,
}  # fmt: skip


def app(store: Store, host: str = "127.0.0.1", token: str | None = None) -> Any:
    """The pages as an ASGI app, over connections in which nothing can be written. Without a token only requests to this machine's own names are answered (against DNS rebinding)."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route

    def answering(page: Page) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                name, values = page(store, {key: value.replace("\0", "") for key, value in request.query_params.items()})  # Postgres takes no NUL
                return HTMLResponse(render(f"browse/{name}.html.j2", values), headers=_HEADERS)
            except LabError as error:
                status, title = (
                    (404, "Not found")
                    if isinstance(error, UsageError)
                    else (409, "Cannot be judged")
                    if isinstance(error, CannotJudge)
                    else (502, "No answer")
                )
                return HTMLResponse(render("browse/error.html.j2", {"title": title, "message": redact(str(error))}), status, headers=_HEADERS)

        return answer

    def nowhere(request: Request, error: Exception) -> Response:
        return HTMLResponse(render("browse/error.html.j2", {"title": "Not found", "message": "There is no such page."}), 404, headers=_HEADERS)

    own = (
        [Middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host])]
        if token is None or is_loopback(host)
        else []
    )
    made = Starlette(
        routes=[Route(path, answering(page), methods=["GET"]) for path, page in PAGES.items()], middleware=own, exception_handlers={404: nowhere}
    )
    return guarded(made, token, people=True)


def serve(store: Store, host: str, port: int, token: str | None) -> None:
    """Answers until it is stopped."""
    with store.reading() as reading:
        listen(app(reading, host, token), host, port)
