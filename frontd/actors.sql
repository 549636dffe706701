-- name: actors_audit :none
INSERT INTO audit (who, action, target) VALUES ($1, $2, $3);
