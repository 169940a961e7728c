-- The tables of one collection, in a schema of its own: nothing here is shared, so dropping the schema removes exactly this collection.
-- Runs as it stands:  psql -1 -v schema=kb_demo -v dim=384 -v language=english -f sql/collection.sql
--   schema    text   kb_<name>
--   dim       int    dimensions of the embedder's vectors (1 for embedder none)
--   language  text   text search configuration

create schema :"schema";

-- The ledger of files: what was read, when, and what became of it. `text` is what all offsets count.
create table :"schema".files (
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
create table :"schema".events (
    event_id bigint generated always as identity primary key,
    at       timestamptz not null default clock_timestamp(),
    source   text collate "C" not null,
    outcome  text not null check (outcome in ('indexed', 'replaced', 'missing', 'found', 'retired', 'refused')),
    reason   text
);
create index events_source on :"schema".events (source, event_id);

create table :"schema".chunks (
    key       bigint generated always as identity primary key,
    source    text collate "C" not null references :"schema".files on delete cascade,
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
    embedding halfvec(:dim),                -- null: the model maps this text to zero, so it is found by words only
    tsv       tsvector generated always as (to_tsvector(:'language'::regconfig, body)) stored,
    unique (source, n)
);
-- Vectors stay in the row, texts leave it: an exact scan reads every vector and no text.
alter table :"schema".chunks alter embedding set storage main;
create index chunks_class on :"schema".chunks (class_id);

-- One row a mention. `cites` joins chunk → chunk, `defines` joins a normalised term → chunk; start and end lie in the document of
-- from_id for cites, of to_id for defines.
create table :"schema".links (
    relation text not null check (relation in ('cites', 'defines')),
    from_id  bigint references :"schema".chunks on delete cascade,
    term     text,
    to_id    bigint not null references :"schema".chunks on delete cascade,
    start    int not null,
    "end"    int not null,
    label    text not null,
    tenant   text,                          -- of the document that holds the mention
    check ((relation = 'cites') = (from_id is not null) and (relation = 'defines') = (term is not null)),
    unique nulls not distinct (relation, from_id, term, to_id, start)
);
create index links_from on :"schema".links (from_id) where from_id is not null;
create index links_term on :"schema".links (term) where term is not null;
create index links_to on :"schema".links (to_id);

-- Near twins: which exact classes were looked at, with the bands of their MinHash signature, and the pairs that are alike.
create table :"schema".near (
    class_id bytea primary key,
    bands    bigint[] not null,
    paired   boolean not null default false -- whether it was compared with the others
);
create index near_bands on :"schema".near using gin (bands);
create index near_unpaired on :"schema".near (class_id) where not paired;
create table :"schema".near_pairs (
    a bytea not null references :"schema".near on delete cascade,
    b bytea not null references :"schema".near on delete cascade,
    similarity real not null,               -- Jaccard of their shingles
    primary key (a, b),
    check (a < b)
);
create index near_pairs_b on :"schema".near_pairs (b);

-- Claims: single facts with the words that say them. The passage is the authority; a claim whose passage is no more is stale until it is found again.
create table :"schema".claims (
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
    embedding    halfvec(:dim),
    tsv          tsvector generated always as (to_tsvector(:'language'::regconfig, statement || E'\n' || quote)) stored,
    created_at   timestamptz not null default clock_timestamp(),
    updated_at   timestamptz not null default clock_timestamp()
);
create index claims_source on :"schema".claims (source_id);
create index claims_chunk on :"schema".claims (chunk_key) where chunk_key is not null;
create index claims_tsv on :"schema".claims using gin (tsv);
create index claims_hnsw on :"schema".claims using hnsw (embedding halfvec_cosine_ops);
create trigger claims_stale after delete on :"schema".chunks referencing old table as gone for each statement execute function lab.stale_claims();
create constraint trigger claims_gone after delete on :"schema".files deferrable initially deferred for each row execute function lab.forget_claims();

-- What was extracted from which state of a document, so that it is not done again.
create table :"schema".claim_passes (
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
create table :"schema".claim_grades (
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
create function :"schema".search_claims(
    query_embedding halfvec, match_count int, similarity_threshold float8 default 0.3, filter_kind text default null, filter_authority int default null
) returns table (claim_id text, statement text, kind text, confidence real, authority int, quote text, passage text, start int, "end" int, similarity float8)
language sql stable
begin atomic
    select c.claim_id, c.statement, c.kind, c.confidence, f.authority, c.quote, c.source_id || '::' || c.n, c.start, c."end", 1 - (c.embedding <=> query_embedding)
    from :"schema".claims c join :"schema".files f on f.source = c.source_id
    where c.status = 'verified' and c.embedding is not null and 1 - (c.embedding <=> query_embedding) >= similarity_threshold
      and (filter_kind is null or c.kind = filter_kind) and (filter_authority is null or f.authority >= filter_authority)
    order by c.embedding <=> query_embedding, c.claim_id
    limit match_count;
end;
