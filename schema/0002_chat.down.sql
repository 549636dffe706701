DROP TABLE friend_requests, friends, conversation_events, read_states, attachments,
    dm_reactions, message_tombstones, dm_messages, dm_members, dm_channels;
DROP FUNCTION row_needed();
DROP TRIGGER users_stay ON users;
DROP FUNCTION author_stays();
DROP FUNCTION conversation_gone();
