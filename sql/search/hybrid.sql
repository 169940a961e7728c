-- Both arms and their fusion in one statement, for psql: hybrid search with reciprocal rank fusion (Cormack et al. 2009), without side tokens, authority, twins
-- and links. BM25 must go through its index: run it after `set enable_seqscan = off`, else a small table is scanned; `set hnsw.ef_search = 200` and
-- `set hnsw.iterative_scan = strict_order` give the dense arm its breadth. Equal scores are put in the order of (source, n).
--   schema      text     kb_<name>
--   vector      halfvec  the question's vector
--   index       text     kb_<name>.chunks_bm25
--   question    text     the question
--   candidates  int      rows an arm contributes
--   rrf_k       int      constant of the fusion
--   limit       int      rows wanted
\if :{?candidates} \else \set candidates 100 \endif
\if :{?rrf_k} \else \set rrf_k 10 \endif
\if :{?limit} \else \set limit 10 \endif
with nearest as materialized (
    select key, source, n, embedding <=> :'vector'::halfvec as distance
    from :"schema".chunks
    where embedding is not null
    order by embedding <=> :'vector'::halfvec
    limit :candidates + 50
),
dense as materialized (
    select key, row_number() over (order by distance, source, n) as rank from nearest
),
matching as materialized (
    select key from :"schema".chunks order by body <@> to_bm25query(:'question'::text, :'index'::text) limit :candidates + 50
),
scored as materialized (
    select key, c.source, c.n, round((c.body <@> to_bm25query(:'question'::text, :'index'::text))::numeric, 5) as score
    from matching join :"schema".chunks c using (key)
),
lexical as materialized (
    select key, row_number() over (order by score, source, n) as rank from scored
),
fused as (
    select key, coalesce(1.0 / (:rrf_k + d.rank), 0) + coalesce(1.0 / (:rrf_k + l.rank), 0) as score, least(d.rank, l.rank) as best, d.rank as dense_rank, l.rank as lexical_rank
    from (select * from dense where rank <= :candidates) d full join (select * from lexical where rank <= :candidates) l using (key)
)
select c.source || '::' || c.n as chunk_id, f.score, f.dense_rank, f.lexical_rank, c.context, c.text
from fused f join :"schema".chunks c using (key)
order by f.score desc, f.best, c.source, c.n
limit :limit;
