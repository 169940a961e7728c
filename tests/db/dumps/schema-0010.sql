-- A database of schema version 10 with one collection and one run, as it is found when the lab is upgraded.
-- The harness: one schema `lab` for everything that is not a collection. Applied once, to an empty database, by the first connection;
-- a database that holds an older version is brought up by the files of sql/migrations, in order. This file is always the whole.
-- Runs as it stands:  psql -1 -f sql/schema.sql

create extension if not exists vector;
create schema lab;

create table lab.meta (
    key   text primary key,
    value text not null
);
insert into lab.meta values ('schema_version', '10');

-- One row a collection; its documents live in the schema kb_<name>. `ingest` holds the ingest flags, fixed for the collection's life.
create table lab.collections (
    name          text primary key check (name ~ '^[a-z][a-z0-9_]{0,39}$'),
    ingest        jsonb not null,
    embedder      text not null,
    model_digest  text not null,
    dim           int,
    language      text not null,
    authority     jsonb not null default '{"default": 0, "rules": []}',
    corpus_digest text not null default '',
    link_digest   text not null default '',
    indexed_at    timestamptz,
    index_build   jsonb not null default '{}',
    chunks        bigint not null default 0,  -- as counted at the end of the last ingest
    without_vector bigint not null default 0,
    stale_rows    bigint not null default 0,
    created_at    timestamptz not null default now(),
    link_counts   jsonb not null default '{}',    -- what the last linking found and left out
    codes         text not null default '',       -- version of the side tokens of its passages; '' = none were made
    escalation    text not null default ''        -- whom to ask where the collection has no answer
);

-- Login role → the tenant whose documents it may read: one role a tenant, never the role that owns the tables.
create table lab.tenant_roles (
    role   text primary key,
    tenant text not null unique check (tenant ~ '^[a-z][a-z0-9_]{0,39}$' and tenant <> 'shared')
);

-- Which collections hold documents of which tenant, and the copies that their logins search (lab/store/tenants.py).
create table lab.tenant_collections (
    tenant         text not null,
    collection     text not null references lab.collections on delete cascade,
    schema         text not null unique,            -- of the copy that its login searches
    digest         text not null default '',        -- of what the copy holds
    copied_at      timestamptz,
    chunks         bigint not null default 0,
    without_vector bigint not null default 0,
    codes          text not null default '',
    primary key (tenant, collection)
);

-- Vectors by (model, exact text), shared by all collections: a re-run embeds nothing. A null vector is a text the model maps to zero.
create table lab.embeddings (
    model_digest text not null,
    text_hash    bytea not null,
    vector       halfvec,
    primary key (model_digest, text_hash)
);

-- Token vectors for late interaction, (tokens, dim) float16 in row order; pruned by last use.
create table lab.token_vectors (
    model_digest text not null,
    text_hash    bytea not null,
    tokens       int not null,
    dim          int not null,
    vectors      bytea not null,
    used_at      timestamptz not null default now(),
    primary key (model_digest, text_hash)
);

-- The questions of every gold set that was run, so that scores can be read per kind without its files.
create table lab.questions (
    gold_digest text not null,
    question_id text not null,
    text        text not null,
    kind        text not null,
    split       text not null,
    answerable  boolean not null,
    metadata    jsonb not null default '{}',
    primary key (gold_digest, question_id)
);

create table lab.experiments (
    experiment_id text primary key,
    collection    text not null,
    gold          text not null,
    gold_digest   text not null,
    factors       jsonb not null,
    command       text not null,
    created_at    timestamptz not null default now(),
    finished_at   timestamptz
);

-- A run row says what it takes to repeat it. Append-only: a run is inserted as `incomplete` and closed once.
create table lab.runs (
    run_id        text primary key,
    experiment_id text references lab.experiments,
    collection    text not null,
    gold          text not null,
    gold_digest   text not null,
    split         text not null,
    status        text not null check (status in ('ok', 'degraded', 'incomplete')),
    settings      jsonb not null,
    settings_digest text not null,
    passed        jsonb not null,
    inputs        jsonb not null,           -- ingest flags, corpus, link and model digests, index build, stale rows
    environment   jsonb not null,           -- commit, dirty mark, versions, machine
    server        jsonb not null default '{}', -- database settings as read back while searching
    engines       jsonb not null default '{}', -- arm → engine → questions
    seed          bigint not null,
    questions     int not null,             -- scored
    unjudged      jsonb not null default '[]',
    notes         jsonb not null default '[]',
    timings       jsonb not null default '{}',
    stages        text[] not null default '{}', -- columns of the ledger
    health        jsonb not null default '{}', -- what the means hide: arms alone, rescued and harmed by stage, ties at k
    created_at    timestamptz not null default now(),
    finished_at   timestamptz
);

