DROP INDEX users_by_home_user_id;
DELETE FROM s2s_requests WHERE kind = 'identity';
ALTER TABLE s2s_requests DROP CONSTRAINT s2s_requests_kind_check;
ALTER TABLE s2s_requests ADD CONSTRAINT s2s_requests_kind_check
    CHECK (kind IN ('accept', 'counter', 'relay', 'info'));
DROP TABLE friend_marks;
