-- The words of every passage as rows, for BM25 in plain SQL: where the server has no pg_textsearch, and for tenants. Triggers keep them current whatever
-- writes the passages; sql/index/postings_fill.sql fills them.
--   schema  text  kb_<name>
create table :"schema".postings (
    lexeme text collate "C" not null,
    key    bigint not null references :"schema".chunks on delete cascade,
    tf     int not null,                -- how often it stands in the passage
    words  int not null,                -- how many words the passage has, as lab.kept_length keeps it
    tenant text,
    primary key (lexeme, key) include (tf, words)
);
create index postings_key on :"schema".postings (key);

create table :"schema".word_counts (
    tenant text unique nulls not distinct,
    chunks bigint not null,
    words  bigint not null
);

create trigger words_in after insert on :"schema".chunks referencing new table as fresh for each statement execute function lab.post_words();
create trigger words_out after delete on :"schema".chunks referencing old table as gone for each statement execute function lab.forget_words();
