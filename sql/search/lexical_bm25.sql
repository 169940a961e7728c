-- Lexical arm by BM25 (pg_textsearch), any word may match. The question is plain text: no character in it is an operator.
-- It stays one flat statement: only there does the extension take the score from the index; inside a CTE or a subquery every row would be
-- scored anew from its text, 0.1 ms a row. So ties are put in the order (score, source, n) by the caller. And it must go through the index: run it
-- after `set local enable_seqscan = off; set local enable_sort = off`, else a small table is scanned and the scores are those of some other search.
--   schema    text  kb_<name>
--   index     text  kb_<name>.chunks_bm25
--   question  text  the question
--   limit     int   rows wanted
\if :{?limit} \else \set limit 20 \endif
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority,
       -bm25_get_current_score() as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from :"schema".chunks c
order by c.body <@> to_bm25query(:'question'::text, :'index'::text)
limit :limit;
