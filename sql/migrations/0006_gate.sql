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
