"""Commands about collections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table, size
from lab.cli.server import Json
from lab.cli.words import IngestFlags, passed
from lab.errors import UsageError
from lab.progress import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.corpus.outcome import IngestReport
    from lab.store.connect import Store
    from lab.store.ledger import FileEntry


def ingest(
    *paths: Path,
    collection: Annotated[str, Parameter(name=["--collection", "-c"], help="name of the collection")],
    format: Annotated[str, Parameter(help="auto: by file name; beir: a corpus.jsonl or its folder")] = "auto",
    authority: Annotated[Path | None, Parameter(help="rules for trust tiers; default: source_authority.json in the folder")] = None,
    language: Annotated[str, Parameter(help="text search configuration of a new collection")] = "english",
    prune: Annotated[bool, Parameter(negative=(), help="retire documents whose files are gone from under the paths named")] = False,
    strict: Annotated[bool, Parameter(negative=(), help="exit 3 if a file was refused")] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", negative=(), help="read and cut everything, report, store nothing")] = False,
    watch: Annotated[bool, Parameter(negative=(), help="go on: ingest again whenever a file changes, until Ctrl-C")] = False,
    metadata: Annotated[Path | None, Parameter(help="CSV with a column source: what to know about each file, for filters")] = None,
    password: Annotated[str | None, Parameter(help="opens encrypted PDFs")] = None,
    tenant: Annotated[
        str | None, Parameter(help="whose documents these are: only its login (`lab tenant add`) and the owner find them; shared: every tenant's")
    ] = None,
    json: Json = False,
    flags: IngestFlags = None,
) -> int:
    """Read files and folders into a collection: validate, chunk, embed, link, store. Unchanged files are skipped; run it again to go on.

    Parameters
    ----------
    paths
        Files and folders: PDF, HTML, DOCX, ODT, EPUB, Markdown, reST and plain text, told by content.
    """
    from lab.corpus.ingest import ingest as run_ingest

    def once() -> IngestReport:
        return run_ingest(
            list(paths), collection, authority_file=authority, language=language, format=format, prune=prune, root=None, metadata_file=metadata,
            password=password, dry_run=dry_run, tenant=tenant, **passed(flags),
        )  # fmt: skip

    if watch and dry_run:
        raise UsageError("--watch and --dry-run exclude each other: a dry run looks once.")
    report = once()
    _report(report, json)
    if watch:
        from lab.corpus.watch import changes

        for named in changes(list(paths)):
            say(f"changed: {named}")
            _report(once(), json)
    return 3 if strict and report.refused else 0


def _report(report: IngestReport, json: bool) -> None:
    for source, reason in report.refused[:20]:
        say(f"refused {source}: {reason}")
    if len(report.refused) > 20:
        say(f"… and {len(report.refused) - 20} more")
    if report.missing:
        say(f"missing: {', '.join(report.missing[:5])}{' …' if len(report.missing) > 5 else ''}; --prune retires them")
    if report.over_limit:
        say(
            f"{report.over_limit} chunks are longer than the embedder's window (or than 60,000 characters): what lies beyond is found by words only (or not at all)"
        )
    if report.without_vector:
        say(f"{report.without_vector} chunks have no vector: they are found by words only")
    if json:
        print_json(report.to_json())
    else:
        counts = ", ".join(f"{count} {name}" for name, count in report.files.items() if count) or "nothing"
        if report.dry_run:
            line(
                f"{report.collection}: would be {counts}; {report.chunks} chunks of new or changed files; {report.seconds:.1f} s; nothing was stored"
            )
            return
        line(
            f"{report.collection}: files {counts}; {report.chunks} chunks, {report.links['cites']} citations, {report.links['defines']} definitions; "
            f"{report.seconds:.1f} s"
        )


def index(
    name: str,
    *,
    audit: Annotated[bool, Parameter(negative=(), help="rebuild nothing: compare the HNSW index with the exact list, and check the plan")] = False,
    gold: Annotated[str | None, Parameter(help="gold set whose questions the audit asks; default: beginnings of 100 passages")] = None,
    ef_search: Annotated[int, Parameter(help="breadth of the HNSW search in the audit")] = 200,
    json: Json = False,
) -> int:
    """Rebuild the HNSW, BM25 and word indexes of a collection from its rows; or audit them.

    Exit 3 where the audit finds a recall below 0.98 at 100, or a plan that leaves the index.
    """
    from lab.corpus.derived import reindex
    from lab.store import collections
    from lab.store.connect import connect

    if gold is not None and not audit:
        raise UsageError("--gold names the questions of the audit: say --audit too.")
    with connect() as store:
        if audit:
            return _audit(store, name, gold, ef_search, json)
        collection = collections.get(store, name)
        with collections.locked(store, name):
            reindex(store, collection)
        built = sorted(collections.indexes(store, collection))
    if json:
        print_json({"schema_version": 1, "collection": name, "indexes": built})
    else:
        line(f"{name}: {', '.join(built)} rebuilt")
    return 0


def _audit(store: Store, name: str, gold: str | None, ef_search: int, json: bool) -> int:
    from lab.gold.files import load_gold
    from lab.retrieval.audit import audit, sample
    from lab.retrieval.search import open_corpus

    if not 1 <= ef_search <= 1000:
        raise UsageError(f"--ef-search cannot be {ef_search}: it takes a whole number from 1 to 1000.")
    corpus = open_corpus(store, name)
    questions = [q.text for q in load_gold(gold).questions] if gold is not None else sample(corpus, 100)
    found = audit(corpus, questions, ef_search=ef_search)
    if json:
        print_json({"schema_version": 1, "collection": name, **found.to_json()})
    else:
        line(
            f"{name}: recall {found.recall:.4f} at {found.k} over {found.questions} questions (worst {found.worst:.2f}), ef_search {found.ef_search}, "
            f"{found.chunks:,} chunks; p50 {found.index_p50:.1f} ms by the index, {found.exact_p50:.1f} ms exact; the plan "
            f"{'uses' if found.index_used else 'leaves'} the index" + (", which search does not need for so few" if found.small else "")
        )
    return 0 if found.recall >= 0.98 and (found.index_used or found.small) else 3


def link(
    name: str,
    *,
    export: Annotated[Path | None, Parameter(help="write the links to this TSV file, a row a mention")] = None,
    json: Json = False,
) -> int:
    """Rebuild citation and definition links from the stored text."""
    from lab.corpus.derived import relink
    from lab.store import collections, links
    from lab.store.connect import connect

    with connect() as store:
        collection = collections.get(store, name)
        with collections.locked(store, name):
            counts = relink(store, collection)
        if export is not None:
            heads = ("relation", "term", "from_source", "from_chunk", "to_source", "to_chunk", "start", "end")
            rows: list[tuple[Any, ...]] = [heads, *links.mentions(store, collection)]
            try:
                export.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
            except OSError as error:
                raise UsageError(f"{export} cannot be written ({error.strerror}): name another file behind --export.") from None
    if json:
        left_out = {key: counts[key] for key in ("external", "unresolved")}
        print_json({"schema_version": 1, "collection": name, "links": {key: counts[key] for key in ("cites", "defines")}, "links_left_out": left_out})
    else:
        line(
            f"{name}: {counts['cites']} citations, {counts['defines']} definitions; left out: {counts['external']} references to what is not in the "
            f"collection, {counts['unresolved']} to parts that were not found"
        )
    return 0


def list_collections(
    name: str | None = None, *, escalation: Annotated[str | None, Parameter(help="of one collection: whom to ask where it has no answer, for `lab answer`")] = None,
    json: Json = False,
) -> int:  # fmt: skip
    """List the collections with what they hold; of one collection, what became of each of its files.

    Parameters
    ----------
    name
        The collection whose ledger is shown.
    """
    from lab.store import collections, ledger
    from lab.store.connect import connect

    if escalation is not None:
        if name is None:
            raise UsageError("--escalation belongs to one collection: name it.")
        with connect() as store:
            collections.set_escalation(store, collections.get(store, name), escalation)
    if name is not None:
        with connect() as store:
            entries = ledger.entries(store, collections.get(store, name))
        return _ledger(name, entries, json)
    with connect() as store:
        found = [(c, collections.size(store, c)) for c in collections.all_collections(store)]
    if json:
        print_json(
            {
                "schema_version": 1,
                "collections": [
                    {
                        "name": c.name,
                        "files": s.files,
                        "chunks": s.chunks,
                        "cites": s.cites,
                        "defines": s.defines,
                        "bytes": s.bytes,
                        "ingest": c.ingest.as_dict(),
                    }
                    for c, s in found
                ],
            }
        )
    elif found:
        print_table(
            ("collection", "files", "chunks", "citations", "definitions", "space", "chunker", "embedder"),
            [
                (c.name, str(s.files), str(s.chunks), str(s.cites), str(s.defines), size(s.bytes), c.ingest.chunker, c.embedder)
                for c, s in found
            ],
            numeric=(False, True, True, True, True, True),
        )  # fmt: skip
    else:
        line("no collection yet: `lab demo` makes one, `lab ingest FOLDER -c NAME` another")
    return 0


def _ledger(name: str, entries: Sequence[FileEntry], json: bool) -> int:
    if json:
        files = [
            {
                "source": e.source, "status": e.status, "outcome": e.outcome, "reason": e.reason, "format": e.format, "extractor": e.extractor, "title": e.title,
                "source_url": e.source_url or None, "document_version": e.document_version or None,
                "last_updated": e.last_updated.isoformat() if e.last_updated else None, "metadata": dict(e.metadata), "chunks": e.chunks,
                "changed_at": e.changed_at.isoformat(), "checked_at": e.checked_at.isoformat(),
            }
            for e in entries
        ]  # fmt: skip
        print_json({"schema_version": 1, "collection": name, "files": files})
    else:
        rows = [(e.source, e.status, e.outcome, e.format, str(e.chunks), f"{e.checked_at:%Y-%m-%d %H:%M}", e.reason or "") for e in entries]
        print_table(
            ("file", "status", "last look", "format", "chunks", "looked at", "reason"), rows, numeric=(False, False, False, False, True, False, False)
        )
    return 0


def drop(
    name: str, *, yes: Annotated[bool, Parameter(negative=(), help="really do it")] = False,
    derived: Annotated[bool, Parameter(negative=(), help="only the collections that experiments derived from it by ingest flags")] = False,
    json: Json = False,
) -> int:  # fmt: skip
    """Remove a collection, or what experiments derived from it. The runs made on them stay, as do cached vectors."""
    from lab.corpus.variants import derived_from
    from lab.store import collections
    from lab.store.connect import connect

    with connect() as store:
        if derived:
            found = derived_from(store, name)
            if found and not yes:
                raise UsageError(f"this removes {', '.join(c.name for c in found)}: say `lab drop {name} --derived --yes`.")
            for one in found:
                collections.drop(store, one.name)
                if not json:
                    line(f"{one.name} dropped")
            if json:
                print_json({"schema_version": 1, "dropped": [one.name for one in found]})
            elif not found:
                line(f"nothing is derived from {name}")
            return 0
        collection = collections.get(store, name)
        if not yes:
            count = collections.size(store, collection).chunks
            raise UsageError(f"this removes collection {name!r} with {count} chunks: say `lab drop {name} --yes`.")
        collections.drop(store, name)
    if json:
        print_json({"schema_version": 1, "dropped": [name]})
    else:
        line(f"{name} dropped")
    return 0
