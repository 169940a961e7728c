"""Serving: search as a tool for agents, by function calling and by MCP."""
