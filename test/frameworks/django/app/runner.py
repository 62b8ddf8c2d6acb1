from django.db import connection
from django.test.runner import DiscoverRunner


class NoMonitorRunner(DiscoverRunner):
    def setup_databases(self, **kwargs):
        databases = super().setup_databases(**kwargs)
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} SET ttl_index.monitor_enabled = off")
        return databases
