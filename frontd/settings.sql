-- name: settings_audit :none
INSERT INTO audit (who, action, target) VALUES ($1, 'settings.changed', 'instance_settings');
