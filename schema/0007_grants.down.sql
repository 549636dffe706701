REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ops FROM postrider_operator, postrider_monitor;
REVOKE ALL ON ALL TABLES IN SCHEMA ops FROM postrider_operator, postrider_monitor;
REVOKE ALL ON SCHEMA ops FROM postrider_operator, postrider_monitor;
REVOKE ALL ON ALL TABLES IN SCHEMA public
    FROM postrider_frontd, postrider_outboxd, postrider_filed, postrider_janitord;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public
    FROM postrider_frontd, postrider_outboxd, postrider_filed, postrider_janitord;
REVOKE ALL ON SCHEMA public
    FROM postrider_frontd, postrider_outboxd, postrider_filed, postrider_janitord;