create table lab.scores (
    run_id      text not null references lab.runs on delete cascade,
    question_id text not null,
    measure     text not null,
    value       double precision not null check (value >= 0),
    primary key (run_id, question_id, measure)
);

-- Passages as they were when a run saw them, so that rankings stay readable after a chunk is replaced.
create table lab.passages (
    passage_id bigint generated always as identity primary key,
    collection text not null,
    chunk_id   text not null,
    source     text not null,
    start      int not null,
    "end"      int not null,
    class_id   bytea not null,
    unique (collection, chunk_id, start, "end", class_id)
);

create table lab.results (
    run_id      text not null references lab.runs on delete cascade,
    question_id text not null,
    rank        int not null check (rank >= 1),
    passage_id  bigint not null references lab.passages,
    score       double precision not null,
    similarity  double precision,
    grade       int not null,               -- of the judgment newly covered here; 0 = none
    by_twin     boolean not null,           -- covered through an exact twin of the passage
    linked_by   text,
    primary key (run_id, question_id, rank)
);

-- The stage ledger, one row a question: passages[i] stood at ranks[(i-1) * array_length(stages, 1) + s] in column s of the run; 0 = absent.
create table lab.ledger (
    run_id      text not null references lab.runs on delete cascade,
    question_id text not null,
    passages    bigint[] not null,
    ranks       smallint[] not null,
    seconds     jsonb not null,
    notes       text[] not null default '{}',
    grades      smallint[] not null default '{}', -- of the judgment that passages[i] covers; 0 = none
    lost        text,                       -- the stage that lost what answers; null where it was among the first k (k: lab.runs.health)
    lost_rank   int,                        -- its best rank right before; 0 where no arm had it
    primary key (run_id, question_id)
);
-- Packing these arrays takes ten times as long as writing them.
alter table lab.ledger alter passages set storage external, alter ranks set storage external, alter grades set storage external;

-- Baselines by name, and the verdicts of gates: both are kept as they were entered.
create table lab.baselines (
    baseline_id bigint generated always as identity primary key,
    name        text not null,
    run_id      text not null references lab.runs,
    note        text not null,
    who         text not null,
    at          timestamptz not null default now()
);
create index baselines_name on lab.baselines (name, baseline_id);

create table lab.verdicts (
    verdict_id text primary key,
    baseline   text not null,
    a          text not null,               -- the baseline's run
    b          text not null,               -- the run that was judged
    outcome    text not null check (outcome in ('pass', 'regression', 'cannot_judge')),
    verdict    jsonb not null,
    at         timestamptz not null default now()
);

create function lab.immutable() returns trigger language plpgsql as $$
begin
    raise exception 'rows of %.% are kept as they were entered', tg_table_schema, tg_table_name;
end
$$;
create trigger kept before update or delete on lab.baselines for each row execute function lab.immutable();
create trigger kept before update or delete on lab.verdicts for each row execute function lab.immutable();

-- Noise floors as they were measured: what a gate's margin is held against.
create table lab.noise (
    noise_id        bigint generated always as identity primary key,
    collection      text not null,
    gold_digest     text not null,
    settings_digest text not null,
    corpus_digest   text not null,
    measure         text not null,
    way             text not null,              -- again, shuffled, threads, rebuilt
    floor           double precision not null,  -- difference of the means, in the measure's unit
    a               text not null,              -- the run, and the one that repeats it
    b               text not null,
    at              timestamptz not null default now()
);
create index noise_of on lab.noise (collection, gold_digest, measure, settings_digest);
create trigger kept before update or delete on lab.noise for each row execute function lab.immutable();

-- What the settings of a run cost, from timed passes apart from the runs (members of a grid share work, which tells nothing of a search).
create table lab.latency (
    latency_id bigint generated always as identity primary key,
    run_id     text not null references lab.runs,
    pass       text not null,               -- runs that took turns in one pass share it: only their times can be compared
    questions  int not null,
    p50_ms     double precision not null,
    p95_ms     double precision not null,
    at         timestamptz not null default now()
);
create index latency_of on lab.latency (run_id, latency_id);

