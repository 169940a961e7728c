-- The harness: one schema `lab` for everything that is not a collection. Applied once, to an empty database, by the first connection;
-- a database that holds an older version is brought up by the files of sql/migrations, in order. This file is always the whole.
-- Runs as it stands:  psql -1 -f sql/schema.sql

create extension if not exists vector;
create schema lab;

create table lab.meta (
    key   text primary key,
    value text not null
);
insert into lab.meta values ('schema_version', '9');

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
