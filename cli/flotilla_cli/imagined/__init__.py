"""A cluster that is only imagined: objects as they are or would be, and what kubelets and the controllers of Kubernetes
would make of them. `flotilla plan` plays plans on it; nothing in it waits, and nothing is written."""