-- Scores of rerankers by (model, question, text).
create table lab.rerank_scores (
    model_digest  text not null,
    question_hash bytea not null,
    text_hash     bytea not null,
    score         double precision not null,
    primary key (model_digest, question_hash, text_hash)
);

-- Searches that were served (never runs): how many passages each arm brought, what was returned. The question's words only where LAB_TRACE=on.
create table lab.searches (
    search_id       bigint generated always as identity primary key,
    at              timestamptz not null default now(),
    collection      text not null,
    question        text,
    question_hash   bytea not null,
    settings_digest text not null,
    arms            jsonb not null,
    results         text[] not null,
    diagnostic      text,
    seconds         jsonb not null
);
create index searches_at on lab.searches (at);

-- The length of a passage in words as the BM25 index keeps it, in one byte: exact below 40, then four significant bits (Lucene's SmallFloat).
create function lab.kept_length(words int) returns int language sql immutable strict as $$
    select case when words < 32 then words
                else 24 + (((words - 24) >> (length(ltrim((words - 24)::bit(32)::text, '0')) - 4)) << (length(ltrim((words - 24)::bit(32)::text, '0')) - 4)) end
$$;

-- Triggers of a collection's chunks that keep its postings (sql/index/postings.sql) current.
create function lab.post_words() returns trigger language plpgsql as $$
begin
    execute format(
        'insert into %1$I.postings select l.lexeme, c.key, cardinality(l.positions), lab.kept_length(w.words), c.tenant from fresh c '
        'cross join lateral (select coalesce(sum(cardinality(positions)), 0)::int as words from unnest(c.tsv)) w cross join lateral unnest(c.tsv) l',
        tg_table_schema);
    execute format(
        'insert into %1$I.word_counts select c.tenant, count(*), sum(w.words) from fresh c '
        'cross join lateral (select coalesce(sum(cardinality(positions)), 0)::int as words from unnest(c.tsv)) w group by c.tenant '
        'on conflict (tenant) do update set chunks = %1$I.word_counts.chunks + excluded.chunks, words = %1$I.word_counts.words + excluded.words',
        tg_table_schema);
    return null;
end
$$;

create function lab.forget_words() returns trigger language plpgsql as $$
begin
    execute format(
        'update %1$I.word_counts s set chunks = s.chunks - g.chunks, words = s.words - g.words from (select c.tenant, count(*) as chunks, sum(w.words) as words '
        'from gone c cross join lateral (select coalesce(sum(cardinality(positions)), 0)::int as words from unnest(c.tsv)) w group by c.tenant) g '
        'where s.tenant is not distinct from g.tenant',
        tg_table_schema);
    return null;
end
$$;

-- Claims of passages that are no more are stale in the same transaction; those of a document that is gone at its end go with it (a replaced document is deleted and entered anew).
create function lab.stale_claims() returns trigger language plpgsql as $$
begin
    execute format(
        'update %1$I.claims set chunk_key = null, updated_at = clock_timestamp(), status = case when status in (''verified'', ''candidate'') then ''stale'' else status end '
        'where chunk_key in (select key from gone)', tg_table_schema);
    -- Such a document is read again, also in a state that was read before.
    execute format('delete from %I.claim_passes where source_id in (select source from gone)', tg_table_schema);
    return null;
end
$$;
create function lab.forget_claims() returns trigger language plpgsql as $$
begin
    execute format(
        'with absent as (select $1 as source where not exists (select from %1$I.files where source = $1)), claims as (delete from %1$I.claims where source_id in (select source from absent)), '
        'grades as (delete from %1$I.claim_grades where source_id in (select source from absent)) '
        'delete from %1$I.claim_passes where source_id in (select source from absent)', tg_table_schema) using old.source;
    return null;
end
$$;
-- The public interface of recorded runs, for notebooks and for people with psql: names and columns here are kept; the tables under them may change.
-- Applied after the schema and after every migration. Runs as it stands:  psql -1 -f sql/views.sql

-- Means by run and measure, over the questions that the measure is about.
create or replace view lab.run_scores as
select run_id, measure, avg(value) as mean, count(*) as questions from lab.scores group by run_id, measure;

-- Scores with what is known of run and question: one row a run, question and measure.
create or replace view lab.question_scores as
select r.run_id, r.experiment_id, r.collection, r.gold, r.passed, s.question_id, q.kind, q.metadata ->> 'band' as band, q.text as question, s.measure, s.value,
       q.metadata ->> 'cluster' as cluster
from lab.scores s
join lab.runs r using (run_id)
left join lab.questions q using (gold_digest, question_id);

-- The ledger as a table: one row a question, passage and column (the arms, then the stages in order).
create or replace view lab.ledger_rows as
select l.run_id, l.question_id, p.chunk_id, s.stage, s.position,
       nullif(l.ranks[(i.i - 1) * cardinality(r.stages) + s.position], 0) as rank, l.grades[i.i] as grade
from lab.ledger l
join lab.runs r using (run_id)
cross join lateral generate_subscripts(l.passages, 1) as i (i)
join lab.passages p on p.passage_id = l.passages[i.i]
cross join lateral unnest(r.stages) with ordinality as s (stage, position);

-- Where was it lost: by run and stage how many questions miss what answers them among the first k.
create or replace view lab.stage_loss as
select l.run_id, (r.health ->> 'k')::int as k, l.lost as stage, count(*) as questions, min(l.lost_rank) as best_rank
from lab.ledger l
join lab.runs r using (run_id)
where l.lost is not null
group by 1, 2, 3;

-- What changed from run a to run b: one row a question and measure whose score differs. Ask for both runs by name, or it compares everything with everything.
create or replace view lab.flips as
select a.run_id as a, b.run_id as b, x.question_id, q.text as question, q.kind, x.measure, x.value as before, y.value as after,
       case when (y.value > x.value) <> (x.measure like 'short@%') then 'won' else 'lost' end as direction, la.lost as lost_in_a, lb.lost as lost_in_b
from lab.runs a
join lab.runs b on b.gold_digest = a.gold_digest and b.run_id <> a.run_id
join lab.scores x on x.run_id = a.run_id
join lab.scores y on y.run_id = b.run_id and y.question_id = x.question_id and y.measure = x.measure and y.value <> x.value
left join lab.questions q on q.gold_digest = a.gold_digest and q.question_id = x.question_id
left join lab.ledger la on la.run_id = a.run_id and la.question_id = x.question_id
left join lab.ledger lb on lb.run_id = b.run_id and lb.question_id = x.question_id;

-- What one flag did in an experiment: the mean difference over all pairs of runs that differ in that flag alone. Intervals and p are those of `lab ablate`.
create or replace view lab.flag_effects as
select a.experiment_id, f.factor, a.passed ->> f.factor as low, b.passed ->> f.factor as high, x.measure, avg(y.mean - x.mean) as delta, count(*) as pairs
from lab.experiments e
join lab.runs a on a.experiment_id = e.experiment_id
join lab.runs b on b.experiment_id = e.experiment_id
cross join lateral jsonb_object_keys(e.factors) as f (factor)
join lab.run_scores x on x.run_id = a.run_id
join lab.run_scores y on y.run_id = b.run_id and y.measure = x.measure
where a.passed ->> f.factor = e.factors -> f.factor ->> 0
  and b.passed ->> f.factor <> a.passed ->> f.factor
  and a.passed - f.factor = b.passed - f.factor
group by 1, 2, 3, 4, 5;

insert into lab.runs (run_id, collection, gold, gold_digest, split, status, settings, settings_digest, passed, inputs, environment, seed, questions)
values ('r20240101-000000-0000', 'c', 'g', 'd', 'all', 'ok', '{}', 'd', '{}', '{}', '{}', 1, 1);
insert into lab.scores values ('r20240101-000000-0000', 'q', 'hit@5', 1);

insert into lab.collections (name, ingest, embedder, model_digest, dim, language) values ('c', '{"chunker": "whole", "chunk_size": 0, "overlap": 100, "context": "on", "embedder": "none"}', 'none', 'none', null, 'english');
-- The tables of one collection, in a schema of its own: nothing here is shared, so dropping the schema removes exactly this collection.
-- Runs as it stands:  psql -1 -v schema=kb_demo -v dim=384 -v language=english -f sql/collection.sql
--   schema    text   kb_<name>
--   dim       int    dimensions of the embedder's vectors (1 for embedder none)
--   language  text   text search configuration

create schema kb_c;

-- The ledger of files: what was read, when, and what became of it. `text` is what all offsets count.
create table kb_c.files (
    source       text collate "C" primary key, -- a tenant's begin with @TENANT/
    tenant       text,                          -- who may read it besides the owner: a tenant, or all of them (shared)
    root         text not null,
    format       text not null,
    title        text not null default '',
    text         text,
    content_hash bytea,
    bytes        bigint not null default 0,
    authority    int not null default 0,
    metadata     jsonb not null default '{}',   -- what the file tells of itself, typed
    given        jsonb not null default '{}',   -- what --metadata said of it; wins over metadata
    extractor    text not null default '',      -- reader and its version, as markdown-2
    source_url   text not null default '',
    document_version text not null default '',
    last_updated date,
    -- What the reader saw besides the text, by offset: blocks, pages, anchors, hyperlinks, terms.
    structure    jsonb not null default '{}',
    status       text not null check (status in ('indexed', 'missing', 'retired', 'refused')),
    reason       text,
    changed_at   timestamptz not null default clock_timestamp(),
    checked_at   timestamptz not null default clock_timestamp(), -- when an ingest last looked at it
    outcome      text not null default 'indexed'                 -- what it found: indexed, unchanged, replaced, missing, retired, refused
);

-- What became of each file, append-only; a look that found nothing new stands in files alone.
create table kb_c.events (
    event_id bigint generated always as identity primary key,
    at       timestamptz not null default clock_timestamp(),
    source   text collate "C" not null,
    outcome  text not null check (outcome in ('indexed', 'replaced', 'missing', 'found', 'retired', 'refused')),
    reason   text
);
create index events_source on kb_c.events (source, event_id);

create table kb_c.chunks (
    key       bigint generated always as identity primary key,
    source    text collate "C" not null references kb_c.files on delete cascade,
    tenant    text,                         -- of its file; here so that row-level security needs no join
    n         int not null,
    start     int not null,
    "end"     int not null,
    text      text not null check (text <> ''),
    context   text not null,
    heading   text[] not null,
    page      int,                          -- of its first character, where the format has pages
    window_start int,                       -- sentence-window: what is read around it, as offsets; never scored
    window_end   int,
    -- What is indexed: context, line break, text (or the text alone), at most 60,000 characters of it: a tsvector over 1 MB would abort the load, here and in
    -- the BM25 index, and a character can take 14 bytes there (four as such, in a compound and in its parts, and a position).
    body      text not null check (length(body) <= 60000),
    class_id  bytea not null,               -- exact twins share it
    codes     text[] not null default '{}', -- side tokens of the body: codes, section numbers, parts of compounds (lab/codes.py)
    embedding halfvec(1),                -- null: the model maps this text to zero, so it is found by words only
    tsv       tsvector generated always as (to_tsvector('english'::regconfig, body)) stored,
    unique (source, n)
);
-- Vectors stay in the row, texts leave it: an exact scan reads every vector and no text.
alter table kb_c.chunks alter embedding set storage main;
create index chunks_class on kb_c.chunks (class_id);

-- One row a mention. `cites` joins chunk → chunk, `defines` joins a normalised term → chunk; start and end lie in the document of
-- from_id for cites, of to_id for defines.
create table kb_c.links (
    relation text not null check (relation in ('cites', 'defines')),
    from_id  bigint references kb_c.chunks on delete cascade,
    term     text,
    to_id    bigint not null references kb_c.chunks on delete cascade,
    start    int not null,
    "end"    int not null,
    label    text not null,
    tenant   text,                          -- of the document that holds the mention
    check ((relation = 'cites') = (from_id is not null) and (relation = 'defines') = (term is not null)),
    unique nulls not distinct (relation, from_id, term, to_id, start)
);
create index links_from on kb_c.links (from_id) where from_id is not null;
create index links_term on kb_c.links (term) where term is not null;
create index links_to on kb_c.links (to_id);

-- Near twins: which exact classes were looked at, with the bands of their MinHash signature, and the pairs that are alike.
create table kb_c.near (
    class_id bytea primary key,
    bands    bigint[] not null,
    paired   boolean not null default false -- whether it was compared with the others
);
create index near_bands on kb_c.near using gin (bands);
create index near_unpaired on kb_c.near (class_id) where not paired;
create table kb_c.near_pairs (
    a bytea not null references kb_c.near on delete cascade,
    b bytea not null references kb_c.near on delete cascade,
    similarity real not null,               -- Jaccard of their shingles
    primary key (a, b),
    check (a < b)
);
create index near_pairs_b on kb_c.near_pairs (b);

-- Claims: single facts with the words that say them. The passage is the authority; a claim whose passage is no more is stale until it is found again.
create table kb_c.claims (
    claim_id     text collate "C" primary key,  -- c and the beginning of content_hash
    content_hash bytea not null unique,         -- of source, kind, subject, statement, quote
    source_type  text not null default 'document' check (source_type = 'document'),
    source_id    text collate "C" not null,     -- source of the document; goes with it
    n            int not null,                  -- of the passage that holds most of the quote
    chunk_key    bigint,                        -- null: stale
    start        int not null,                  -- of the quote in the document
    "end"        int not null,
    quote        text not null check (quote <> ''),
    statement    text not null check (statement <> '' and length(statement) <= 200),
    subject      text not null default '',      -- what a definition defines
    kind         text not null check (kind <> ''),
    confidence   real not null check (confidence between 0 and 1),
    status       text not null check (status in ('candidate', 'verified', 'rejected', 'stale')),
    reason       text,                          -- why it was rejected
    extractor    text not null,                 -- with its version, as rules-1
    words        int not null,                  -- of what is searched
    embedding    halfvec(1),
    tsv          tsvector generated always as (to_tsvector('english'::regconfig, statement || E'\n' || quote)) stored,
    created_at   timestamptz not null default clock_timestamp(),
    updated_at   timestamptz not null default clock_timestamp()
);
create index claims_source on kb_c.claims (source_id);
create index claims_chunk on kb_c.claims (chunk_key) where chunk_key is not null;
create index claims_tsv on kb_c.claims using gin (tsv);
create index claims_hnsw on kb_c.claims using hnsw (embedding halfvec_cosine_ops);
create trigger claims_stale after delete on kb_c.chunks referencing old table as gone for each statement execute function lab.stale_claims();
create constraint trigger claims_gone after delete on kb_c.files deferrable initially deferred for each row execute function lab.forget_claims();

-- What was extracted from which state of a document, so that it is not done again.
create table kb_c.claim_passes (
    source_id    text collate "C" not null,
    extractor    text not null,
    content_hash bytea not null,
    claims       int not null,
    rejected     int not null default 0,
    cost         jsonb not null default '{}',
    at           timestamptz not null default clock_timestamp(),
    primary key (source_id, extractor)
);

-- What a person or a model thinks of the claims that a chat model took from one state of a document: only those of a document that passes are verified.
create table kb_c.claim_grades (
    source_id    text collate "C" not null,
    grader       text collate "C" not null,     -- person:NAME, or chat:MODEL
    content_hash bytea not null,                -- of the document as it was graded
    claims       text not null,                 -- md5 of the ids of the claims that were graded
    score        real not null check (score between 0 and 1),
    passed       boolean not null,
    feedback     text not null default '',
    cost         jsonb not null default '{}',
    at           timestamptz not null default clock_timestamp(),
    primary key (source_id, grader)
);

-- Verified claims near a vector, for psql:  select * from kb_demo.search_claims((select embedding from kb_demo.claims limit 1), 5);
create function kb_c.search_claims(
    query_embedding halfvec, match_count int, similarity_threshold float8 default 0.3, filter_kind text default null, filter_authority int default null
) returns table (claim_id text, statement text, kind text, confidence real, authority int, quote text, passage text, start int, "end" int, similarity float8)
language sql stable
begin atomic
    select c.claim_id, c.statement, c.kind, c.confidence, f.authority, c.quote, c.source_id || '::' || c.n, c.start, c."end", 1 - (c.embedding <=> query_embedding)
    from kb_c.claims c join kb_c.files f on f.source = c.source_id
    where c.status = 'verified' and c.embedding is not null and 1 - (c.embedding <=> query_embedding) >= similarity_threshold
      and (filter_kind is null or c.kind = filter_kind) and (filter_authority is null or f.authority >= filter_authority)
    order by c.embedding <=> query_embedding, c.claim_id
    limit match_count;
end;

insert into kb_c.files (source, root, format, title, text, content_hash, status) values ('a.md', '/corpus', 'markdown', 'A', 'Some words.', '\x00', 'indexed');
insert into kb_c.chunks (source, n, start, "end", text, context, heading, body, class_id) values ('a.md', 1, 0, 11, 'Some words.', 'A', '{}', 'Some words.', '\x00');
