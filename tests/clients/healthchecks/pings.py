"""Pings a check by its id and by its name, in every way that the client knows."""

import sys

from healthchecks_io import CheckTrap, Client

url, key, uuid = sys.argv[1:]
client = Client(api_key="unused", ping_key=key, ping_url=url)


def expect(answer, wanted="OK"):
    ok, text = answer
    if not ok or text != wanted:
        sys.exit(f"refused: {answer}")


expect(client.start_ping(uuid=uuid))
expect(client.success_ping(uuid=uuid, data="31 files"))
expect(client.fail_ping(slug="backup", data="no space left"))
expect(client.exit_code_ping(3, slug="backup"))
with CheckTrap(client, uuid=uuid, suppress_exceptions=True):
    pass
with CheckTrap(client, uuid=uuid, suppress_exceptions=True):
    raise RuntimeError("the job fails")
