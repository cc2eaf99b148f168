"""Fetch DynamoDB Local, AWS's own engine, from Maven Central: once, complete or not at all.

`python -m portal.engines.dynamodb_local` does it ahead of the tests, so that no test waits for a download.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

VERSION = "3.1.0"
# Of the person, and not of the checkout: it is fetched once on a machine.
DIRECTORY = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pooldesk" / "dynamodb-local"
OLDEST_JAVA = 17
REMEDY = "apt-get install -y default-jdk-headless maven"
FETCH_SECONDS = 900
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>pooldesk</groupId>
  <artifactId>engine</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>software.amazon.dynamodb</groupId>
      <artifactId>DynamoDBLocal</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

# The main class that comes with it listens on every interface of the machine (no option against
# that), answers any web origin unless told otherwise, and reports its use unless told otherwise.
SERVER = """
import java.net.InetSocketAddress;
import org.eclipse.jetty.server.Server;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBRequestHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBServerHandler;

/** Arguments: host, port, and the directory of the data; without it everything stays in memory. */
public class LoopbackServer {
    public static void main(String[] args) throws Exception {
        String directory = args.length > 2 ? args[2] : null;
        var engine = new LocalDynamoDBRequestHandler(0, directory == null, directory, true, false);
        var server = new Server(new InetSocketAddress(args[0], Integer.parseInt(args[1])));
        server.setHandler(new LocalDynamoDBServerHandler(engine, "http://" + args[0]));
        server.start();
    }
}
"""


class InstallError(RuntimeError):
    """DynamoDB Local cannot be fetched or built. The message says why."""


def dynamodb_local_available() -> str | None:
    """Return None if DynamoDB Local can be fetched and run on this machine, else the reason and the remedy."""
    if missing := [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]:
        return f"DynamoDB Local needs {' and '.join(missing)}: {REMEDY}"
    return java_obstacle()


def java_obstacle() -> str | None:
    """Return why an engine that was fetched cannot run here (no Java, too old a Java), or None if it can."""
    if shutil.which("java") is None:
        return f"DynamoDB Local needs java: {REMEDY}"
    banner = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', banner)
    if version is None or int(version[1]) < OLDEST_JAVA:
        present = f"Java {version[1]}" if version else "no working Java"
        return f"DynamoDB Local needs Java {OLDEST_JAVA} or newer, this is {present}: {REMEDY}"
    return None


def install(report: Callable[[str], object] = print) -> Path:
    """Return the directory with the engine's jars, native library and server class; fetched on the first call.

    Everything lands in a temporary directory that is renamed at the end, so a directory that exists
    is complete. Raises InstallError.
    """
    home = DIRECTORY / VERSION
    if home.is_dir():
        if reason := java_obstacle():
            raise InstallError(reason)
        return home
    if reason := dynamodb_local_available():
        raise InstallError(reason)
    report(f"Fetching DynamoDB Local {VERSION} from Maven Central (48 MB, once) ...")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=DIRECTORY) as name:
        scratch = Path(name)
        built = scratch / VERSION
        (scratch / "pom.xml").write_text(POM)
        (scratch / "LoopbackServer.java").write_text(SERVER)
        maven = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "--file", f"{scratch}/pom.xml"]
        _run([*maven, COPY_DEPENDENCIES, f"-DoutputDirectory={built}", "-DincludeScope=runtime"])
        _run(["javac", "-cp", f"{built}/*", "-d", str(built), f"{scratch}/LoopbackServer.java"])
        try:
            built.rename(home)
        except OSError:
            if not home.is_dir():  # else another process fetched it meanwhile
                raise
    return home


def command(home: Path, *, host: str, port: int, state_dir: Path | None, scratch: str) -> list[str | Path]:
    """Return the command line of one server; ``home`` is what ``install`` returned, ``scratch`` for temporary files."""
    java = ["java", f"-Djava.library.path={home}", f"-Djava.io.tmpdir={scratch}", "-cp", f"{home}:{home}/*"]
    return [*java, "LoopbackServer", host, str(port), *([state_dir] if state_dir else [])]


def index_stream_records(state_dir: Path) -> None:
    """Index the engine's own table of stream records, which it looks through whole at each write and each read.

    The product stores nothing by SQL: this is a file of the engine, for development alone, in which it keeps a day of
    records. The engine has made the table when it answers, and notices an index by itself. Where a later version has
    other tables, it stays as slow as it is.
    """
    address = (state_dir / "shared-local-instance.db").as_uri() + "?mode=rw"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True, timeout=60)) as file:
        for name, columns in (("us_by_stream", "StreamID"), ("us_by_shard", "ShardID, SequenceNumber")):
            file.execute(f"CREATE INDEX IF NOT EXISTS {name} ON us ({columns})")


def _run(argv: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"DynamoDB Local: {argv[0]} did not end within {FETCH_SECONDS} s.") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[:8])
        raise InstallError(f"DynamoDB Local: {argv[0]} ended with status {done.returncode}.\n{tail}")


if __name__ == "__main__":
    if reason := dynamodb_local_available():
        sys.exit(f"{reason}\nIts tests are skipped.")
    try:
        install()
    except (InstallError, OSError) as error:  # such as a home directory that cannot be written
        sys.exit(str(error))
