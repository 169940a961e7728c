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
