"""Remove from installed packages what the portal never reads: `python3 infra/slim_packages.py FOLDER`.

botocore brings the description of each of Amazon's 400 services, Django its texts in 100 languages, others their tests
and pages. Together they are as large as all the rest.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

# Those that the product makes clients of; tests/deployment/test_image_parts.py looks for others.
SERVICES: Final = {
    "dynamodb",
    "dynamodbstreams",
    "ecs",
    "lambda",
    "s3",
    "secretsmanager",
    "sesv2",
    "sqs",
    "sso",
    "sso-oidc",
    "sts",
}
LANGUAGES: Final = {"en", "de"}
UNUSED: Final = (
    *("bin", "boto3/examples", "ninja/static", "django/contrib/gis", "django/contrib/postgres"),
    *("pygments*", "rich*"),  # of httpx's command line
    *(f"django/contrib/{name}" for name in ("admindocs", "flatpages", "redirects", "sitemaps", "syndication")),
    *(f"django/db/backends/{name}" for name in ("mysql", "oracle")),
    *("holidays/locale", "holidays/financial"),  # names of holidays, of which dates alone are stored; and of markets
    # Of Pillow: AVIF, fonts, colour profiles, Tk. What previews read needs none of them.
    *(f"PIL/{part}.*" for part in ("_avif", "_imagingft", "_imagingcms", "_imagingtk")),
    *(f"pillow.libs/lib{name}*" for name in ("avif", "freetype", "harfbuzz", "brotli", "lcms2")),
)


def slim(packages: Path) -> None:
    """Remove services, languages and pages that the portal does not have, and what is there for developers."""
    for service in [*(packages / "botocore" / "data").iterdir(), *(packages / "boto3" / "data").iterdir()]:
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)
    for language in (packages / "django").glob("**/locale/*/"):
        if language.name not in LANGUAGES and (language / "LC_MESSAGES").is_dir():
            shutil.rmtree(language)
    for name in ("*/tests", "**/*.po", "**/*.pyi", "botocore/data/*/*/examples-1.json", "*.dist-info/RECORD", *UNUSED):
        for found in packages.glob(name):
            shutil.rmtree(found) if found.is_dir() else found.unlink()


if __name__ == "__main__":
    slim(Path(sys.argv[1]))
