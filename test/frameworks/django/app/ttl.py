from django.db.models import BooleanField, Func


class ExpireAfterSeconds(Func):
    function = "ttl_index.expire_after_seconds"
    output_field = BooleanField()
    conditional = True
