SELECT ttl_index.coll_mod_index('session_ttl', 7200);
