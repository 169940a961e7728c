-- Lexical arm by BM25 in plain SQL over the postings table (sql/index/postings.sql), where the server has no pg_textsearch and for tenants: the formula of
-- the index (k1 1.2, b 0.75, a word asked for twice counts twice, idf = ln(1 + (N − df + 0.5)/(df + 0.5)); Robertson & Zaragoza 2009).
--   schema    text      kb_<name>
--   language  text      text search configuration
--   question  text      the question
--   mode      text      any: a word of the question is enough; all, websearch: what matches the tsquery
--   tsquery   tsquery   what must match
--   keys      bigint[]  only these chunks; null: all
--   limit     int       rows wanted
--   gives     key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
\if :{?limit} \else \set limit 20 \endif
with corpus as materialized (
    select coalesce(sum(chunks), 0)::float8 as chunks, coalesce(sum(words) / nullif(sum(chunks), 0), 1)::float8 as usual from :"schema".word_counts
),
found as materialized (
    select p.key, p.lexeme, p.tf, p.words, cardinality(q.positions) as asked
    from unnest(to_tsvector(:'language'::regconfig, left(:'question'::text, 200000))) as q
    join :"schema".postings p on p.lexeme = q.lexeme
),
weights as materialized (
    select lexeme, max(asked) * ln(1 + ((select chunks from corpus) - count(*) + 0.5) / (count(*) + 0.5))::float8 as idf from found group by lexeme
),
scored as materialized (
    select f.key, sum(w.idf * f.tf * 2.2 / (f.tf + 1.2 * (0.25 + 0.75 * f.words / (select usual from corpus)))) as score
    from found f join weights w using (lexeme)
    where (:'keys'::bigint[] is null or f.key = any(:'keys'::bigint[]))
      and (:'mode'::text = 'any' or f.key in (select key from :"schema".chunks where tsv @@ :'tsquery'::tsquery))
    group by f.key
    order by score desc
    fetch first :limit rows with ties
)
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority, s.score::float8 as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from scored s join :"schema".chunks c using (key)
order by s.score desc, c.source, c.n
limit :limit;
