async def run(message, context):
    words = message.split()
    # However long the message is, it is said in about a thousand pieces at most.
    size = len(words) // 1000 + 1
    for start in range(0, len(words), size):
        context.stream(" ".join(words[start : start + size]) + " ")
    return message
