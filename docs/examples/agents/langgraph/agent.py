from langgraph.graph import END, START, StateGraph


async def run(message, context):
    async def clock(state):
        return {**state, "time": (await context.call("system_time")).text}

    async def answer(state):
        return {**state, "answer": f"{state['message']}: it is {state['time']}"}

    graph = StateGraph(dict).add_node(clock).add_node(answer)
    graph.add_edge(START, "clock").add_edge("clock", "answer").add_edge("answer", END)
    return (await graph.compile().ainvoke({"message": message}))["answer"]
