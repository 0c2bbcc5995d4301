def run(message, context):
    asked = context.memory.get("asked", 0) + 1
    context.memory.set("asked", asked)
    try:
        now = context.call("system_time").text
    except context.Refused as refusal:
        now = f"unknown ({refusal.reason})"
    return f"You asked {asked} times. The time is {now}."
