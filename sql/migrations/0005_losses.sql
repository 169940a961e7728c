-- Of every question the stage that lost what answers it. The views are those of sql/views.sql, which is applied after the migrations.
alter table lab.ledger add lost text;
alter table lab.ledger add lost_rank int;
