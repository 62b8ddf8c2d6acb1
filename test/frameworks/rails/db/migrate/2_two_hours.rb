class TwoHours < ActiveRecord::Migration[6.1]
  def up
    execute "SELECT ttl_index.coll_mod_index('session_ttl', 7200)"
  end

  def down
    execute "SELECT ttl_index.coll_mod_index('session_ttl', 3600)"
  end
end
