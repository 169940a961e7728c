-- What a run's mean hides, and of each passage in the ledger the grade of the judgment that it covers.
alter table lab.runs add health jsonb not null default '{}';
alter table lab.ledger add grades smallint[] not null default '{}';
alter table lab.ledger alter grades set storage external;

create or replace view lab.ledger_rows as
select l.run_id, l.question_id, p.chunk_id, s.stage, s.position,
       nullif(l.ranks[(i.i - 1) * cardinality(r.stages) + s.position], 0) as rank, l.grades[i.i] as grade
from lab.ledger l
join lab.runs r using (run_id)
cross join lateral generate_subscripts(l.passages, 1) as i (i)
join lab.passages p on p.passage_id = l.passages[i.i]
cross join lateral unnest(r.stages) with ordinality as s (stage, position);
