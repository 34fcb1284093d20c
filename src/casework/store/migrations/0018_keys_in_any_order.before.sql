-- Claims meet business keys in any order. Two that make the rows of the same new keys, each in its own order, would wait
-- for each other: whoever is not the first to make the row of a key makes none, and passes over its Transactions.
create function process_ops.make_key_alone() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    if pg_try_advisory_xact_lock(hashtextextended(
            'casework.business_key:' || new.tenant || ':' || new.process || ':' || new.business_key, 0)) then
        return new;
    end if;
    return null;
end $$;
create trigger business_keys_alone before insert on process_ops.business_keys
    for each row execute function process_ops.make_key_alone();
