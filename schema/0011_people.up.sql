-- Friends, profiles, the end of an identity.

-- What is over between two people stays over, whoever repeats it: requests of
-- either that were asked up to here, friendships that were made up to here.
CREATE TABLE friend_marks (
    low_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    high_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    low_over_at timestamptz,
    high_over_at timestamptz,
    ended_at timestamptz,
    PRIMARY KEY (low_id, high_id),
    CHECK (low_id < high_id)
);
CREATE INDEX friend_marks_other_way ON friend_marks (high_id);
COMMENT ON TABLE friend_marks IS 'Per pair: up to when requests and friendships are over.';
GRANT SELECT, INSERT, UPDATE, DELETE ON friend_marks TO postrider_frontd, postrider_janitord;

-- Asked in the name of a person: delete what you have of him.
ALTER TABLE s2s_requests DROP CONSTRAINT s2s_requests_kind_check;
ALTER TABLE s2s_requests ADD CONSTRAINT s2s_requests_kind_check
    CHECK (kind IN ('accept', 'counter', 'relay', 'info', 'identity'));

-- Somebody whom a client knows by his id at home only.
CREATE INDEX users_by_home_user_id ON users (home_user_id) WHERE home_user_id IS NOT NULL;
