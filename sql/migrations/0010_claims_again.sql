-- A document whose passages went is read again for its claims, also in a state that was read before: after an edit that was undone its claims stayed stale.
create or replace function lab.stale_claims() returns trigger language plpgsql as $$
begin
    execute format(
        'update %1$I.claims set chunk_key = null, updated_at = clock_timestamp(), status = case when status in (''verified'', ''candidate'') then ''stale'' else status end '
        'where chunk_key in (select key from gone)', tg_table_schema);
    -- Such a document is read again, also in a state that was read before.
    execute format('delete from %I.claim_passes where source_id in (select source from gone)', tg_table_schema);
    return null;
end
$$;

do $migrate$
declare
    c record;
begin
    for c in select name from lab.collections loop
        execute format('delete from %1$I.claim_passes where source_id in (select source_id from %1$I.claims where chunk_key is null)', 'kb_' || c.name);
    end loop;
end
$migrate$;
