async def run(message, context):
    for word in message.split():
        context.stream(word + " ")
    return message
