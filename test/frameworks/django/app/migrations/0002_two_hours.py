from django.db import migrations
from django.db.models import Index, Q

from app.ttl import ExpireAfterSeconds


class Migration(migrations.Migration):
    dependencies = [("app", "0001_initial")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "SELECT ttl_index.coll_mod_index('session_ttl', 7200)",
                    "SELECT ttl_index.coll_mod_index('session_ttl', 3600)",
                ),
            ],
            # what makemigrations wrote as operations
            state_operations=[
                migrations.RemoveIndex(model_name="session", name="session_ttl"),
                migrations.AddIndex(
                    model_name="session",
                    index=Index(fields=["last_seen"], name="session_ttl", condition=Q(ExpireAfterSeconds(7200))),
                ),
            ],
        ),
    ]
