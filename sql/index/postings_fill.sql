-- Fills the words of every passage anew.
--   schema  text  kb_<name>
truncate :"schema".postings, :"schema".word_counts;
insert into :"schema".postings
select l.lexeme, c.key, cardinality(l.positions), lab.kept_length(w.words), c.tenant
from :"schema".chunks c
cross join lateral (select coalesce(sum(cardinality(positions)), 0)::int as words from unnest(c.tsv)) w
cross join lateral unnest(c.tsv) l;
insert into :"schema".word_counts
select c.tenant, count(*), sum(w.words)
from :"schema".chunks c cross join lateral (select coalesce(sum(cardinality(positions)), 0)::int as words from unnest(c.tsv)) w
group by c.tenant;
