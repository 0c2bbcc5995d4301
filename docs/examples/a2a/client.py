"""Asks an agent over A2A, with the official client: `python client.py URL KEY "a question"`."""

import asyncio
import sys
from uuid import uuid4

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, SendMessageRequest


async def main(url: str, key: str, text: str) -> None:
    message = Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
        client = await ClientFactory(ClientConfig(httpx_client=http)).create_from_url(url)
        async for event in client.send_message(SendMessageRequest(message=message)):
            for part in event.artifact_update.artifact.parts:
                sys.stdout.write(part.text)
    sys.stdout.write("\n")


asyncio.run(main(*sys.argv[1:]))
