-- Lexical arm by BM25 in plain SQL, for when the BM25 index is missing or invalid: the formula of the index (k1 1.2, b 0.75,
-- idf = ln(1 + (N − df + 0.5)/(df + 0.5)); Robertson & Zaragoza 2009), from the words stored with each row. It reads every row once: seconds where the index takes milliseconds.
--   schema    text     kb_<name>
--   language  text     text search configuration
--   question  text     the question
--   tsquery   tsquery  what must match; null: a word of the question
--   keys      bigint[] only these chunks; null: all
--   limit     int      rows wanted
--   gives     key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
\if :{?limit} \else \set limit 20 \endif
with wanted as materialized (
    select lexeme, cardinality(positions) as asked from unnest(to_tsvector(:'language'::regconfig, left(:'question'::text, 200000)))
),
lengths as materialized (
    select c.key, sum(cardinality(t.positions)) as words
    from :"schema".chunks c cross join lateral unnest(c.tsv) as t
    group by c.key
),
corpus as materialized (
    select count(*)::float8 as chunks, greatest(avg(words), 1)::float8 as usual from lengths
),
found as materialized (
    select c.key, t.lexeme, cardinality(t.positions)::float8 as tf
    from :"schema".chunks c cross join lateral unnest(c.tsv) as t
    where t.lexeme in (select lexeme from wanted)
),
weights as materialized (
    select lexeme, max(w.asked) * ln(1 + ((select chunks from corpus) - count(*) + 0.5) / (count(*) + 0.5)) as idf
    from found join wanted w using (lexeme) group by lexeme
),
scored as materialized (
    select f.key, sum(w.idf * f.tf * 2.2 / (f.tf + 1.2 * (0.25 + 0.75 * lab.kept_length(l.words::int) / (select usual from corpus)))) as score
    from found f join weights w using (lexeme) join lengths l using (key)
    group by f.key
)
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority, s.score::float8 as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from scored s join :"schema".chunks c using (key)
where (:'tsquery'::tsquery is null or c.tsv @@ :'tsquery'::tsquery) and (:'keys'::bigint[] is null or c.key = any(:'keys'::bigint[]))
order by s.score desc, c.source, c.n
limit :limit;
