-- name: outbox_group :one
SELECT owner_id, federated_id FROM dm_channels WHERE id = $1;
