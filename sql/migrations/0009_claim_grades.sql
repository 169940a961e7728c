-- Grades of claims, in every collection; the shape is that of sql/collection.sql.
create or replace function lab.forget_claims() returns trigger language plpgsql as $$
begin
    execute format(
        'with absent as (select $1 as source where not exists (select from %1$I.files where source = $1)), claims as (delete from %1$I.claims where source_id in (select source from absent)), '
        'grades as (delete from %1$I.claim_grades where source_id in (select source from absent)) '
        'delete from %1$I.claim_passes where source_id in (select source from absent)', tg_table_schema) using old.source;
    return null;
end
$$;

do $migrate$
declare
    c record;
begin
    for c in select name from lab.collections loop
        execute format($ddl$
-- What a person or a model thinks of the claims that a chat model took from one state of a document: only those of a document that passes are verified.
create table %1$I.claim_grades (
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
$ddl$, 'kb_' || c.name);
    end loop;
end
$migrate$;
