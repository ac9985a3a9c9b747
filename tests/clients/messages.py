"""What an operator or another service does to Sexton's queues with any AMQP client.

messages.py URL publish QUEUE BODY [--message-id ID]
messages.py URL move FROM TO [--copies N]      moves what is in FROM, as it is, N times
messages.py URL copy FROM TO                   copies what is in FROM, as it is, and leaves it there
"""

import argparse

import pika

parser = argparse.ArgumentParser()
parser.add_argument("url")
commands = parser.add_subparsers(dest="command", required=True)
publish = commands.add_parser("publish")
publish.add_argument("queue")
publish.add_argument("body")
publish.add_argument("--message-id")
move = commands.add_parser("move")
move.add_argument("source")
move.add_argument("target")
move.add_argument("--copies", type=int, default=1)
copy = commands.add_parser("copy")
copy.add_argument("source")
copy.add_argument("target")
arguments = parser.parse_args()

connection = pika.BlockingConnection(pika.URLParameters(arguments.url))
channel = connection.channel()
channel.confirm_delivery()

if arguments.command == "publish":
    properties = pika.BasicProperties(
        content_type="application/json", delivery_mode=2, message_id=arguments.message_id
    )
    channel.basic_publish("", arguments.queue, arguments.body, properties, mandatory=True)
elif arguments.command == "copy":
    # Held until all are copied, and given back with the connection: a nack would return the first.
    copied = 0
    while True:
        method, properties, body = channel.basic_get(arguments.source)
        if method is None:
            break
        channel.basic_publish("", arguments.target, body, properties, mandatory=True)
        copied += 1
    print(f"copied {copied} message(s)")
else:
    moved = 0
    while True:
        method, properties, body = channel.basic_get(arguments.source)
        if method is None:
            break
        for _ in range(arguments.copies):
            channel.basic_publish("", arguments.target, body, properties, mandatory=True)
        channel.basic_ack(method.delivery_tag)
        moved += 1
    print(f"moved {moved} message(s), {arguments.copies} copies each")
connection.close()
