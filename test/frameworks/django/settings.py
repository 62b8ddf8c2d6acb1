DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "app",
        "TEST": {"TEMPLATE": "app_template"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["app"]
SECRET_KEY = "not a secret"
TEST_RUNNER = "app.runner.NoMonitorRunner"
USE_TZ = True
