-- The recipe that is copied most: any-word ts_rank_cd, and the vector through a CTE ordered by similarity. Neither list can use an index for its order.
--   schema   text     kb_<name>
--   vector   halfvec  the question's vector
--   tsquery  tsquery  any word of the question
--   limit    int      rows of each list, and of the result
\if :{?limit} \else \set limit 100 \endif
with q as (
    select :'vector'::halfvec as vector, :'tsquery'::tsquery as words
),
dense as (
    select c.key, row_number() over (order by 1 - (c.embedding <=> q.vector) desc) as rank
    from :"schema".chunks c, q where c.embedding is not null order by 1 - (c.embedding <=> q.vector) desc limit :limit
),
lexical as (
    select c.key, row_number() over (order by ts_rank_cd(c.tsv, q.words) desc) as rank
    from :"schema".chunks c, q where c.tsv @@ q.words order by ts_rank_cd(c.tsv, q.words) desc limit :limit
)
select key, coalesce(1.0 / (60 + dense.rank), 0) + coalesce(1.0 / (60 + lexical.rank), 0) as score
from dense full join lexical using (key) order by score desc, key limit :limit;
