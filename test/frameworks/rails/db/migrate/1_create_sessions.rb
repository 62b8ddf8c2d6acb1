class CreateSessions < ActiveRecord::Migration[6.1]
  def change
    create_table :sessions do |t|
      t.datetime :last_seen
      t.jsonb :doc
    end
    add_index :sessions, :last_seen, name: "session_ttl",
      where: "ttl_index.expire_after_seconds(3600) AND ttl_index.time_zone('UTC')"
    add_index :sessions, "ttl_index.document_date(doc, VARIADIC ARRAY['meta'::text, 'createdAt'::text])",
      name: "session_doc_ttl", where: "ttl_index.expire_after_seconds(86400)"
  end
end
