-- Row-level security on the tables of a collection that holds documents of tenants. No tenant's login has a right to them; this wall stands where one is
-- given by mistake. The owner sees all, but not in a session of a tenant.
--   schema  text  kb_<name>
--   owner   text  the role that owns the tables
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

drop policy if exists tenant on :"schema".files;
drop policy if exists tenant on :"schema".chunks;
drop policy if exists tenant on :"schema".links;
create policy tenant on :"schema".files for select using (tenant in ((select lab_tenants.tenant()), 'shared') and (select lab_tenants.tenant()) is not null);
create policy tenant on :"schema".chunks for select using (tenant in ((select lab_tenants.tenant()), 'shared') and (select lab_tenants.tenant()) is not null);
create policy tenant on :"schema".links for select using (tenant in ((select lab_tenants.tenant()), 'shared') and (select lab_tenants.tenant()) is not null);
