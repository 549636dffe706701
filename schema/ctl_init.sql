-- name: init_roles :one
SELECT count(*) AS n FROM pg_roles
 WHERE rolname IN ('postrider_frontd', 'postrider_outboxd', 'postrider_filed',
       'postrider_janitord', 'postrider_app', 'postrider_operator', 'postrider_monitor');

-- name: init_database :one
SELECT count(*) AS n FROM pg_database WHERE datname = $1;
