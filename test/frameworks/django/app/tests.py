from datetime import timedelta

from django.db import connection
from django.test import TransactionTestCase
from django.utils import timezone

from app.models import Session


class ExpiryTest(TransactionTestCase):
    def test_old_sessions_go(self):
        Session.objects.create(last_seen=timezone.now())
        Session.objects.create(last_seen=timezone.now() - timedelta(days=1))
        with connection.cursor() as cursor:
            cursor.execute("CALL ttl_index.run_pass()")
        self.assertEqual(Session.objects.count(), 1)
