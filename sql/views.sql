-- The public interface of recorded runs, for notebooks and for people with psql: names and columns here are kept; the tables under them may change.
-- Applied after the schema and after every migration. Runs as it stands:  psql -1 -f sql/views.sql

-- Means by run and measure, over the questions that the measure is about.
create or replace view lab.run_scores as
select run_id, measure, avg(value) as mean, count(*) as questions from lab.scores group by run_id, measure;

-- Scores with what is known of run and question: one row a run, question and measure.
create or replace view lab.question_scores as
select r.run_id, r.experiment_id, r.collection, r.gold, r.passed, s.question_id, q.kind, q.metadata ->> 'band' as band, q.text as question, s.measure, s.value,
       q.metadata ->> 'cluster' as cluster
from lab.scores s
join lab.runs r using (run_id)
left join lab.questions q using (gold_digest, question_id);

-- The ledger as a table: one row a question, passage and column (the arms, then the stages in order).
create or replace view lab.ledger_rows as
select l.run_id, l.question_id, p.chunk_id, s.stage, s.position,
       nullif(l.ranks[(i.i - 1) * cardinality(r.stages) + s.position], 0) as rank, l.grades[i.i] as grade
from lab.ledger l
join lab.runs r using (run_id)
cross join lateral generate_subscripts(l.passages, 1) as i (i)
join lab.passages p on p.passage_id = l.passages[i.i]
cross join lateral unnest(r.stages) with ordinality as s (stage, position);

-- Where was it lost: by run and stage how many questions miss what answers them among the first k.
create or replace view lab.stage_loss as
select l.run_id, (r.health ->> 'k')::int as k, l.lost as stage, count(*) as questions, min(l.lost_rank) as best_rank
from lab.ledger l
join lab.runs r using (run_id)
where l.lost is not null
group by 1, 2, 3;

-- What changed from run a to run b: one row a question and measure whose score differs. Ask for both runs by name, or it compares everything with everything.
create or replace view lab.flips as
select a.run_id as a, b.run_id as b, x.question_id, q.text as question, q.kind, x.measure, x.value as before, y.value as after,
       case when (y.value > x.value) <> (x.measure like 'short@%') then 'won' else 'lost' end as direction, la.lost as lost_in_a, lb.lost as lost_in_b
from lab.runs a
join lab.runs b on b.gold_digest = a.gold_digest and b.run_id <> a.run_id
join lab.scores x on x.run_id = a.run_id
join lab.scores y on y.run_id = b.run_id and y.question_id = x.question_id and y.measure = x.measure and y.value <> x.value
left join lab.questions q on q.gold_digest = a.gold_digest and q.question_id = x.question_id
left join lab.ledger la on la.run_id = a.run_id and la.question_id = x.question_id
left join lab.ledger lb on lb.run_id = b.run_id and lb.question_id = x.question_id;

-- What one flag did in an experiment: the mean difference over all pairs of runs that differ in that flag alone. Intervals and p are those of `lab ablate`.
create or replace view lab.flag_effects as
select a.experiment_id, f.factor, a.passed ->> f.factor as low, b.passed ->> f.factor as high, x.measure, avg(y.mean - x.mean) as delta, count(*) as pairs
from lab.experiments e
join lab.runs a on a.experiment_id = e.experiment_id
join lab.runs b on b.experiment_id = e.experiment_id
cross join lateral jsonb_object_keys(e.factors) as f (factor)
join lab.run_scores x on x.run_id = a.run_id
join lab.run_scores y on y.run_id = b.run_id and y.measure = x.measure
where a.passed ->> f.factor = e.factors -> f.factor ->> 0
  and b.passed ->> f.factor <> a.passed ->> f.factor
  and a.passed - f.factor = b.passed - f.factor
group by 1, 2, 3, 4, 5;
