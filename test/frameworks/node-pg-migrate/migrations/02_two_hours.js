export function up(pgm) {
  pgm.sql("SELECT ttl_index.coll_mod_index('session_ttl', 7200)");
}

export function down(pgm) {
  pgm.sql("SELECT ttl_index.coll_mod_index('session_ttl', 3600)");
}
