-- Tenants of one collection: row-level security on its tables, and a schema for the functions through which tenants search. Run again at any time.
-- A tenant's login has no right to the tables themselves: EXPLAIN ANALYZE would count the rows that a policy removed, and a score of the
-- shared BM25 index tells how rare a word is in all documents.
--   schema     text  kb_<name>
--   functions  text  kbt_<name>
--   owner      text  the role that owns the tables
--   reader     text  the role that runs the functions
--   tenants    text  the role that every tenant's login is a member of

create index if not exists chunks_tenant on :"schema".chunks (tenant);

alter table :"schema".files enable row level security;
alter table :"schema".files force row level security;
alter table :"schema".chunks enable row level security;
alter table :"schema".chunks force row level security;
alter table :"schema".links enable row level security;
alter table :"schema".links force row level security;
alter table :"schema".events enable row level security;
alter table :"schema".events force row level security;
alter table :"schema".near enable row level security;
alter table :"schema".near force row level security;
alter table :"schema".near_pairs enable row level security;
alter table :"schema".near_pairs force row level security;

-- The owner sees all, but not through a function that a tenant calls.
drop policy if exists owner on :"schema".files;
drop policy if exists owner on :"schema".chunks;
drop policy if exists owner on :"schema".links;
drop policy if exists owner on :"schema".events;
drop policy if exists owner on :"schema".near;
drop policy if exists owner on :"schema".near_pairs;
create policy owner on :"schema".files to :"owner" using ((select lab_tenants.tenant()) is null);
create policy owner on :"schema".chunks to :"owner" using ((select lab_tenants.tenant()) is null);
create policy owner on :"schema".links to :"owner" using ((select lab_tenants.tenant()) is null);
create policy owner on :"schema".events to :"owner" using ((select lab_tenants.tenant()) is null);
create policy owner on :"schema".near to :"owner" using ((select lab_tenants.tenant()) is null);
create policy owner on :"schema".near_pairs to :"owner" using ((select lab_tenants.tenant()) is null);

-- To everybody, so that a right given by mistake opens no row of another tenant.
drop policy if exists tenant on :"schema".files;
drop policy if exists tenant on :"schema".chunks;
drop policy if exists tenant on :"schema".links;
create policy tenant on :"schema".files for select using (tenant = any ((select lab_tenants.tenants())::text[]));
create policy tenant on :"schema".chunks for select using (tenant = any ((select lab_tenants.tenants())::text[]));
create policy tenant on :"schema".links for select using (tenant = any ((select lab_tenants.tenants())::text[]));

grant usage on schema :"schema" to :"reader";
grant select on :"schema".files, :"schema".chunks, :"schema".links to :"reader";

drop schema if exists :"functions" cascade;
create schema :"functions";
grant usage, create on schema :"functions" to :"reader";
grant usage on schema :"functions" to :"tenants";
