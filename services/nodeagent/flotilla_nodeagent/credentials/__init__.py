"""Who the agent is to registries: pull secrets' documents, credential plugins, the node's docker config files."""
