from django.db import migrations, models
from django.db.models import F, Func, Index, Q, Value

from app.ttl import ExpireAfterSeconds


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Session",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("last_seen", models.DateTimeField(null=True)),
                ("doc", models.JSONField(null=True)),
            ],
        ),
        migrations.AddIndex(
            model_name="session",
            index=Index(fields=["last_seen"], name="session_ttl", condition=Q(ExpireAfterSeconds(3600))),
        ),
        migrations.AddIndex(
            model_name="session",
            index=Index(
                Func(F("doc"), Value("meta"), Value("createdAt"), function="ttl_index.document_date"),
                name="session_doc_ttl",
                condition=Q(ExpireAfterSeconds(86400)),
            ),
        ),
    ]
