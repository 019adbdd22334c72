"""The rest of a Kubernetes cluster: scheduler, kubelets, and the controllers that clean up."""
