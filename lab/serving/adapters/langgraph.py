"""retrieve → synthesise as a LangGraph graph: an example to start from, and one that runs. Where nothing was retrieved the graph ends without asking a model.

graph = answering("handbook")
graph.invoke({"question": "Who signs a permit?"})["answer"]
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from lab.errors import UsageError
from lab.models.chat import Chat, configured
from lab.serving import answers
from lab.serving.answers import BUDGET, Context
from lab.settings import Settings, resolved
from lab.store.connect import Store, connect


class State(TypedDict, total=False):
    """What goes along the graph: in comes `question`, out come `answer` (None: there is none), `status` and `sources` as `lab answer --json` has them."""

    question: str
    context: Context
    answer: str | None
    status: str
    sources: list[dict[str, Any]]
    message: str | None


def answering(
    collection: str, *, store: Store | None = None, answerer: str = "extractive", chat: Chat | None = None, settings: Settings | str | None = None,
    budget: int = BUDGET, min_faithfulness: float = 0.0, **flags: Any,
) -> Any:  # fmt: skip
    """The compiled graph. UsageError for an unknown answerer, and (chat) where no model is named."""
    answers.check(answerer, min_faithfulness, budget)
    resolved(settings).with_words({flag: str(value) for flag, value in flags.items()})  # wrong flags are told now
    model = (chat or configured()) if answerer == "chat" else None

    def retrieve(state: State) -> State:
        question = state.get("question")
        if not isinstance(question, str):
            raise UsageError('the graph was given no question: invoke it with {"question": "…"}.')
        if store is None:
            with connect() as opened:
                return {"context": answers.retrieve(opened, collection, question, settings=settings, budget=budget, **flags)}
        return {"context": answers.retrieve(store, collection, question, settings=settings, budget=budget, **flags)}

    def synthesise(state: State) -> State:
        return _told(answers.synthesise(state["context"], model, min_faithfulness))

    def nothing(state: State) -> State:
        return _told(answers.synthesise(state["context"]))  # without a passage this calls nobody

    graph = StateGraph(State)
    graph.add_node("retrieve", retrieve)
    graph.add_node("synthesise", synthesise)
    graph.add_node("nothing", nothing)
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", lambda state: "synthesise" if state["context"].passages else "nothing", ["synthesise", "nothing"])
    graph.add_edge("synthesise", END)
    graph.add_edge("nothing", END)
    return graph.compile()


def _told(found: answers.Answer) -> State:
    told = found.to_json()
    return {"answer": told["answer"], "status": told["retrieval_status"], "sources": told["sources"], "message": told["message"]}
