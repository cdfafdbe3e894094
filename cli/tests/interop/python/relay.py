"""The relay of nostr-sdk on a free port of loopback, until the end of stdin: relay.py [--login]"""

import asyncio
import sys

from nostr_sdk import LocalRelayBuilder, LocalRelayBuilderNip42, LocalRelayBuilderNip42Mode


async def main():
    builder = LocalRelayBuilder().addr("127.0.0.1")
    if "--login" in sys.argv:
        builder = builder.nip42(LocalRelayBuilderNip42(mode=LocalRelayBuilderNip42Mode.BOTH))
    relay = builder.build()
    await relay.run()
    print(await relay.url(), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    relay.shutdown()


asyncio.run(main())
