-- Provenance of files and chunks, the history of what became of each file, and near twins as rows; in every collection.
alter table lab.collections add link_counts jsonb not null default '{}';

do $$
declare kb text;
begin
    for kb in select 'kb_' || name from lab.collections loop
        execute format($sql$
            alter table %1$I.files
                add given jsonb not null default '{}',
                add extractor text not null default '',
                add source_url text not null default '',
                add document_version text not null default '',
                add last_updated date,
                add structure jsonb not null default '{}',
                add checked_at timestamptz not null default clock_timestamp(),
                add outcome text not null default 'indexed';
            update %1$I.files set outcome = status where status <> 'indexed';
            create table %1$I.events (
                event_id bigint generated always as identity primary key,
                at       timestamptz not null default clock_timestamp(),
                source   text collate "C" not null,
                outcome  text not null check (outcome in ('indexed', 'replaced', 'missing', 'found', 'retired', 'refused')),
                reason   text
            );
            create index events_source on %1$I.events (source, event_id);
            insert into %1$I.events (at, source, outcome, reason) select changed_at, source, status, reason from %1$I.files order by changed_at, source;
            alter table %1$I.chunks add page int, add window_start int, add window_end int;
            create table %1$I.near (class_id bytea primary key, bands bigint[] not null, paired boolean not null default false);
            create index near_bands on %1$I.near using gin (bands);
            create index near_unpaired on %1$I.near (class_id) where not paired;
            create table %1$I.near_pairs (
                a bytea not null references %1$I.near on delete cascade,
                b bytea not null references %1$I.near on delete cascade,
                similarity real not null,
                primary key (a, b),
                check (a < b)
            );
            create index near_pairs_b on %1$I.near_pairs (b);
        $sql$, kb);
    end loop;
end
$$;
