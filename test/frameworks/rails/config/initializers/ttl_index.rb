# The schema ttl_index comes with the extension: schema.rb shall not make it.
ActiveSupport.on_load(:active_record_postgresqladapter) do
  prepend(Module.new do
    def schema_names
      super - ["ttl_index"]
    end
  end)
end
