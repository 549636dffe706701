DROP TABLE fediverse_actors, fediverse_outbound_queue;
