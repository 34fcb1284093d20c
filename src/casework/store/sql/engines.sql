-- name: kept
select namespace_id, namespace, address, cluster_id, accepted_at from casework_meta.engine

-- name: keep_first
insert into casework_meta.engine (namespace_id, namespace, address, cluster_id)
values (%(namespace_id)s, %(namespace)s, %(address)s, %(cluster_id)s)
on conflict do nothing

-- name: accept
insert into casework_meta.engine as e (namespace_id, namespace, address, cluster_id, accepted_at)
values (%(namespace_id)s, %(namespace)s, %(address)s, %(cluster_id)s, clock_timestamp())
on conflict (only_row) do update set
    namespace_id = excluded.namespace_id, namespace = excluded.namespace, address = excluded.address,
    cluster_id = excluded.cluster_id, kept_at = clock_timestamp(), accepted_at = excluded.accepted_at
