"""Registry logins: pull secrets' documents, credential plugins, the node's docker config files."""
