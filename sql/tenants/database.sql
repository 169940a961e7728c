-- Tenants: what a tenant's login can reach of the lab itself. Run again at any time.
--   tenants  text  role without login that every tenant's login is a member of

create schema if not exists lab_tenants;

-- The tenant of this session, by the role that logged in: `set role`, `set session` and settings do not change that one. Null: not a tenant's.
create or replace function lab_tenants.tenant() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select r.tenant from lab.tenant_roles r where r.role = session_user::text $$;

create or replace function lab_tenants.schema_version() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select value from lab.meta where key = 'schema_version' $$;

-- The collections that hold something for this session, as far as its own documents tell. Of the authority rules, whose patterns name paths, only the
-- highest tier is told.
drop function if exists lab_tenants.collections();
create function lab_tenants.collections() returns table (
    name text, ingest jsonb, embedder text, model_digest text, dim int, language text, authority jsonb, corpus_digest text, link_digest text,
    indexed_at timestamptz, index_build jsonb, chunks bigint, without_vector bigint, stale_rows bigint, link_counts jsonb, codes text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select c.name, c.ingest, c.embedder, c.model_digest, c.dim, c.language,
           jsonb_build_object('rules', '[]'::jsonb, 'default', greatest((c.authority ->> 'default')::int,
               (select max((r ->> 'tier')::int) from jsonb_array_elements(c.authority -> 'rules') r))),
           t.digest, t.digest, t.copied_at, '{}'::jsonb, t.chunks, t.without_vector, 0::bigint, '{}'::jsonb, t.codes
    from lab.collections c join lab.tenant_collections t on t.collection = c.name
    where t.tenant = lab_tenants.tenant() and t.copied_at is not null
    order by c.name
$$;

revoke all on all functions in schema lab_tenants from public;
grant usage on schema lab_tenants to :"tenants";
grant execute on all functions in schema lab_tenants to :"tenants";
