-- Tenants: whose a document is, and which login role reads for whom.
create table lab.tenant_roles (
    role   text primary key,
    tenant text not null unique check (tenant ~ '^[a-z][a-z0-9_]{0,39}$' and tenant <> 'shared')
);
create table lab.tenant_collections (
    tenant     text not null,
    collection text not null references lab.collections on delete cascade,
    primary key (tenant, collection)
);

do $$
declare kb text;
begin
    for kb in select 'kb_' || name from lab.collections loop
        execute format('alter table %1$I.files add tenant text; alter table %1$I.chunks add tenant text; alter table %1$I.links add tenant text;', kb);
    end loop;
end
$$;
