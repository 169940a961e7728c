-- What one tenant may read of a collection, in a schema of its own, as its login searches it: its documents and the shared ones, with links that stay
-- among them. Derived data, made anew after an ingest; in tables of its own, so that no plan, statistic or counter tells of anybody else's.
--   source  text  kb_<name>
--   schema  text  the schema of the copy, made by sql/collection.sql
--   tenant  text  the tenant
insert into :"schema".files (source, tenant, root, format, title, text, content_hash, bytes, authority, metadata, given, extractor, source_url,
    document_version, last_updated, structure, status, reason, changed_at, checked_at, outcome)
select source, tenant, '', format, title, text, content_hash, bytes, authority, metadata, given, extractor, source_url, document_version, last_updated,
    structure, status, reason, changed_at, checked_at, outcome
from :"source".files
where tenant in (:'tenant', 'shared') and status in ('indexed', 'missing');

insert into :"schema".chunks (key, source, tenant, n, start, "end", text, context, heading, page, window_start, window_end, body, class_id, codes, embedding)
overriding system value
select row_number() over (order by c.source, c.n), c.source, c.tenant, c.n, c.start, c."end", c.text, c.context, c.heading, c.page, c.window_start, c.window_end, c.body, c.class_id,
    c.codes, c.embedding
from :"source".chunks c join :"schema".files f using (source);

insert into :"schema".links (relation, from_id, term, to_id, start, "end", label, tenant)
select l.relation, b.key, l.term, d.key, l.start, l."end", l.label, l.tenant
from :"source".links l
join :"source".chunks c on c.key = l.to_id
join :"schema".chunks d on d.source = c.source and d.n = c.n
left join :"source".chunks a on a.key = l.from_id
left join :"schema".chunks b on b.source = a.source and b.n = a.n
where l.tenant in (:'tenant', 'shared') and (l.from_id is null or b.key is not null);
