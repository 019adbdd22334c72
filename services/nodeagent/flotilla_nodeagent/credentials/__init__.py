"""Registry logins: from pull secrets, credential plugins and the node's docker config files."""
