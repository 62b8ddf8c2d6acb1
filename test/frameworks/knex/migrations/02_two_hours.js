export function up(knex) {
  return knex.raw("SELECT ttl_index.coll_mod_index('session_ttl', 7200)");
}

export function down(knex) {
  return knex.raw("SELECT ttl_index.coll_mod_index('session_ttl', 3600)");
}
