from django.db import models
from django.db.models import F, Func, Index, Q, Value

from app.ttl import ExpireAfterSeconds


class Session(models.Model):
    last_seen = models.DateTimeField(null=True)
    doc = models.JSONField(null=True)

    class Meta:
        indexes = [
            Index(
                fields=["last_seen"],
                name="session_ttl",
                condition=Q(ExpireAfterSeconds(3600)),
            ),
            Index(
                Func(F("doc"), Value("meta"), Value("createdAt"), function="ttl_index.document_date"),
                name="session_doc_ttl",
                condition=Q(ExpireAfterSeconds(86400)),
            ),
        ]
