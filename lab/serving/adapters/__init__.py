"""The lab's search in the shapes of other libraries. Each adapter is an extra of its own (`pip install 'retrieval-lab[langchain]'`), and calls the search that is measured.

    knowledge_base   KnowledgeBase(embed=…), add_document(), search(): needs no extra
    langchain        LabRetriever, a BaseRetriever                     [langchain]
    langgraph        retrieve → synthesise as a graph                  [langgraph]
    llama_index      LabRetriever, a BaseRetriever                     [llama-index]

Function-calling schemas for any other agent are `lab.serving.tool.function_schema`, `claims_schema` and `answer_schema`.
"""
