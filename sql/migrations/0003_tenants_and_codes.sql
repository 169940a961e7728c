-- Tenants: whose a document is, and which login role reads for whom. Side tokens beside the text of every passage; `lab index NAME` fills them. Triggers for
-- BM25 in plain SQL. Traces of searches.
alter table lab.collections add codes text not null default '';
create table lab.tenant_roles (
    role   text primary key,
    tenant text not null unique check (tenant ~ '^[a-z][a-z0-9_]{0,39}$' and tenant <> 'shared')
);
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

do $$
declare kb text;
begin
    for kb in select 'kb_' || name from lab.collections loop
        execute format(
            'alter table %1$I.files add tenant text; alter table %1$I.links add tenant text; '
            'alter table %1$I.chunks add tenant text, add codes text[] not null default %2$L;', kb, '{}');
    end loop;
end
$$;

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
