-- Claims: single facts with their quotes, in every collection; the shape is that of sql/collection.sql. Whom to ask where a collection has no answer.
alter table lab.collections add escalation text not null default '';

-- Claims of passages that are no more are stale in the same transaction; those of a document that is gone at its end go with it (a replaced document is deleted and entered anew).
create function lab.stale_claims() returns trigger language plpgsql as $$
begin
    execute format(
        'update %1$I.claims set chunk_key = null, updated_at = clock_timestamp(), status = case when status in (''verified'', ''candidate'') then ''stale'' else status end '
        'where chunk_key in (select key from gone)', tg_table_schema);
    return null;
end
$$;
create function lab.forget_claims() returns trigger language plpgsql as $$
begin
    execute format(
        'with absent as (select $1 as source where not exists (select from %1$I.files where source = $1)), claims as (delete from %1$I.claims where source_id in (select source from absent)) '
        'delete from %1$I.claim_passes where source_id in (select source from absent)', tg_table_schema) using old.source;
    return null;
end
$$;

do $migrate$
declare c record;
begin
    for c in select name, coalesce(dim, 1) as dim, language from lab.collections loop
        execute format($ddl$
-- Claims: single facts with the words that say them. The passage is the authority; a claim whose passage is no more is stale until it is found again.
create table %1$I.claims (
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
    embedding    halfvec(%2$s),
    tsv          tsvector generated always as (to_tsvector(%3$L::regconfig, statement || E'\n' || quote)) stored,
    created_at   timestamptz not null default clock_timestamp(),
    updated_at   timestamptz not null default clock_timestamp()
);
create index claims_source on %1$I.claims (source_id);
create index claims_chunk on %1$I.claims (chunk_key) where chunk_key is not null;
create index claims_tsv on %1$I.claims using gin (tsv);
create index claims_hnsw on %1$I.claims using hnsw (embedding halfvec_cosine_ops);
create trigger claims_stale after delete on %1$I.chunks referencing old table as gone for each statement execute function lab.stale_claims();
create constraint trigger claims_gone after delete on %1$I.files deferrable initially deferred for each row execute function lab.forget_claims();

-- What was extracted from which state of a document, so that it is not done again.
create table %1$I.claim_passes (
    source_id    text collate "C" not null,
    extractor    text not null,
    content_hash bytea not null,
    claims       int not null,
    rejected     int not null default 0,
    cost         jsonb not null default '{}',
    at           timestamptz not null default clock_timestamp(),
    primary key (source_id, extractor)
);

-- Verified claims near a vector, for psql:  select * from kb_demo.search_claims((select embedding from kb_demo.claims limit 1), 5);
create function %1$I.search_claims(
    query_embedding halfvec, match_count int, similarity_threshold float8 default 0.3, filter_kind text default null, filter_authority int default null
) returns table (claim_id text, statement text, kind text, confidence real, authority int, quote text, passage text, start int, "end" int, similarity float8)
language sql stable
begin atomic
    select c.claim_id, c.statement, c.kind, c.confidence, f.authority, c.quote, c.source_id || '::' || c.n, c.start, c."end", 1 - (c.embedding <=> query_embedding)
    from %1$I.claims c join %1$I.files f on f.source = c.source_id
    where c.status = 'verified' and c.embedding is not null and 1 - (c.embedding <=> query_embedding) >= similarity_threshold
      and (filter_kind is null or c.kind = filter_kind) and (filter_authority is null or f.authority >= filter_authority)
    order by c.embedding <=> query_embedding, c.claim_id
    limit match_count;
end;
$ddl$, 'kb_' || c.name, c.dim, c.language);
    end loop;
end
$migrate$;
