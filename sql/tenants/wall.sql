-- Row-level security on the copy of a tenant, should a right on it be given to another login.
--   schema  text  the schema of the copy
--   owner   text  the role that owns the tables
--   tenant  text  the tenant
alter table :"schema".files enable row level security;
alter table :"schema".files force row level security;
create policy tenant on :"schema".files for select using ((select lab_tenants.tenant()) = :'tenant');
create policy owner on :"schema".files to :"owner" using ((select lab_tenants.tenant()) is null);
alter table :"schema".chunks enable row level security;
alter table :"schema".chunks force row level security;
create policy tenant on :"schema".chunks for select using ((select lab_tenants.tenant()) = :'tenant');
create policy owner on :"schema".chunks to :"owner" using ((select lab_tenants.tenant()) is null);
alter table :"schema".links enable row level security;
alter table :"schema".links force row level security;
create policy tenant on :"schema".links for select using ((select lab_tenants.tenant()) = :'tenant');
create policy owner on :"schema".links to :"owner" using ((select lab_tenants.tenant()) is null);
alter table :"schema".postings enable row level security;
alter table :"schema".postings force row level security;
create policy tenant on :"schema".postings for select using ((select lab_tenants.tenant()) = :'tenant');
create policy owner on :"schema".postings to :"owner" using ((select lab_tenants.tenant()) is null);
alter table :"schema".word_counts enable row level security;
alter table :"schema".word_counts force row level security;
create policy tenant on :"schema".word_counts for select using ((select lab_tenants.tenant()) = :'tenant');
create policy owner on :"schema".word_counts to :"owner" using ((select lab_tenants.tenant()) is null);
