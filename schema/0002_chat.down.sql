DROP TABLE friend_requests, friends, conversation_events, read_states, attachments,
    dm_reactions, message_tombstones, dm_messages, dm_members, dm_channels;
